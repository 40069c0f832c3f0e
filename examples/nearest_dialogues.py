"""Embeds dialogues from Python and finds the nearest ones: python examples/nearest_dialogues.py [CHECKPOINT].

Without a checkpoint, an untrained encoder over all-MiniLM-L6-v2 is built; it equals its backbone.
"""

import sys

from hf_dialemb import Dial2VecModel, encode, load_dialogues
from hf_dialemb.apps.search import describe_nearest
from hf_dialemb.hub.export import load_checkpoint
from hf_dialemb.models.backbones import MINILM, resolve_backbone

if len(sys.argv) > 1:
    model, tokenizer = load_checkpoint(sys.argv[1])
else:
    model, tokenizer = Dial2VecModel.from_backbone(resolve_backbone(MINILM))
dialogues = load_dialogues("sample", split="dev")
vectors = encode(model, tokenizer, dialogues)  # (96, 384) float32
print("\n".join(describe_nearest(dialogues, vectors, dialogues[0].id, top=3)))
