"""Dialog2Flow: labels, pairs of one label, and the losses against the written-out formulas."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
import reference_models as reference
import torch

from hf_dialemb import Dialog2FlowConfig, Dialog2FlowModel, Dialogue, InputError, Turn
from hf_dialemb.methods.dialog2flow import METHOD, collate
from hf_dialemb.methods.layout import Truncation


def utterance(text, acts=(), *slots):
    return Dialogue((Turn("user", text, tuple(acts), tuple((name, "") for name in slots)),))


TALK = [
    utterance("a cheap hotel in the north", ["inform"], "price", "area"),
    utterance("some food in the centre", ["inform"], "area", "food"),
    utterance("the west and expensive", ["inform"], "area", "price"),
    utterance("which area please", ["request"], "area"),
    utterance("where should that be", ["request"], "area"),
    utterance("somewhere in the east, and when", ["inform", "request"], "area", "time"),
    utterance("yes please", ["agreement"]),
    utterance("that is right", ["agreement"]),
    utterance("thank you", ["thank you"]),
    utterance("so it is"),
]


def examples(dialogues=TALK, seed=0, **settings):
    made = METHOD.examples(dialogues, Dialog2FlowConfig(encoder_config=None, **settings), seed)
    made.label_vectors = reference.unit(len(made.label_texts), 4, 0).float().numpy()
    return made


def all_of(made, epoch=0):
    return [made.example(epoch, index) for index in range(len(made))]


def test_an_action_has_one_name_whatever_the_order_of_its_labels():
    made = examples()
    assert made.items[0].labels == ["agreement", "inform area, price", "request area"]
    assert made.label_texts == made.items[0].labels
    assert made.notes == ["Left out 3 of 6 actions: fewer than 2 utterances each"]
    # Pairs are two utterances of one label.
    pairs = [pair for example in all_of(made) for pair in example]
    assert len(pairs) == 6  # every utterance is an anchor once
    assert {pair.texts[0] for pair in pairs} == {
        TALK[place].turns[0].content for place in (0, 2, 3, 4, 6, 7)
    }
    for pair in pairs:
        assert pair.texts[0] != pair.texts[1]
        assert all(pair.label in labels for labels in pair.carried)
        assert np.array_equal(pair.vector, made.label_vectors[pair.label])


def test_the_joint_target_has_a_pair_of_acts_and_one_of_slots():
    made = examples(target="joint")
    acts, slots = made.items
    assert acts.labels == ["agreement", "inform", "request"]
    assert slots.labels == ["area", "price"]
    assert made.label_texts == ["agreement", "area", "inform", "price", "request"]
    assert acts.carried[acts.texts.index("somewhere in the east, and when")].tolist() == [1, 2]
    drawn = {
        slots.labels[example[1].label] for epoch in range(9) for example in all_of(made, epoch)
    }
    assert drawn == {"area", "price"}  # the longer space is walked as a whole
    for example in all_of(made):
        for space, pair in zip(made.items, example, strict=True):
            row = made.label_texts.index(space.labels[pair.label])
            assert np.array_equal(pair.vector, made.label_vectors[row])


def labels_of(space, text):
    return {space.labels[label] for label in space.carried[space.texts.index(text)] if label >= 0}


def test_a_single_utterance_without_acts_carries_its_intents():
    alone = [
        Dialogue((Turn("user", text, intents=intents),))
        for text, intents in (
            ("how do I block my card", ("block card", "help")),
            ("block this card please", ("block card",)),
        )
    ]
    both = Dialogue((Turn("user", "I would like help", ("inform",), intents=("help",)),))
    within = Dialogue((*alone[0].turns, Turn("assistant", "one moment", intents=("block card",))))
    made = examples([*TALK, *alone, both, within])
    assert made.items[0].labels == [
        "agreement",
        "inform area, price",
        "intent block card",
        "request area",
    ]
    assert labels_of(made.items[0], "how do I block my card") == {"intent block card"}
    assert "one moment" not in made.items[0].texts
    assert not any(
        label.startswith("intent")
        for space in examples([*TALK, *alone], target="joint").items
        for label in space.labels
    )


@pytest.mark.parametrize(("form", "count"), [("raw", 6), ("words", 4), ("both", 4)])
def test_utterances_that_their_form_makes_alike_are_one(form, count):
    spoken = [
        ("Thank you so much!", "thank"),
        ("Thank you so much.", "thank"),
        ("Thanks a lot", "thank"),
        ("thank you so much", "bye"),
        ("See you then", "bye"),
        ("So long then", "bye"),
    ]
    made = examples([utterance(text, [label]) for text, label in spoken], text_forms=form)
    assert len(made.items[0].texts) == count
    if form != "raw":
        assert labels_of(made.items[0], "Thank you so much!") == {"thank", "bye"}


@pytest.mark.parametrize(("balance", "ratio"), [(0.0, 10.0), (0.5, 10**0.5), (1.0, 1.0)])
def test_balance_evens_out_the_pairs_per_label(balance, ratio):
    many = [utterance(f"{number} of them please", ["inform"]) for number in range(100)]
    few = [utterance(f"is it {number} then", ["request"]) for number in range(10)]
    made = examples([*many, *few], label_balance=balance)
    counts = Counter(example[0].label for example in all_of(made))
    assert sum(counts.values()) == pytest.approx(110, abs=1)
    assert counts[0] / counts[1] == pytest.approx(ratio, rel=0.1)


@pytest.mark.parametrize("form", ["raw", "words", "both"])
def test_pairs_have_their_form(form):
    raw = ["Thank you, OK ?", "Thanks a lot!", "Is it OK ?", "So it is."]
    labels = ["thank you", "thank you", "confirm", "confirm"]
    made = examples(
        [utterance(text, [label]) for text, label in zip(raw, labels, strict=True)], text_forms=form
    )
    drawn = {
        text for epoch in range(20) for example in all_of(made, epoch) for text in example[0].texts
    }
    words = ["thank you ok ?", "thanks a lot", "is it ok ?", "so it is"]
    assert drawn == {"raw": {*raw}, "words": {*words}, "both": {*raw, *words}}[form]


def test_across_domains_a_pair_is_of_two_domains():
    spoken = [
        (domain, act, f"{act} {domain} {number}")
        for domain in ("hotel", "taxi", "")
        for act in ("inform", "request")
        for number in range(3)
    ]
    spoken += [("taxi", "confirm", f"confirm taxi {number}") for number in range(4)]
    dialogues = [
        Dialogue(utterance(text, [act]).turns, domains=(domain,) * bool(domain))
        for domain, act, text in spoken
    ]
    made = examples(dialogues, across_domains=True)
    assert [made.items[0].labels[example[0].label] for example in all_of(made)].count(
        "confirm"
    ) == 4
    kinds = {text: ("", "hotel", "taxi").index(domain) for domain, _, text in spoken}
    anchors = set()
    for epoch in range(4):
        for index, [pair] in enumerate(all_of(made, epoch)):
            anchor, positive = (kinds[text] for text in pair.texts)
            assert made.length(index) == anchor
            assert pair.texts[0] != pair.texts[1]
            assert (anchor == positive) == (pair.texts[0].startswith("confirm"))
            anchors.add(pair.texts[0])
    assert len(anchors) == len(spoken)  # every utterance has its turn
    assert {examples(dialogues).length(index) for index in range(len(spoken))} == {0}


def test_data_without_labels_is_an_error():
    for dialogues, settings, message in (
        (TALK[-1:], {}, "none of 1 dialogues has actions"),
        (
            [*TALK[6:9], utterance("oh thanks", ["thank you"])],
            {"target": "joint"},
            "none of 4 dialogues has slots",
        ),
        (TALK, {"min_utterances": 9}, "got 0 actions of at least 9 different utterances"),
        (TALK[6:9], {}, "got 1 actions of at least 2"),
        (
            TALK,
            {"across_domains": True},
            "utterances of one domain .none named., expected two or more; give dialogues",
        ),
    ):
        with pytest.raises(InputError, match=message):
            examples(dialogues, **settings)


def model_of(tiny_bert, **settings):
    torch.manual_seed(0)
    model, tokenizer = Dialog2FlowModel.from_backbone(
        tiny_bert, dropout=0.0, loss_temperature=0.5, **settings
    )
    return model.double(), tokenizer


def batch_of(actual, model, tokenizer):
    return collate(actual, tokenizer, model.config, Truncation())


def sides_of(model, batch, space, name, size=16):
    ids, mask = batch["input_ids"], batch["attention_mask"]
    pooled = [model(ids[:, row], mask[:, row]).pooler_output for row in (2 * space, 2 * space + 1)]
    cut = [torch.nn.functional.pad(vectors[:, :size], (0, 16 - size)) for vectors in pooled]
    return [model.project(vectors, name) for vectors in cut]


@pytest.mark.parametrize(("target", "dims"), [("single", []), ("joint", []), ("joint", [8, 3])])
def test_the_soft_loss_is_that_of_the_formula(tiny_bert, target, dims):
    model, tokenizer = model_of(tiny_bert, target=target, matryoshka_dims=dims)
    made = examples(target=target)
    # Utterances that carry each other's labels are likened by that (below), which is not in the
    # paper.
    batch = batch_of([made.example(0, 0), made.example(0, len(made) - 1)], model, tokenizer)
    batch["carried_labels"] = batch["carried_labels"].fill_(-1)
    batch["label_vectors"] = batch["label_vectors"].double()
    expected = 0.0
    with torch.no_grad():
        for (space, name), size in product(enumerate(model.heads), [16, *dims]):
            targets = reference.soft_targets(batch["label_vectors"][:, space], 0.35)
            sides = sides_of(model, batch, space, name, size)
            expected += reference.dialog2flow(*sides, targets, 0.5) / (1 + len(dims))
        assert abs(model(**batch).loss.item() - expected) < 1e-10


@torch.no_grad()
def test_the_hard_loss_is_the_formula_and_shared_labels_no_negatives(tiny_bert):
    model, tokenizer = model_of(tiny_bert, contrast="hard")
    actual = all_of(examples(contrast="hard"))
    batch, names = batch_of(actual, model, tokenizer), [example[0].label for example in actual]
    targets = [[(first == other) / names.count(first) for other in names] for first in names]
    expected = reference.dialog2flow(*sides_of(model, batch, 0, "actions"), targets, 0.5)
    assert abs(model(**batch).loss.item() - expected) < 1e-10
    model, tokenizer = model_of(tiny_bert, contrast="hard", target="joint")
    made = examples(contrast="hard", target="joint")
    labels, both = made.items[0].labels, "somewhere in the east, and when"
    pairs = {
        labels[e[0].label]: e
        for epoch in range(40)
        for e in all_of(made, epoch)
        if e[0].texts[1] == both
    }
    assert set(pairs) == {"inform", "request"}
    batch = batch_of([pairs["inform"], pairs["request"]], model, tokenizer)
    queries, candidates = sides_of(model, batch, 0, "acts")
    carried, drawn = batch["carried_labels"], batch["drawn_labels"][:, 0]
    # all targets are one half
    forwards = -torch.log_softmax(queries @ candidates.T / 0.5, dim=-1).mean()
    shared = torch.tensor(
        [[bool((carried[j, 0] == drawn[i]).any()) for j in (0, 1)] for i in (0, 1)]
    ).double()
    targets = shared / shared.sum(-1, keepdim=True)
    backwards = -(targets * torch.log_softmax(candidates @ queries.T / 0.5, dim=-1)).sum(-1).mean()
    loss = model._loss(torch.stack([queries, candidates], dim=1), carried[:, :2], drawn, None)
    assert torch.allclose(loss, (forwards + backwards) / 2, rtol=1e-10)
