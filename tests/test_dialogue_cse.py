"""DialogueCSE: the matrices that it never makes, what its examples are, and its baselines."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.models.context_matching import matching_guided, mean_of_turns, turn_weights
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.dialogue_cse import DialogueCSEConfig, DialogueCSEModel, collate
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation, tokenize_utterances
from hf_dialemb.models.responses_in_context import DialogueCSEExamples, ResponseInContext
from hf_dialemb.training.arguments import parse
from hf_dialemb.training.run import train

EXAMPLES = [
    ResponseInContext(
        ("a room for two please", "for which nights?", "from friday on"), ("yes book it",), "a hotel is free",
        ("the train leaves at nine", "what food do you want", "goodbye"),
    ),
    ResponseInContext((), ("is it cheap?", "it is", "fine then"), "i found a taxi", ("hello", "ok", "no it is not")),
    ResponseInContext(("hello",), (), "how can i help you today", ("which day", "bye now", "in the north of the town")),
]  # fmt: skip


def make(backbone: str, double: bool = True, **settings: object):
    torch.manual_seed(1)
    model, tokenizer = DialogueCSEModel.from_backbone(backbone, **{"num_negatives": 3, **settings})
    return (model.double() if double else model), tokenizer


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
def test_it_equals_the_matrices(tiny_bert, aggregation, reference, factor):
    model, tokenizer = make(tiny_bert, turn_aggregation=aggregation)
    output = model(**batch_of(model, tokenizer))
    expected = torch.stack([reference_similarities(model, tokenizer, each, reference, factor) for each in EXAMPLES])
    assert output.similarities.shape == (3, 4, 1)
    assert (output.similarities.squeeze(-1) - expected).abs().max() < 1e-10
    loss = -torch.log_softmax(expected / 0.1, dim=1)[:, 0].mean()
    assert abs(output.loss.item() - loss.item()) < 1e-10
    assert expected.std() > 1e-3  # the figures tell candidates apart


def test_pooled_matching_equals_matrices_of_random_numbers():
    generator = torch.Generator().manual_seed(0)
    turn, response = (torch.randn(n, 8, generator=generator, dtype=torch.float64) for n in (5, 7))
    expected = ((turn @ response.T / math.sqrt(8)) @ response).mean(0)
    padded = torch.cat([response, torch.full((2, 8), 3.0, dtype=torch.float64)])
    mask = torch.tensor([[1] * 7 + [0] * 2])
    result = matching_guided(padded.unsqueeze(0), mask, turn.mean(0).view(1, 1, 8))
    assert torch.allclose(result[0, 0], expected, atol=1e-12)


def test_absent_turns_have_no_weight_and_no_part():
    turns, present = torch.tensor([[[2.0], [99.0], [4.0]]]), torch.tensor([[True, False, True]])
    assert mean_of_turns(turns, present).flatten().tolist() == [3.0]
    assert turn_weights(torch.tensor([[1.0, 50.0, 1.0]]), present).tolist() == [[0.5, 0.0, 0.5]]
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    assert mean_of_turns(turns, nothing).flatten().tolist() == [0.0]
    assert turn_weights(torch.zeros(1, 3), nothing).isfinite().all()


@pytest.mark.parametrize("aggregation", ["mean", "attention", "official"])
def test_company_order_and_padding_change_nothing(tiny_bert, aggregation):
    model, tokenizer = make(tiny_bert, turn_aggregation=aggregation)
    together = model(**batch_of(model, tokenizer))
    alone = [model(**batch_of(model, tokenizer, [each])) for each in EXAMPLES]
    backwards = model(**batch_of(model, tokenizer, EXAMPLES[::-1]))
    padded = {name: torch.nn.functional.pad(tensor, (0, 9)) for name, tensor in batch_of(model, tokenizer).items()}
    for name in ("similarities", "pooler_output"):
        assert torch.allclose(together[name], torch.cat([each[name] for each in alone]), atol=1e-10)
        assert torch.allclose(together[name], backwards[name].flip(0), atol=1e-10)
        assert torch.allclose(together[name], model(**padded)[name], atol=1e-10)
    assert together.pooler_output.shape == (3, 16)
    assert torch.allclose(together.pooler_output[0], tokens_of(model, tokenizer, EXAMPLES[0].response).mean(0))


@pytest.mark.parametrize("aggregation", ["mean", "attention", "official"])
def test_what_stands_in_the_rows_of_absent_turns_does_not_matter(tiny_bert, aggregation):
    model, tokenizer = make(tiny_bert, turn_aggregation=aggregation)
    batch = batch_of(model, tokenizer)
    absent = batch["attention_mask"].sum(-1) == 0
    assert absent[:, :6].sum(1).tolist() == [2, 3, 5]
    before = model(**batch).similarities
    batch["input_ids"][absent] = tokenizer.mask_token_id
    assert torch.equal(model(**batch).similarities, before)
    model(**batch).loss.backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("aggregation", ["mean", "attention", "official"])
def test_gradient_caching_gives_the_same_gradients(tiny_bert, aggregation):
    gradients = []
    for chunk_size in (None, 4):
        model, tokenizer = make(tiny_bert, turn_aggregation=aggregation, chunk_size=chunk_size)
        model(**batch_of(model, tokenizer)).loss.backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    assert len(gradients[0]) > 20
    assert all(torch.allclose(gradients[0][name], gradients[1][name], atol=1e-12) for name in gradients[0])


def test_the_official_scale_divides_the_loss_by_the_candidates(tiny_bert):
    losses = []
    for scale in ("sum", "official"):
        model, tokenizer = make(tiny_bert, loss_scale=scale)
        losses.append(model(**batch_of(model, tokenizer)).loss.item())
    assert math.isclose(losses[0], 4 * losses[1], rel_tol=1e-12)


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
        "siamese_multi_turn": [" ".join((*each.previous, *each.following)) for each in EXAMPLES],
    }[context]
    head = model.heads["pairs"] if projection_size else torch.nn.Identity()
    expected = torch.stack(
        [
            torch.stack(
                [
                    cosine_similarity(*(head(tokens_of(model, tokenizer, t).mean(0)) for t in (text, other)), dim=0)
                    for other in (example.response, *example.negatives)
                ]
            )
            for text, example in zip(texts, EXAMPLES, strict=True)
        ]
    )
    output = model(**batch_of(model, tokenizer))
    assert (output.similarities.squeeze(-1) - expected).abs().max() < 1e-10
    assert abs(output.loss.item() + torch.log_softmax(expected / 0.1, 1)[:, 0].mean().item()) < 1e-10


def test_a_flattened_context_that_is_too_long_keeps_its_end_and_is_counted(tiny_bert):
    model, tokenizer = make(tiny_bert, context="siamese_multi_turn", max_tokens=8)
    count = Truncation()
    batch = collate(EXAMPLES[:1], tokenizer, model.config, count)
    assert batch["input_ids"].shape == (1, 5, 8)
    assert tokenizer.decode(batch["input_ids"][0, 0], skip_special_tokens=True).endswith("yes book it")
    assert 0 < count.truncated < 5
    assert count.unit == "utterances"


def conversation(*texts: str, roles: str = "ua") -> Dialogue:
    names = {"u": "user", "a": "assistant"}
    messages = [{"role": names[roles[i % len(roles)]], "content": text} for i, text in enumerate(texts)]
    return Dialogue.from_messages(messages)


def test_a_window_holds_the_nearest_turns_in_order():
    config = DialogueCSEConfig(context_turns=2, num_negatives=1)
    dialogues = [conversation("u0", "a1", "u2", "a3", "u4", "a5"), conversation("x", "y")]
    examples = DialogueCSEExamples(dialogues, config, seed=0)
    assert [said.text for said in examples.items] == ["u0", "a1", "u2", "a3", "u4", "a5", "x", "y"]
    assert examples.example(0, 3) == (("a1", "u2"), ("u4", "a5"), "a3", ("y",))
    assert examples.example(0, 0) == ((), ("a1", "u2"), "u0", ("x",))
    assert examples.notes == []
    backwards = DialogueCSEExamples(dialogues, DialogueCSEConfig(next_turns=False, num_negatives=1), seed=0)
    assert backwards.example(0, 0) == (("u0",), (), "a1", ("y",))
    assert backwards.notes == ["Left out 2 turns without a turn beside them"]


def test_what_a_speaker_says_in_one_go_is_one_turn():
    dialogues = [conversation("hi", "hello", "yes?", "a room", roles="uaau"), conversation("x", "y")]
    examples = DialogueCSEExamples(dialogues, DialogueCSEConfig(num_negatives=1), seed=0)
    assert examples.example(0, 1) == (("hi",), ("a room",), "hello yes?", ("y",))


def test_negatives_have_the_role_of_the_response_and_come_from_other_dialogues(sample_dialogues):
    examples = DialogueCSEExamples(sample_dialogues, DialogueCSEConfig(), seed=0)
    sources: dict[tuple[str, str], set[int]] = {}
    for number, dialogue in enumerate(sample_dialogues):
        for turn in dialogue.turns:
            sources.setdefault((turn.role, turn.content), set()).add(number)
    for index in range(0, len(examples), 7):
        said, example = examples.items[index], examples.example(0, index)
        assert example.response == said.text
        assert example.previous or example.following
        assert len(example.negatives) == 9
        for negative in example.negatives:
            assert negative != said.text
            assert sources[said.role, negative] - {said.dialogue}


def test_examples_are_a_pure_function_of_seed_epoch_and_index(sample_dialogues):
    one, two = (DialogueCSEExamples(sample_dialogues, DialogueCSEConfig(), seed=3) for _ in range(2))
    assert one.example(1, 5) == two.example(1, 5)
    assert [one.example(0, i) for i in (4, 2)] == [two.example(0, i) for i in (4, 2)]
    assert one.example(0, 5) != one.example(1, 5)
    assert one.example(0, 5) != DialogueCSEExamples(sample_dialogues, DialogueCSEConfig(), seed=4).example(0, 5)
    assert one.length(5) == 1


def test_a_single_other_utterance_is_found_among_many_of_the_same_text():
    dialogues = [conversation("hello", f"number {n}") for n in range(400)] + [conversation("rare", "bye")]
    examples = DialogueCSEExamples(dialogues, DialogueCSEConfig(num_negatives=2), seed=0)
    assert examples.example(0, 0).negatives == ("rare", "rare")


def test_turns_that_cannot_be_learnt_from_are_counted():
    dialogues = [conversation("hello", "one"), conversation("hello", "two"), conversation("alone")]
    examples = DialogueCSEExamples([*dialogues[:2], conversation("alone", roles="a")], DialogueCSEConfig(), seed=0)
    assert [said.text for said in examples.items] == ["one", "two"]
    assert examples.notes == [
        "Left out 1 turns without a turn beside them",
        "Left out 2 turns whose role says nothing else in any other dialogue",
    ]
    with pytest.raises(InputError, match=r"got no turn with context and negatives from 1 dialogues \(1 turns have"):
        DialogueCSEExamples([dialogues[2]], DialogueCSEConfig(), seed=0)
    with pytest.raises(InputError, match="add dialogues of two speakers"):
        DialogueCSEExamples([dialogues[0], dialogues[0]], DialogueCSEConfig(), seed=0)


def test_a_batch_without_context_is_refused(tiny_bert):
    model, tokenizer = make(tiny_bert)
    batch = batch_of(model, tokenizer)
    batch["attention_mask"][1, :6] = 0
    with pytest.raises(InputError, match="context rows are all masked"):
        model(**batch)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"num_negatives": 0}, "num_negatives: got 0"),
        ({"context_turns": 0}, "context_turns: got 0"),
        ({"loss_temperature": 0.0}, "loss_temperature: got 0.0"),
        ({"projection_size": 64}, "context matching has no head"),
        ({"context": "siamese", "turn_aggregation": "attention"}, "no turns to aggregate"),
    ],
)
def test_wrong_settings_say_what_is_wrong(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        DialogueCSEConfig(**settings)


@pytest.mark.parametrize("family", ["roberta", "mpnet", "distilbert", "modernbert"])
def test_other_backbones_learn_too(tiny_backbones, family):
    model, tokenizer = make(tiny_backbones[family], double=False)
    model(**batch_of(model, tokenizer)).loss.backward()
    assert any(parameter.grad is not None and parameter.grad.abs().max() > 0 for parameter in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{}, {"turn_aggregation": "official", "chunk_size": 8}, {"context": "siamese_multi_turn", "projection_size": 16}],
    ids=["matching", "official", "siamese"],
)
def test_training_ends_in_a_checkpoint_that_loads(tiny_bert, tmp_path, settings):
    words = {
        "method": "dialogue_cse", "backbone": tiny_bert, "corpus": "sample", "train_split": "dev", "dev_split": "test",
        "max_dev_dialogues": 5, "checkpoint_selection": "contrastive_accuracy", "use_cpu": True, "max_steps": 2,
        "save_steps": 1, "per_device_train_batch_size": 4, "output_dir": tmp_path, "disable_tqdm": True, **settings,
    }  # fmt: skip
    lines: list[str] = []
    train(parse(None, [word for name, value in words.items() for word in (f"--{name}", str(value))]), lines.append)
    assert any("Trained 2 steps" in line for line in lines)
    model, tokenizer = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert type(model) is DialogueCSEModel
    batch = batch_of(model, tokenizer, [EXAMPLES[0]._replace(negatives=("ok",) * 9)])
    assert model.eval()(**batch).similarities.shape == (1, 10, 1)
    assert np.isfinite(model(**batch).loss.item())
