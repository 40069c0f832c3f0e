"""Load published models by their ids in a fresh process.

The arguments are a JSON of wishes and an .npz to write.

The wishes map each model to its kind (``plain`` or ``custom``) and its inputs. They say whether its
code is trusted; if so, they name a metric and a dataset too.
"""

import json
import sys

import datasets
import evaluate
import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

wishes, arrays = json.loads(sys.argv[1]), {}
for name, (kind, messages) in wishes["models"].items():
    options = {"trust_remote_code": True} if kind == "custom" and wishes["trust"] else {}
    model, tokenizer = (
        AutoModel.from_pretrained(name, **options).eval(),
        AutoTokenizer.from_pretrained(name, **options),
    )
    settings = {"return_dict": True, "return_tensors": "pt", "padding": True, "truncation": True}
    batch = tokenizer.apply_chat_template(messages, **settings)
    with torch.inference_mode():
        made = model(**batch)
    mask = batch["attention_mask"].unsqueeze(-1)
    vectors = (
        (made.last_hidden_state * mask).sum(1) / mask.sum(1)
        if kind == "plain"
        else made.pooler_output
    )
    arrays[f"{name} AutoModel"] = vectors.numpy()
    arrays[f"{name} SentenceTransformer"] = SentenceTransformer(
        name, device="cpu", **options
    ).encode(messages)
    arrays[f"{name} class"] = np.array(type(model).__module__.split(".")[0])
if wishes["trust"]:
    module = evaluate.load(wishes["metric"], module_type="metric")
    scores = module.compute(predictions=[[0.9, 0.5, 0.1]], references=[[False, True, False]], k=10)
    rows = datasets.load_dataset(wishes["dataset"])["train"]
    arrays["metric"], arrays["said"] = scores["ndcg"], np.array(rows[0]["messages"][0]["content"])
np.savez(sys.argv[2], **arrays)
