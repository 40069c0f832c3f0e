"""Train and push, load by id without the package, fine-tune with sentence-transformers, push, and
load again."""

import numpy as np
import pytest
from afresh import printed_afresh
from publish_folders import hub_of_this_process
from talks import CHATS
from transformers import TrainingArguments

import hf_dialemb
from hf_dialemb import DialogueTrainer, DSEModel

pytestmark = pytest.mark.slow

USE = """
import sys
import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
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
columns = {"anchor": ["A hotel.", "My card is lost."], "positive": ["Which one?", "Since when?"]}
settings = {"max_steps": 1, "learning_rate": 0.0, "report_to": "none", "use_cpu": True}
arguments = SentenceTransformerTrainingArguments(sys.argv[2], **settings)
loss = MultipleNegativesRankingLoss(model)
trainer = SentenceTransformerTrainer(model, arguments, Dataset.from_dict(columns), loss=loss)
trainer.train()
model.push_to_hub("org/calls", exist_ok=True)
again = SentenceTransformer("org/calls", device="cpu", **options)
vectors["tuned"] = again.encode(MESSAGES)
np.savez(sys.argv[3], **vectors)
"""


@pytest.mark.habit(
    "train with push_to_hub, load by id, fine-tune with sentence-transformers, push, load", "works"
)
@pytest.mark.parametrize("method", ["dse", "dial2vec"])
def test_a_pushed_model_is_loaded_tuned_and_pushed_again(method, tiny_bert, tmp_path):
    settings = {
        "max_steps": 2,
        "max_dialogues": 20,
        "exclude": "none",
        "disable_tqdm": True,
        "backbone": tiny_bert,
    }
    settings |= {"push_to_hub": True, "hub_model_id": "org/calls", "hub_private_repo": True}
    with hub_of_this_process() as hub:
        run = hf_dialemb.train(method, "sample", output_dir=tmp_path / "run", **settings)
        assert hub.get("models", "org/calls").private
        files = hub.files("models", "org/calls")
        assert {"README.md", "config.json", "model.safetensors", "modules.json"} <= files.keys()
        assert (
            not {"training_args.bin", "training_texts.json", "training_settings.json"}
            & files.keys()
        )
        words = [method, tmp_path / "tuned", tmp_path / "vectors.npz"]
        printed_afresh(
            USE.replace("MESSAGES", repr(CHATS)),
            *words,
            environment=hub.environment(tmp_path / "cache"),
        )
    expected, vectors = run.encoder().encode(CHATS), np.load(tmp_path / "vectors.npz")
    for way in ("loaded", "AutoModel", "tuned"):
        assert np.abs(vectors[way] - expected).max() <= 1e-5 * np.abs(expected).max(), way


@pytest.mark.habit(
    "Trainer(push_to_hub=True), trainer.push_to_hub()", "the exported form with the project's card"
)
def test_a_trainer_by_hand_pushes_its_end(tiny_bert, sample_dialogues, tmp_path):
    model, tokenizer = DSEModel.from_backbone(tiny_bert)
    with hub_of_this_process() as hub:
        arguments = TrainingArguments(
            str(tmp_path / "run"),
            max_steps=1,
            push_to_hub=True,
            hub_model_id="org/by-hand",
            hub_private_repo=True,
            report_to="none",
            use_cpu=True,
        )
        trainer = DialogueTrainer(
            model, arguments, train_dataset=sample_dialogues[:20], processing_class=tokenizer
        )
        trainer.train()
        trainer.push_to_hub()
        assert hub.get("models", "org/by-hand").private
        *commits, _ = hub.history("models", "org/by-hand")  # the first is empty
    [files] = [commit.files for commit in commits]
    assert {"README.md", "config.json", "model.safetensors", "modules.json"} <= files.keys()
    assert not [
        name for name in files if name.endswith((".bin", ".pt")) or name.startswith("training_")
    ]
    card = files["README.md"].decode()
    assert "DSE" in card
    assert "by-hand" in card
