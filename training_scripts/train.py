"""Trains any method of hf_dialemb on one process or many, on CPU or GPU.

accelerate launch training_scripts/train.py --config training_scripts/recipes/dial2vec_minilm.yaml
[--field value ...]

Two CPU processes: ACCELERATE_USE_CPU=true accelerate launch --multi_gpu --num_processes 2
--num_machines 1 \
    --mixed_precision no --dynamo_backend no training_scripts/train.py --config ...
"""

import sys

from hf_dialemb.apps.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
