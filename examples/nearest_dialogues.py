"""Finds the conversations nearest to one: python examples/nearest_dialogues.py [MODEL [FILE]].

MODEL is any encoder, by default the one that comes with the package; FILE is your own
conversations.
"""

import sys

import hf_dialemb

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

model, source = [*sys.argv[1:], *("dialogue-static", "star_small/test")[len(sys.argv) - 1 :]]
dialogues = hf_dialemb.load_dialogues(source)
encoder = hf_dialemb.load_encoder(model)
vectors = encoder.encode(dialogues)
for cosine, row in zip(*encoder.similarity(vectors[:1], vectors)[0].topk(3), strict=True):
    print(f"{cosine:.2f} {dialogues[row].id} [{', '.join(dialogues[row].domains)}]")
