"""DialogueCSE: the matrices that it never makes, what its examples are, and its baselines."""

import pytest
import torch
from talks import dialogue
from torch.nn.functional import cosine_similarity

from hf_dialemb.errors import InputError
from hf_dialemb.methods.dialogue_cse import METHOD, DialogueCSEConfig, DialogueCSEModel, ResponseInContext, collate
from hf_dialemb.methods.layout import Truncation, tokenize_utterances

EXAMPLES = [
    ResponseInContext(
        ("a room for two please", "for which nights?", "from friday on"), ("yes book it",), "a hotel is free",
        ("the train leaves at nine", "what food do you want", "goodbye"),
    ),
    ResponseInContext((), ("is it cheap?", "it is", "fine then"), "i found a taxi", ("hello", "ok", "no it is not")),
    ResponseInContext(("hello",), (), "how can i help you today", ("which day", "bye now", "in the north of the town")),
]  # fmt: skip


def make(backbone: str, **settings: object):
    torch.manual_seed(1)
    model, tokenizer = DialogueCSEModel.from_backbone(backbone, **{"num_negatives": 3, **settings})
    return model.double(), tokenizer


def batch_of(model, tokenizer, examples=EXAMPLES):
    return collate(list(examples), tokenizer, model.config, Truncation())


def tokens_of(model, tokenizer, text: str) -> torch.Tensor:
    """The token vectors of a text alone, (L, D)."""
    batch = tokenize_utterances([text], tokenizer, model.config.max_tokens, Truncation())
    return model.encoder(**batch).last_hidden_state[0]


def reference_similarities(model, tokenizer, example: ResponseInContext, aggregate, factor: float) -> torch.Tensor:
    """Section 4 as it is printed, one utterance, one turn and one matrix after the other."""
    cosines = []
    for candidate in (example.response, *example.negatives):
        response = tokens_of(model, tokenizer, candidate)  # (L, D)
        refined, turns = [], []
        for text in (*example.previous, *example.following):
            turn = tokens_of(model, tokenizer, text)
            matching = turn @ response.T * factor  # (n, L)
            refined.append((matching @ response).mean(0))
            turns.append(turn)
        cosines.append(cosine_similarity(response.mean(0), aggregate(model, refined, turns, example), dim=0))
    return torch.stack(cosines)


def mean(model, refined, turns, example):
    return torch.stack(refined).mean(0)


def attention(model, refined, turns, example):
    scores = torch.cat([model.heads["turns"](vector) for vector in refined])
    return sum(weight * vector for weight, vector in zip(torch.softmax(scores, 0), refined, strict=True))


def official(model, refined, turns, example):
    scores = [model.heads["turns"](turn.sum(0) / model.config.max_tokens) for turn in turns]
    split = len(example.previous)
    weights = []
    for side in (scores[:split], scores[split:]):
        weights += [1 + weight for weight in torch.softmax(torch.cat(side), 0)] if side else []
    return sum(weight * vector for weight, vector in zip(weights, refined, strict=True))


@pytest.mark.parametrize(
    ("aggregation", "reference", "factor"),
    [("mean", mean, 0.25), ("attention", attention, 0.25), ("official", official, 0.1)],  # 0.25: the width is 16
    ids=["mean", "attention", "official"],
)
def test_similarities_equal_the_papers_matrices(tiny_bert, aggregation, reference, factor):
    model, tokenizer = make(tiny_bert, turn_aggregation=aggregation)
    batch = batch_of(model, tokenizer)
    output = model(**batch)
    expected = torch.stack([reference_similarities(model, tokenizer, entry, reference, factor) for entry in EXAMPLES])
    assert output.similarities.shape == (3, 4, 1)
    assert (output.similarities.squeeze(-1) - expected).abs().max() < 1e-10
    loss = -torch.log_softmax(expected / 0.1, dim=1)[:, 0].mean()
    assert abs(output.loss.item() - loss.item()) < 1e-10
    model.config.loss_scale = "official"
    assert abs(model(**batch).loss.item() - loss.item() / 4) < 1e-10
    assert expected.std() > 1e-3  # the figures tell candidates apart
    # Neither company nor order nor padding changes a result.
    alone = [model(**batch_of(model, tokenizer, [entry])) for entry in EXAMPLES]
    backwards = model(**batch_of(model, tokenizer, EXAMPLES[::-1]))
    padded = model(**{name: torch.nn.functional.pad(tensor, (0, 9)) for name, tensor in batch.items()})
    for name in ("similarities", "pooler_output"):
        for other in (torch.cat([entry[name] for entry in alone]), backwards[name].flip(0), padded[name]):
            assert torch.allclose(output[name], other, atol=1e-10)
    assert output.pooler_output.shape == (3, 16)
    assert torch.allclose(output.pooler_output[0], tokens_of(model, tokenizer, EXAMPLES[0].response).mean(0))
    # Nor does what stands in the rows of absent turns.
    absent = batch["attention_mask"].sum(-1) == 0
    assert absent[:, :6].sum(1).tolist() == [2, 3, 5]
    batch["input_ids"][absent] = tokenizer.mask_token_id
    assert torch.equal(model(**batch).similarities, output.similarities)
    model(**batch).loss.backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())
    batch["attention_mask"][1, :6] = 0
    with pytest.raises(InputError, match="context rows are all masked"):
        model(**batch)


def test_the_heads_begin_as_in_the_paper_and_the_program(tiny_bert):
    assert len(make(tiny_bert)[0].heads) == 0
    plain, program = (make(tiny_bert, turn_aggregation=name)[0].heads["turns"] for name in ("attention", "official"))
    assert [type(part).__name__ for part in plain] == ["Linear", "ReLU", "Linear"]
    assert [type(part).__name__ for part in program] == ["Linear", "Tanh", "Linear"]
    assert abs(program[0].weight.std().item() - 0.1) < 0.01
    assert program[0].bias.abs().max() > 0


@pytest.mark.parametrize("projection_size", [None, 8])
@pytest.mark.parametrize("context", ["siamese", "siamese_multi_turn"])
def test_siamese_baselines_are_cosines_of_two_embeddings(tiny_bert, context, projection_size):
    model, tokenizer = make(tiny_bert, context=context, projection_size=projection_size)
    texts = {
        "siamese": ["from friday on", "is it cheap?", "hello"],
        "siamese_multi_turn": [" ".join((*entry.previous, *entry.following)) for entry in EXAMPLES],
    }[context]
    head = model.heads["pairs"] if projection_size else torch.nn.Identity()

    def embedded(text):
        return head(tokens_of(model, tokenizer, text).mean(0))

    rows = []
    for text, example in zip(texts, EXAMPLES, strict=True):
        others = torch.stack([embedded(other) for other in (example.response, *example.negatives)])
        rows.append(cosine_similarity(embedded(text), others))
    expected, output = torch.stack(rows), model(**batch_of(model, tokenizer))
    assert (output.similarities.squeeze(-1) - expected).abs().max() < 1e-10
    assert abs(output.loss.item() + torch.log_softmax(expected / 0.1, 1)[:, 0].mean().item()) < 1e-10


def test_a_long_flattened_context_keeps_its_end_and_is_counted(tiny_bert):
    model, tokenizer = make(tiny_bert, context="siamese_multi_turn", max_tokens=8)
    count = Truncation()
    batch = collate(EXAMPLES[:1], tokenizer, model.config, count)
    assert batch["input_ids"].shape == (1, 5, 8)
    assert tokenizer.decode(batch["input_ids"][0, 0], skip_special_tokens=True).endswith("yes book it")
    assert 0 < count.truncated < 5
    assert count.unit == "utterances"


def made(dialogues, **settings):
    return METHOD.examples(dialogues, DialogueCSEConfig(**settings), seed=0)


def test_a_window_holds_the_nearest_turns_in_order():
    dialogues = [dialogue("u0", "a1", "u2", "a3", "u4", "a5"), dialogue("x", "y")]
    examples = made(dialogues, context_turns=2, num_negatives=1)
    assert [spoken.text for spoken in examples.items] == ["u0", "a1", "u2", "a3", "u4", "a5", "x", "y"]
    assert examples.example(0, 3) == (("a1", "u2"), ("u4", "a5"), "a3", ("y",))
    assert examples.example(0, 0) == ((), ("a1", "u2"), "u0", ("x",))
    assert examples.length(0) == 1
    assert examples.notes == []
    backwards = made(dialogues, next_turns=False, num_negatives=1)
    assert backwards.example(0, 0) == (("u0",), (), "a1", ("y",))
    assert backwards.notes == ["Left out 2 turns without a turn beside them"]
    # What a speaker says in one go is one turn.
    joined = dialogue("hi", "hello", "yes?", "a room", roles=("user", "assistant", "assistant", "user"))
    actual = made([joined, dialogue("x", "y")], num_negatives=1).example(0, 1)
    assert actual == (("hi",), ("a room",), "hello yes?", ("y",))


def test_negatives_have_the_responses_role_and_another_dialogue(sample_dialogues):
    examples = made(sample_dialogues)
    for index in range(0, len(examples), 7):
        spoken, example = examples.items[index], examples.example(0, index)
        others = [
            turn for place, entry in enumerate(sample_dialogues) if place != spoken.dialogue for turn in entry.turns
        ]
        assert example.response == spoken.text
        assert example.previous or example.following
        assert len(example.negatives) == 9
        assert {*example.negatives} <= {turn.content for turn in others if turn.role == spoken.role} - {spoken.text}


def test_the_only_other_utterance_is_drawn_among_many_equal_ones():
    dialogues = [dialogue("hello", f"number {n}") for n in range(400)] + [dialogue("rare", "bye")]
    assert made(dialogues, num_negatives=2).example(0, 0).negatives == ("rare", "rare")


def test_turns_that_cannot_be_learnt_from_are_counted():
    dialogues = [dialogue("hello", "one"), dialogue("hello", "two"), dialogue("alone")]
    examples = made([*dialogues[:2], dialogue("alone", roles=("assistant",))])
    assert [spoken.text for spoken in examples.items] == ["one", "two"]
    assert examples.notes == [
        "Left out 1 turns without a turn beside them",
        "Left out 2 turns whose role says nothing else in any other dialogue",
    ]
    with pytest.raises(InputError, match=r"got no turn with context and negatives from 1 dialogues \(1 turns have"):
        made([dialogues[2]])
    with pytest.raises(InputError, match="add dialogues of two speakers"):
        made([dialogues[0], dialogues[0]])
