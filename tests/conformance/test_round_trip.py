"""Train and push, load by id without the package, fine-tune with sentence-transformers, push, and load again."""

import os
import subprocess
import sys

import numpy as np
import pytest
from local_hub import serving

pytestmark = pytest.mark.slow

TRAIN = """
import sys
import numpy as np
import hf_dialemb
method, backbone, output, vectors = sys.argv[1:]
run = hf_dialemb.train(
    method, "sample", backbone=backbone, output_dir=output, max_steps=2, max_dialogues=20, exclude="none",
    push_to_hub=True, hub_model_id="org/calls", hub_private_repo=True, disable_tqdm=True,
)
np.save(vectors, run.encoder().encode(MESSAGES))
"""
USE = """
import sys
import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from transformers import AutoModel, AutoTokenizer
sys.modules["hf_dialemb"] = None
options = {"trust_remote_code": sys.argv[1] == "dial2vec"}
model = SentenceTransformer("org/calls", device="cpu", **options)
vectors = {"loaded": model.encode(MESSAGES)}
plain = AutoModel.from_pretrained("org/calls", **options).eval()
tokenizer = AutoTokenizer.from_pretrained("org/calls", **options)
batch = tokenizer.apply_chat_template(MESSAGES, return_dict=True, return_tensors="pt", padding=True)
with torch.inference_mode():
    output = plain(**batch)
mask = batch["attention_mask"].unsqueeze(-1)
means = (output.last_hidden_state * mask).sum(1) / mask.sum(1)
vectors["AutoModel"] = (output.pooler_output if options["trust_remote_code"] else means).numpy()
pairs = Dataset.from_dict({"anchor": ["A hotel.", "My card is lost."], "positive": ["Which one?", "Since when?"]})
settings = {"max_steps": 1, "learning_rate": 0.0, "report_to": "none", "use_cpu": True}
arguments = SentenceTransformerTrainingArguments(sys.argv[2], **settings)
trainer = SentenceTransformerTrainer(model, arguments, pairs, loss=MultipleNegativesRankingLoss(model))
trainer.train()
model.push_to_hub("org/calls", exist_ok=True)
again = SentenceTransformer("org/calls", device="cpu", **options)
vectors["tuned"] = again.encode(MESSAGES)
np.savez(sys.argv[3], **vectors)
"""
BY_HAND = """
import sys
import hf_dialemb
from transformers import TrainingArguments
model, tokenizer = hf_dialemb.DSEModel.from_backbone(sys.argv[1])
arguments = TrainingArguments(
    sys.argv[2], max_steps=1, save_steps=1, push_to_hub=True, hub_model_id="org/by-hand", hub_private_repo=True,
    hub_strategy="every_save", report_to="none", use_cpu=True,
)
dialogues = hf_dialemb.load_dialogues("sample")[:20]
trainer = hf_dialemb.DialogueTrainer(model, arguments, train_dataset=dialogues, processing_class=tokenizer)
trainer.train()
print("commit", trainer.push_to_hub())
trainer.create_model_card()
"""
MESSAGES = [
    [{"role": "user", "content": "I need a cheap hotel."}, {"role": "assistant", "content": "For how many nights?"}],
    [{"role": "user", "content": "My card was stolen!"}],
]


@pytest.mark.habit("train with push_to_hub, load by id, fine-tune with sentence-transformers, push, load", "works")
@pytest.mark.parametrize("method", ["dse", "dial2vec"])
def test_a_pushed_model_is_loaded_tuned_and_pushed_again(method, tiny_bert, tmp_path):
    with serving() as hub:
        environment = {**os.environ, **hub.environment(tmp_path / "cache")}

        def run(program: str, *words: object) -> None:
            program = program.replace("MESSAGES", repr(MESSAGES))
            command = [sys.executable, "-c", program, *map(str, words)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-3000:]

        run(TRAIN, method, tiny_bert, tmp_path / "run", tmp_path / "trained.npy")
        assert hub.private["org/calls"]
        files = hub.files("org/calls")
        assert {"README.md", "config.json", "model.safetensors", "modules.json"} <= files.keys()
        assert not {"training_args.bin", "training_texts.json", "training_settings.json"} & files.keys()
        run(USE, method, tmp_path / "tuned", tmp_path / "vectors.npz")
    expected, vectors = np.load(tmp_path / "trained.npy"), np.load(tmp_path / "vectors.npz")
    for way in ("loaded", "AutoModel", "tuned"):
        assert np.abs(vectors[way] - expected).max() <= 1e-5 * np.abs(expected).max(), way


@pytest.mark.habit("Trainer(push_to_hub=True), trainer.push_to_hub()", "the exported form with the project's card")
def test_a_trainer_by_hand_pushes_its_checkpoints_and_its_end(tiny_bert, tmp_path):
    with serving() as hub:
        command = [sys.executable, "-c", BY_HAND, tiny_bert, str(tmp_path / "run")]
        environment = {**os.environ, **hub.environment(tmp_path / "cache")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        assert hub.private["org/by-hand"]
        for files in hub.commits["org/by-hand"][1:]:  # the first is empty
            assert {"README.md", "config.json", "model.safetensors", "modules.json"} <= files.keys()
            assert not [name for name in files if name.endswith((".bin", ".pt")) or name.startswith("training_")]
        assert len(hub.commits["org/by-hand"]) == 3
        card = hub.files("org/by-hand")["README.md"].decode()
    assert "DSE" in card
    assert "by-hand" in card
    assert (tmp_path / "run" / "README.md").read_text().startswith("---")
