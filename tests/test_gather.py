"""Negatives of other processes: two real processes have the gradients of one."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import torch
import torch.distributed as dist
from hf_dialemb.models import dialog2flow, dialogue_cse, dse
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.layout import Truncation

rank, folder, backbone = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)

def turn(number):
    acts = ("inform", "request", "offer")[number % 3 :: 2]
    slots = (("area", ""), ("food", ""), ("time", ""))[number % 2 : 1 + number % 3]
    return Turn(("user", "assistant")[number % 2], f"{number} rooms in area {number * 7 % 5} please", acts, slots)

dialogues = [Dialogue(tuple(turn(number) for number in range(start, start + 24)), str(start)) for start in (0, 24)]

def gradients(model, batch):
    model.zero_grad()
    model(**batch).loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}

def compare(module, **settings):
    torch.manual_seed(0)
    model, tokenizer = module.METHOD.model_class.from_backbone(backbone, dropout=0.0, **settings)
    model.double()
    made = module.METHOD.examples(dialogues, model.config, 0)
    if getattr(made, "label_texts", []):
        made.label_vectors = torch.randn(len(made.label_texts), 5, generator=torch.Generator().manual_seed(1)).numpy()
    everything = [made.example(0, index) for index in range(8)]
    make = lambda part: module.collate(part, tokenizer, model.config, Truncation())
    expected = gradients(model.eval(), make(everything))  # no process asks the other for anything
    expected = {name: gradient.clone() for name, gradient in expected.items()}
    found = gradients(model.train(), make(everything[rank::2]))
    scale = max(gradient.abs().max() for gradient in expected.values())
    for name, gradient in found.items():
        dist.all_reduce(gradient)
        assert (gradient / 2 - expected[name]).abs().max() < 1e-10 * scale, (module.__name__, settings, name)

for weights in ("hard", "printed", "plain"):
    compare(dse, negative_weights=weights, min_words=1)
compare(dse, min_words=1, chunk_size=3)
for target in ("single", "joint"):
    for contrast in ("soft", "hard"):
        compare(dialog2flow, target=target, contrast=contrast)
for context in ("matching", "siamese"):
    compare(dialogue_cse, context=context, num_negatives=3)
dist.destroy_process_group()
print("equal")
"""


@pytest.mark.slow
def test_two_processes_have_the_gradients_of_one(tiny_bert, tmp_path):
    words = [sys.executable, "-c", PROGRAM]
    runs = [
        subprocess.Popen([*words, str(rank), str(tmp_path), tiny_bert], stdout=-1, stderr=-1, text=True)
        for rank in (0, 1)
    ]
    for run in runs:
        output, errors = run.communicate(timeout=300)
        assert output.endswith("equal\n"), errors[-2000:]
