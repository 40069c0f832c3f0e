"""Adds vectors to a dataset, with two processes: python examples/map_dataset.py [MODEL].

Each process loads the model once. A second call with the same weights is read from the cache of datasets. Processes are
spawned, not forked: neither the threads of torch nor CUDA live through a fork.
"""

import sys

import multiprocess
from datasets import Dataset

from hf_dialemb import load_dialogues
from hf_dialemb.integrations import BatchEncoder

if __name__ == "__main__":
    multiprocess.set_start_method("spawn")
    encoder = BatchEncoder(sys.argv[1] if len(sys.argv) > 1 else "all-MiniLM-L6-v2")
    records = [dialogue.to_json() for dialogue in load_dialogues("sample", split="dev")]
    dataset = Dataset.from_list(records).map(encoder, batched=True, batch_size=32, num_proc=2)
    dataset.set_format("numpy", columns=["embedding"], output_all_columns=True)
    print(dataset)
    print(dataset[0]["id"], dataset["embedding"][:].shape, dataset["embedding"][:].std())
