"""Finds the conversations nearest to one: python examples/nearest_dialogues.py [MODEL [FILE]].

MODEL is any encoder, by default the one that comes with the package; FILE is your own
conversations.
"""

import sys

import hf_dialemb

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

model, source = [*sys.argv[1:], *("dialogue-static", "star_small/test")[len(sys.argv) - 1 :]]
print(hf_dialemb.search(model, source, 0, top=3))
