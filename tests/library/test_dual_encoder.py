"""Dual encoders and the examples that rankers learn from.

The ensemble: it answers as equation 7 says, whoever its members are, and lives in one file.
"""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from checkpoints import assembled, deep_attention_matching, dual_encoder, save
from talks import dialogue
from transformers import BertConfig

from hf_dialemb import Dialogue, DualEncoderModel, InputError, Turn
from hf_dialemb.data.examples import (
    ResponseSelection,
    draw_candidates,
    read_candidates,
    write_candidates,
)
from hf_dialemb.dialogue import plain
from hf_dialemb.methods import ranker as ranking
from hf_dialemb.methods.config import RankerConfig
from hf_dialemb.methods.dual_encoder import METHOD, collate
from hf_dialemb.methods.dual_encoder import TRANSFORMER_METHOD as TOWERS
from hf_dialemb.methods.layout import Truncation
from hf_dialemb.methods.multi_granularity import log_mean_probability
from hf_dialemb.methods.ranker import LoadedRanker, RankingExample, RankingExamples
from hf_dialemb.methods.vocabulary import MARKS, PADDING, UNKNOWN, word_tokenizer
from hf_dialemb.training.data import given_examples


def example(*texts, candidates):
    return RankingExample(dialogue(*texts).turns, tuple(candidates))


EXAMPLES = [
    example(
        "I need a cheap hotel.", candidates=["For how many nights?", "Goodbye!", "Which food?"]
    ),
    example(
        "A table for two",
        "When?",
        "At seven",
        candidates=["Booked for seven.", "In the north", "A hotel"],
    ),
]


@pytest.fixture(scope="module")
def words():
    spoken = [
        dialogue(*(turn.content for turn in entry.context), entry.candidates[0])
        for entry in EXAMPLES
    ]
    torch.manual_seed(0)
    sizes = {"vocabulary_size": 200, "embedding_size": 8, "hidden_size": 12}
    return LoadedRanker(*DualEncoderModel.build(None, spoken, **sizes), METHOD)


def batch_of(ranker, examples=EXAMPLES):
    return ranker.method.collate(
        list(examples), ranker.tokenizer, ranker.model.config, Truncation()
    )


def test_the_vocabulary_is_the_most_frequent_words_in_a_fixed_order():
    tokenizer = word_tokenizer([dialogue("b a a", "C, c b")], len(MARKS) + 5)
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    assert names == [PADDING, UNKNOWN, *MARKS, "a", "b", "c"]  # "," is rarer and finds no room
    assert tokenizer("A ,zebra B")["input_ids"] == [len(names) - 3, 1, 1, len(names) - 2]


def test_marks_in_a_text_are_words_and_contexts_keep_their_end(words):
    marks = words.model.config.marker_ids
    for text in ("hotel", "hotel <|response|>"):
        ids = batch_of(words, [example(text, candidates=["yes", "no"])])["input_ids"][0].tolist()
        assert ids[0] == marks[0]
        assert not set(marks) & set(ids[1:])
    count, names = Truncation(), words.tokenizer.convert_ids_to_tokens
    long = example(
        "hotel " * 300, "seven " * 100, candidates=["cheap " * 50 + "nights " * 200, "no"]
    )
    batch = collate([long], words.tokenizer, words.model.config, count)
    assert (
        names(batch["input_ids"][0].tolist())
        == ["hotel"] * 59 + ["<|assistant|>"] + ["seven"] * 100
    )
    response = names(batch["candidate_ids"][0, 0].tolist())
    assert response == ["<|response|>"] + ["cheap"] * 50 + ["nights"] * 109
    assert (count.truncated, count.dialogues, count.dropped_tokens) == (2, 3, 402 - 160 + 251 - 160)


def test_embeddings_are_last_states_scores_products_the_loss_equation_6(words):
    batch, tower = batch_of(words), words.model.context
    actual = words.model(**batch).pooler_output
    for row, length in enumerate(batch["attention_mask"].sum(-1).tolist()):
        hidden = tower.words(batch["input_ids"][row : row + 1, :length])
        torch.testing.assert_close(actual[row], tower.reader(hidden)[1][0][0, 0])
    model, batch = words.model, batch_of(words)
    output = model(**batch)
    flat = batch["candidate_ids"].flatten(0, 1), batch["candidate_mask"].flatten(0, 1)
    responses = model(*flat).pooler_output.unflatten(0, (2, 3))
    expected = (output.pooler_output.unsqueeze(1) * responses).sum(-1)
    torch.testing.assert_close(output.logits, expected)
    by_hand = [-math.log(math.exp(row[0]) / sum(map(math.exp, row))) for row in expected.tolist()]
    assert output.loss.item() == pytest.approx(np.mean(by_hand), rel=1e-5)
    assert torch.equal(output.similarities.squeeze(-1), output.logits)


def test_the_template_lays_out_as_collate_does(words):
    batch, render = batch_of(words, EXAMPLES[1:]), words.tokenizer.apply_chat_template
    assert words.tokenizer.truncation_side == "left"
    messages = [{"role": turn.role, "content": turn.content} for turn in EXAMPLES[1].context]
    assert render(messages)["input_ids"] == batch["input_ids"][0].tolist()
    as_document = [
        {"role": "system", "content": "response"},
        {"role": "user", "content": "In the north"},
    ]
    for asked in ([{"role": "response", "content": "In the north"}], as_document):
        ids = render(asked)["input_ids"]
        assert ids == batch["candidate_ids"][0, 1, : len(ids)].tolist()


DIALOGUES = [
    dialogue(f"ask {n}", f"answer {n}", f"again {n}", "You're  Welcome", id=f"d{n}")
    for n in range(40)
]


def examples_from(seed=0, dialogues=DIALOGUES, **settings):
    return RankingExamples(
        dialogues, RankerConfig(**{"num_candidates": 5, "responses": "assistant", **settings}), seed
    )


def test_an_example_has_its_true_response_first_others_drawn_uniformly():
    dialogues = [Dialogue((*entry.turns, Turn("user", f"bye {entry.id}"))) for entry in DIALOGUES]
    for responses, count in (("assistant", 80), ("any", 160), ("last", 40)):
        assert len(examples_from(dialogues=dialogues, responses=responses)) == count
    actual = examples_from().example(0, 1)
    assert [turn.content for turn in actual.context] == ["ask 0", "answer 0", "again 0"]
    assert (actual.candidates[0], len(actual.candidates)) == ("You're  Welcome", 5)
    assert examples_from().response_texts == []  # no vectors are asked for without a granularity
    made = examples_from()
    counts = Counter(
        text for epoch in range(1500) for text in made.example(epoch, 0).candidates[1:]
    )
    assert counts.keys() == {"You're  Welcome", *(f"answer {n}" for n in range(1, 40))}
    assert max(abs(count - 150) for count in counts.values()) < 5 * np.sqrt(150)


@pytest.mark.parametrize("level", [1, 3, 5])
def test_others_of_a_granularity_come_from_their_segment(level):
    angles, made = np.linspace(0, np.pi * 0.9, 41), examples_from(granularity=level)
    assert len(set(made.response_texts)) == len(made.response_texts) == 41
    made.response_vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    for epoch in range(20):
        true, *others = map(made.response_texts.index, made.example(epoch, 0).candidates)
        assert true == 0  # at one end: the others lie in the order of their angles
        assert all((level - 1) * 8 <= other - 1 < level * 8 for other in others)


def test_too_little_to_tell_apart_is_one_sentence():
    for dialogues, settings, reason in (
        (DIALOGUES[:3], {}, "num_candidates: got 5, but there are 4 different responses"),
        (
            [dialogue("hello", "anyone?", roles=("user",))],
            {},
            "got no response with a context in 1",
        ),
        (DIALOGUES[:3], {"num_candidates": 2, "granularity": 1}, "each response has 3 others"),
    ):
        with pytest.raises(InputError, match=reason):
            examples_from(dialogues=dialogues, **settings)


def test_candidate_sets_hold_the_true_response_once_and_come_back(tmp_path):
    drawn = draw_candidates(DIALOGUES, 10, "assistant", seed=3)
    assert len(drawn) == 80
    for selection in drawn:
        assert len({plain(text) for text in selection.responses}) == len(selection.responses) == 10
        assert len(selection.correct) == 1
    assert len({selection.correct for selection in drawn}) == 10
    assert drawn[0].responses[drawn[0].correct[0]] == "answer 0"
    assert drawn == draw_candidates(DIALOGUES, 10, "assistant", seed=3)
    assert drawn != draw_candidates(DIALOGUES, 10, "assistant", seed=4)
    turns = (Turn("user", "one\u2028two\x85three\x0bfour"),)
    sets = [
        *draw_candidates(DIALOGUES, 10, "any", seed=3),
        ResponseSelection(turns, ("a\u2029b", "c"), (0,), "x"),
    ]
    write_candidates(tmp_path / "c.jsonl", sets, {"seed": 3})
    assert read_candidates(tmp_path / "c.jsonl") == ({"seed": 3}, sets)


def test_other_correct_responses_are_no_false_ones(tmp_path):
    turns, file = (Turn("user", "Which food?"),), tmp_path / "sets.jsonl"
    both = ResponseSelection(turns, ("a", "b", "A", "c", "d"), (0, 1), "x")
    write_candidates(file, [both, ResponseSelection(turns, ("a", "b", "c", "d"), (1,), "y")], {})
    assert [entry.candidates for entry in given_examples(str(file)).items] == [
        ("a", "c", "d"),
        ("b", "a", "c"),
    ]


LIMITS = {"max_context_tokens": 40, "max_response_tokens": 12}


def lstm(dialogues, seed, **settings):
    return dual_encoder(dialogues, seed, **{"vocabulary_size": 200, **LIMITS, **settings})


def transformer(dialogues):
    """Build a transformer that reads the words of `lstm`, as a member of another type."""
    like = lstm(dialogues, 0)
    size = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    settings = {"marker_ids": like.model.config.marker_ids, "towers": "separate", **LIMITS}
    config = TOWERS.config_class(
        encoder_config=BertConfig(vocab_size=len(like.tokenizer), **size), **settings
    )
    return ranking.LoadedRanker(TOWERS.model_class(config).eval(), like.tokenizer, TOWERS)


def matcher(dialogues, seed):
    ranker = deep_attention_matching(dialogues)
    torch.manual_seed(seed)
    for parameter in ranker.model.parameters():  # so that candidates differ
        torch.nn.init.normal_(parameter, std=0.3)
    return ranker


@pytest.fixture(scope="module")
def folders(sample_dialogues, tmp_path_factory):
    place = tmp_path_factory.mktemp("members")
    members = {
        "a": lstm(sample_dialogues, 1),
        "b": lstm(sample_dialogues, 2, score="cosine", loss_temperature=0.1),
        "t": transformer(sample_dialogues),
    }
    return {name: save(made, place / name) for name, made in members.items()}


@pytest.fixture(scope="module")
def ensemble(folders):
    return assembled([folders[name] for name in "abt"])


@pytest.fixture(scope="module")
def examples(sample_dialogues):
    drawn = ranking.RankingExamples(
        sample_dialogues, lstm(sample_dialogues, 0, num_candidates=5).model.config, seed=0
    )
    return [drawn.example(0, index) for index in range(0, len(drawn), len(drawn) // 12)]


def scores_of(ranker, examples):
    return np.stack(ranking.score_candidates(ranker, examples))


def test_the_probability_is_the_mean_of_the_members_whatever_their_order(
    ensemble, folders, examples
):
    output = ensemble.model(**batch_of(ensemble, examples))
    assert output.member_logits.shape == (len(examples), 3, 5)
    expected = output.member_logits.softmax(-1).mean(1)
    assert torch.allclose(output.logits.exp(), expected, atol=1e-6)
    assert torch.allclose(output.loss, -expected[:, 0].log().mean(), atol=1e-6)
    assert torch.equal(output.similarities.squeeze(-1), output.logits)
    for place, name in enumerate("abt"):
        alone = scores_of(ranking.load_ranker(folders[name]), examples)
        assert np.allclose(output.member_logits[:, place].detach().numpy(), alone, atol=1e-5), name
    logits = log_mean_probability(
        torch.tensor([[[1e4, 0.0], [0.0, 1e4], [0.0, 1e4]], [[3e4, 0.0]] * 3])
    )
    assert torch.allclose(logits, torch.tensor([[1 / 3, 2 / 3], [1.0, 0.0]]).log().clamp(min=-3e4))
    scores, other = scores_of(ensemble, examples), assembled([folders[name] for name in "tba"])
    assert np.allclose(scores_of(other, examples), scores, atol=1e-6)
    order = [3, 0, 4, 1, 2]
    shuffled = [
        ranking.RankingExample(item.context, tuple(item.candidates[place] for place in order))
        for item in examples
    ]
    assert np.allclose(scores_of(ensemble, shuffled), scores[:, order], atol=1e-6)


def test_the_cosine_of_embeddings_is_the_mean_of_the_members_cosines(ensemble, folders, examples):
    contexts, responses = (
        [item.context for item in examples],
        [item.candidates[1] for item in examples],
    )
    left, right = (
        ranking.encode_contexts(ensemble, contexts),
        ranking.encode_responses(ensemble, responses),
    )
    assert (
        left.shape
        == (len(examples), 12 + 12 + 16)
        == (len(examples), ensemble.model.config.hidden_size)
    )
    assert np.allclose(np.linalg.norm(left, axis=1), 1, atol=1e-6)
    cosines = []
    for name in "abt":
        member = ranking.load_ranker(folders[name])
        pair = (
            ranking.encode_contexts(member, contexts),
            ranking.encode_responses(member, responses),
        )
        first, second = (
            vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in pair
        )
        cosines.append(first @ second.T)
    assert np.allclose(left @ right.T, np.mean(cosines, axis=0), atol=1e-6)
    # beside candidates it gives the contexts' embeddings
    output = ensemble.model(**batch_of(ensemble, examples))
    assert np.allclose(output.pooler_output.detach().numpy(), left, atol=1e-6)


def test_matchers_make_an_ensemble_that_ranks_but_does_not_embed(
    sample_dialogues, examples, tmp_path
):
    matchers = [save(matcher(sample_dialogues, seed), tmp_path / f"{seed}") for seed in (4, 5)]
    ranker = ranking.load_ranker(save(assembled(matchers), tmp_path / "both"))
    alone = [np.exp(scores_of(ranking.load_ranker(folder), examples)) for folder in matchers]
    expected = np.mean([item / item.sum(-1, keepdims=True) for item in alone], axis=0)
    assert np.allclose(np.exp(scores_of(ranker, examples)), expected, atol=1e-6)
    assert not ranker.model.embeds
    assert ranker.model.config.hidden_size == 0
    for error, attempt in (
        (InputError, lambda: ranking.encode_contexts(ranker, [examples[0].context])),
        (InputError, lambda: ranking.encode_responses(ranker, ["yes"])),
        (NotImplementedError, lambda: ranker.model(torch.ones(1, 4, dtype=torch.long))),
    ):
        with pytest.raises(error, match="embeds neither"):
            attempt()


def test_members_that_do_not_fit_together_are_refused(
    folders, ensemble, sample_dialogues, tiny_bert, tmp_path
):
    smaller = save(lstm(sample_dialogues, 1, vocabulary_size=150), tmp_path / "smaller")
    shorter = save(lstm(sample_dialogues, 1, max_context_tokens=30), tmp_path / "shorter")
    nested = save(ensemble, tmp_path / "nested")
    for paths, message in (
        (
            [folders["a"], smaller],
            rf"different tokenizers in '.*/a' \(200 tokens\) and '{smaller}' \(150 tokens\)",
        ),
        ([folders["a"], shorter], "expected rankers that lay out texts alike"),
        ([tiny_bert], f"'{tiny_bert}': got a model of type bert, expected a trained ranker"),
        ([folders["a"], nested], "got a model of type dialemb-multi-granularity, expected"),
        ([], "members: got none, expected the folders of trained rankers"),
    ):
        with pytest.raises(InputError, match=message):
            assembled(paths)
