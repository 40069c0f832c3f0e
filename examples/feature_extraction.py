"""Vectors from transformers' own pipeline: python examples/feature_extraction.py [FOLDER [FILE]].

FOLDER is what `dialemb export` wrote. The pipeline reads texts, so a dialogue is rendered by the
chat template first. Of a dialogue encoder (dial2vec) it returns the dialogue's vector. Of a plain
encoder, such as an exported DSE or, without a folder, all-MiniLM-L6-v2, it returns a vector for
each token, and their mean has to be taken. Either has the direction of the vector that
SentenceTransformer gives, as long as nothing is cut. FILE is your own conversations, by default
made-up ones; the first three are compared.
"""

import sys

import numpy as np
from transformers import pipeline

import hf_dialemb
from hf_dialemb.storage.pretrained import MINILM, resolve_backbone

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

folder, source = [*sys.argv[1:], *("", "sample")[len(sys.argv) - 1 :]]
extractor = pipeline("feature-extraction", folder or resolve_backbone(MINILM))


def embed(dialogue):
    """Returns the vector of a dialogue, (D,)."""
    tokenizer = extractor.tokenizer
    if tokenizer.chat_template is None:  # a model of texts alone
        text = " ".join(turn.content for turn in dialogue.turns)
        written = True
    else:
        text = tokenizer.apply_chat_template(dialogue.to_messages(), tokenize=False)
        written = False
    found = np.array(
        extractor(text, tokenize_kwargs={"add_special_tokens": written, "truncation": True})
    )
    # (1, D), or (1, L, D) of L tokens
    return found[0] if found.ndim == 2 else found[0].mean(axis=0)


split = {"split": "dev"} if source == "sample" else {}  # a file has no splits
dialogues = hf_dialemb.load_dialogues(source, **split)[:3]
vectors = np.stack([embed(dialogue) for dialogue in dialogues])
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
for dialogue, cosines in zip(dialogues, vectors @ vectors.T, strict=True):
    print(dialogue.id, *dialogue.domains, cosines.round(3).tolist())
