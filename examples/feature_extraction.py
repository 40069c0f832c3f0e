"""Vectors from transformers' own pipeline: python examples/feature_extraction.py [FOLDER].

FOLDER is what `dialemb export` wrote. The pipeline reads texts, so a dialogue is rendered by the chat template first.
Of a dialogue encoder (dial2vec) it returns the dialogue's vector. Of a plain encoder, such as an exported DSE or,
without a folder, all-MiniLM-L6-v2, it returns a vector for each token, and their mean has to be taken. Either has the
direction of the vector that SentenceTransformer gives, as long as nothing is cut.
"""

import sys

import numpy as np
from transformers import pipeline

import hf_dialemb
from hf_dialemb.models.backbones import MINILM, resolve_backbone

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

extractor = pipeline("feature-extraction", sys.argv[1] if len(sys.argv) > 1 else resolve_backbone(MINILM))


def embed(dialogue):
    """Returns the vector of a dialogue, (D,)."""
    tokenizer = extractor.tokenizer
    if tokenizer.chat_template is None:  # a model of texts alone
        text, written = " ".join(turn.content for turn in dialogue.turns), True
    else:
        text, written = tokenizer.apply_chat_template(dialogue.to_messages(), tokenize=False), False
    found = np.array(extractor(text, tokenize_kwargs={"add_special_tokens": written, "truncation": True}))
    return found[0] if found.ndim == 2 else found[0].mean(axis=0)  # (1, D), or (1, L, D) of L tokens


dialogues = hf_dialemb.load_dialogues("sample", split="dev")[:3]
vectors = np.stack([embed(dialogue) for dialogue in dialogues])
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
for dialogue, cosines in zip(dialogues, vectors @ vectors.T, strict=True):
    print(dialogue.id, dialogue.domains[0], cosines.round(3).tolist())
