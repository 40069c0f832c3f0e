"""Load exports in a process without this package: a JSON of folders, of messages and whether code is trusted."""

import json
import sys

import numpy as np
from sentence_transformers import SentenceTransformer

sys.modules["hf_dialemb"] = None  # importing it fails
wishes = json.loads(sys.argv[1])
vectors = {}
for name, folder in wishes["folders"].items():
    options = {"trust_remote_code": True} if "dial2vec" in name else {}
    model = SentenceTransformer(folder, device="cpu", **options)
    vectors[name] = model.encode(wishes["messages"], batch_size=1, show_progress_bar=False)
np.savez(sys.argv[2], **vectors)
