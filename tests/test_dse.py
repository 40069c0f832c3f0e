"""DSE, the losses against their formula, what every utterance encoder shares, and negatives of other processes."""

import math
import subprocess
import sys

import pytest
import reference_models as reference
import torch
from reference_models import unit
from talks import dialogue

from hf_dialemb.errors import InputError
from hf_dialemb.methods.dse import DSEConfig, DSEExamples, DSEModel, collate
from hf_dialemb.methods.layout import Truncation, tokenize_utterances
from hf_dialemb.methods.losses import hard_targets, pair_contrastive, soft_targets

TALK = [
    dialogue("I need a cheap hotel", "For how many nights then", "Yes", "In which part of town"),
    dialogue("My card was stolen yesterday", "Please tell me its number"),
]


def pairs(dialogues, **settings):
    examples = DSEExamples(dialogues, DSEConfig(encoder_config=None, **settings), seed=0)
    return [examples.example(0, index) for index in range(len(examples))], examples.notes


def test_pairs_are_consecutive_utterances_of_a_dialogue():
    actual, notes = pairs(TALK)
    assert actual == [
        ("I need a cheap hotel", "For how many nights then"),
        ("My card was stolen yesterday", "Please tell me its number"),
    ]
    assert notes == ["Left out 2 pairs with a side of fewer than 4 words"]
    actual, _ = pairs(TALK, min_words=1)
    assert len(actual) == 4
    assert ("In which part of town", "My card was stolen yesterday") not in actual
    with pytest.raises(InputError, match=r"no pair of utterances from 1 dialogues \(1 are shorter than min_words 9"):
        pairs(TALK[1:], min_words=9)


@pytest.mark.parametrize("form", ["hard", "printed", "plain"])
def test_the_loss_of_a_batch_is_that_of_the_formula(tiny_bert, form):
    torch.manual_seed(0)
    model, tokenizer = DSEModel.from_backbone(tiny_bert, dropout=0.0, negative_weights=form, loss_temperature=0.5)
    ids, mask = collate(pairs(TALK, min_words=1)[0], tokenizer, model.double().config, Truncation()).values()
    with torch.no_grad():
        output = model(ids, mask)
        sides = [model.project(model(ids[:, side], mask[:, side]).pooler_output) for side in (0, 1)]
    assert abs(output.loss.item() - reference.dse(*sides, 0.5, form)) < 1e-10
    assert torch.allclose(output.similarities[:, 0, 0], (sides[0] * sides[1]).sum(-1))


def test_cut_and_empty_utterances_are_counted(tiny_bert):
    (model, tokenizer), count = DSEModel.from_backbone(tiny_bert), Truncation()
    batch = tokenize_utterances(["\u200b", "[SEP]", "1 2 3 4 5 6 7 8 9"], tokenizer, 8, count)
    assert str(count) == "1 of 3 utterances were truncated (3 of 14 tokens dropped); 1 gave no token"
    assert batch["input_ids"][1].tolist().count(tokenizer.sep_token_id) == 1
    assert tokenizer.decode(batch["input_ids"][2]) == "[CLS] 1 2 3 4 5 6 [SEP]"
    with torch.no_grad():
        assert not model(torch.tensor([[7, 8]]), torch.tensor([[0, 0]])).pooler_output.any()


def pairs_loss(queries, responses):
    rows = torch.cat([queries, responses])
    at = torch.arange(len(rows))
    return pair_contrastive(rows @ rows.T, at, at.roll(len(queries)), 0.5, "hard")


def test_gradients_of_weights_equal_finite_differences():
    queries, responses = unit(3, 4, 4).requires_grad_(), unit(3, 4, 5)
    assert torch.autograd.gradcheck(lambda queries: pairs_loss(queries, responses), queries)


def test_equal_rows_cost_as_much_as_guessing():
    rows = torch.ones(4, 3, dtype=torch.float64) / math.sqrt(3)
    assert math.isclose(pairs_loss(rows, rows).item(), math.log(7), rel_tol=1e-10)
    assert pairs_loss(unit(1, 4, 0), unit(1, 4, 1)).item() == 0


def test_soft_targets_become_hard_ones_as_their_temperature_falls():
    labels = unit(6, 4, 0)[[0, 1, 0, 2, 1, 0]]
    shared = (labels @ labels.T) > 1 - 1e-9
    assert torch.allclose(soft_targets(labels @ labels.T, shared, 1e-4), hard_targets(shared, labels))
    targets = soft_targets(torch.tensor([[1.0, 1.0, -0.3]]), torch.tensor([[True, False, True]]), 0.35)
    assert torch.allclose(targets, torch.full((1, 3), 1 / 3))


def test_gradient_caching_repeats_the_dropout_of_the_forward_pass(tiny_bert):
    # With dropout, a second pass with other random numbers would differentiate another function.
    def loss_and_gradient(chunk_size):
        torch.manual_seed(0)
        model, tokenizer = DSEModel.from_backbone(tiny_bert, dropout=0.3, chunk_size=chunk_size)
        model.train()
        batch = collate(pairs(TALK)[0], tokenizer, model.config, Truncation())
        torch.manual_seed(1)
        loss = model(**batch).loss
        loss.backward()
        return loss.item(), model.encoder.get_input_embeddings().weight.grad

    loss, gradient = loss_and_gradient(None)  # four utterances are one part without caching
    cached_loss, cached = loss_and_gradient(4)
    assert loss == cached_loss
    assert torch.allclose(gradient, cached, atol=1e-6)


PROGRAM = """
import sys
import torch
import torch.distributed as dist
from hf_dialemb.methods import dialog2flow, dialogue_cse, dse
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.methods.layout import Truncation

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
compare(dialogue_cse, num_negatives=3)
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
