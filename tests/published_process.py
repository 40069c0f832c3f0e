"""Loads what was published by its id, as strangers do: ``absent`` or ``imported``, a JSON of wishes, an .npz to write.

The wishes: from a model to its kind (``plain`` or ``custom``) and what it shall read, a metric, a dataset.
"""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np


class Absent:
    """Hides the package, installed or not."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "hf_dialemb":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)


def embeddings(name, messages, plain, options):
    """What AutoModel and SentenceTransformer give, and whose class the model is."""
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(name, **options).eval(), AutoTokenizer.from_pretrained(name, **options)
    settings = {"return_tensors": "pt", "padding": True, "truncation": True}
    batch = tokenizer.apply_chat_template(messages, return_dict=True, **settings)
    with torch.inference_mode():
        made = model(**batch)
    mask = batch["attention_mask"].unsqueeze(-1)
    vectors = (made.last_hidden_state * mask).sum(1) / mask.sum(1) if plain else made.pooler_output
    return {
        f"{name} AutoModel": vectors.numpy(),
        f"{name} SentenceTransformer": SentenceTransformer(name, device="cpu", **options).encode(messages),
        f"{name} class": np.array(type(model).__module__.split(".")[0]),
    }


def metric_and_rows(metric, dataset):
    import datasets
    import evaluate

    module = evaluate.load(metric, module_type="metric")
    scores = module.compute(predictions=[[0.9, 0.5, 0.1]], references=[[False, True, False]], k=10)
    rows = datasets.load_dataset(dataset)
    return {
        "metric": scores["ndcg"],
        "rows": np.array([len(rows["train"]), len(rows["validation"])]),
        "said": np.array(rows["train"][0]["messages"][1]["content"]),
    }


def main(package, wishes, output):
    if package == "imported":
        importlib.import_module("hf_dialemb")
    else:
        sys.meta_path.insert(0, Absent())
    found = {}
    for name, (kind, messages) in wishes["models"].items():
        options = {"trust_remote_code": True} if kind == "custom" and package == "absent" else {}
        found |= embeddings(name, messages, kind == "plain", options)
    if package == "absent":
        found |= metric_and_rows(wishes["metric"], wishes["dataset"])
    np.savez(output, **found)


main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3])
