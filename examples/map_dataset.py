"""Adds vectors to a dataset, with two processes: python examples/map_dataset.py [MODEL [FILE]].

FILE is your own conversations, by default made-up ones. Each process gets the model as it is. A
second call with the same weights is read from the cache of datasets. Processes are spawned, not
forked: neither the threads of torch nor CUDA live through a fork.
"""

import sys

import multiprocess
from datasets import Dataset

from hf_dialemb import load_dialogues, load_encoder

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))


def embed(messages, encoder):
    return {"embedding": encoder.encode(messages)}


if __name__ == "__main__":
    multiprocess.set_start_method("spawn")
    model, source = [*sys.argv[1:], *("all-MiniLM-L6-v2", "sample")[len(sys.argv) - 1 :]]
    dialogues = (
        load_dialogues(source, split="dev") if source == "sample" else load_dialogues(source)
    )
    encoder = load_encoder(model)
    dataset = Dataset.from_list([dialogue.to_json() for dialogue in dialogues]).map(
        embed,
        fn_kwargs={"encoder": encoder},
        input_columns="messages",
        batched=True,
        batch_size=32,
        num_proc=2,
    )
    dataset.set_format("numpy", columns=["embedding"], output_all_columns=True)
    print(dataset)
    print(dataset[0]["id"], dataset["embedding"][:].shape, dataset["embedding"][:].std())
