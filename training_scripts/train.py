"""Train any method of hf_dialemb on one process or many, on CPU or GPU.

    accelerate launch training_scripts/train.py --config dial2vec_minilm --corpus calls.jsonl

``--config`` is a recipe's name or a YAML file; every other word is a setting, which wins. On two
processes without a GPU, set ``ACCELERATE_USE_CPU=true`` and add ``--multi_gpu --num_processes 2``.
"""

import argparse
import sys

from hf_dialemb.errors import InputError
from hf_dialemb.training.arguments import make_settings, read_words
from hf_dialemb.training.training_run import run_training


def main() -> int:
    """Train as the words of the command line say; return 2 if they are wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", help="a recipe's name, or a YAML file of settings")
    options, words = parser.parse_known_args()
    try:
        settings = make_settings(read_words(words), options.config)
        run_training(settings, print if settings.training.process_index == 0 else str)
    except InputError as error:
        print(f"train.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
