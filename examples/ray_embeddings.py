"""Adds vectors to a dataset of Ray, in actors that hold the model: python examples/ray_embeddings.py [MODEL].

Needs Ray Data: pip install "hf-dialemb[ray]". Here it runs on this machine alone; on a cluster, leave the arguments of
ray.init away.
"""

import sys

import ray

from hf_dialemb import load_dialogues
from hf_dialemb.integrations import BatchEncoder

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

model = sys.argv[1] if len(sys.argv) > 1 else "all-MiniLM-L6-v2"
ray.init(num_cpus=2, object_store_memory=100_000_000, include_dashboard=False, log_to_driver=False)
ray.data.DataContext.get_current().execution_options.preserve_order = True  # else rows come as they are ready
dataset = ray.data.from_items([dialogue.to_json() for dialogue in load_dialogues("sample", split="dev")])
dataset = dataset.map_batches(
    BatchEncoder,
    fn_constructor_kwargs={"model": model},
    batch_size=32,
    batch_format="pyarrow",  # which keeps chat messages as they are
    compute=ray.data.ActorPoolStrategy(size=1),
)
rows = dataset.take_all()  # on a cluster rather dataset.write_parquet(...)
print(len(rows), "dialogues", rows[0]["id"], len(rows[0]["embedding"]))
ray.shutdown()
