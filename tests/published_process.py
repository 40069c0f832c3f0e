"""Loads what was published by its id, as strangers do, in a process of its own: a JSON of wishes, an .npz to write.

The wishes: from a model to its kind (``plain`` or ``custom``) and what it shall read; whether its code is trusted, and
where it is, a metric and a dataset.
"""

import json
import sys

import datasets
import evaluate
import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

wishes, found = json.loads(sys.argv[1]), {}
for name, (kind, messages) in wishes["models"].items():
    options = {"trust_remote_code": True} if kind == "custom" and wishes["trust"] else {}
    model, tokenizer = AutoModel.from_pretrained(name, **options).eval(), AutoTokenizer.from_pretrained(name, **options)
    settings = {"return_dict": True, "return_tensors": "pt", "padding": True, "truncation": True}
    batch = tokenizer.apply_chat_template(messages, **settings)
    with torch.inference_mode():
        made = model(**batch)
    mask = batch["attention_mask"].unsqueeze(-1)
    vectors = (made.last_hidden_state * mask).sum(1) / mask.sum(1) if kind == "plain" else made.pooler_output
    found[f"{name} AutoModel"] = vectors.numpy()
    found[f"{name} SentenceTransformer"] = SentenceTransformer(name, device="cpu", **options).encode(messages)
    found[f"{name} class"] = np.array(type(model).__module__.split(".")[0])
if wishes["trust"]:
    module = evaluate.load(wishes["metric"], module_type="metric")
    scores = module.compute(predictions=[[0.9, 0.5, 0.1]], references=[[False, True, False]], k=10)
    rows = datasets.load_dataset(wishes["dataset"])
    found["metric"], found["rows"] = scores["ndcg"], np.array([len(rows["train"]), len(rows["validation"])])
    found["said"] = np.array(rows["train"][0]["messages"][1]["content"])
np.savez(sys.argv[2], **found)
