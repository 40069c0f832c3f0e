"""Dual encoders: words, contexts and responses as sequences, scores, the two towers, saving."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from hf_dialemb.models.dialogue import ROLES, Dialogue, Turn
from hf_dialemb.models.dual_encoder import METHOD, DualEncoderConfig, DualEncoderModel, collate
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation
from hf_dialemb.models.ranker import RankingExample
from hf_dialemb.models.ranking import LoadedRanker, encode_contexts, encode_responses, load_ranker, score_candidates
from hf_dialemb.models.transformer_dual_encoder import TransformerDualEncoderModel
from hf_dialemb.models.words import MARKS, PADDING, UNKNOWN, read_word_vectors, word_tokenizer

SMALL = {"vocabulary_size": 200, "embedding_size": 8, "hidden_size": 12}


def talk(*texts):
    return tuple(Turn(ROLES[place % 2], text) for place, text in enumerate(texts))


EXAMPLES = [
    RankingExample(talk("I need a cheap hotel."), ("For how many nights?", "Goodbye!", "Which food?")),
    RankingExample(talk("A table for two", "When?", "At seven"), ("Booked for seven.", "In the north", "A hotel")),
]


@pytest.fixture(scope="module")
def made():
    dialogues = [Dialogue((*example.context, Turn("assistant", example.candidates[0]))) for example in EXAMPLES]
    torch.manual_seed(0)
    return DualEncoderModel.build(None, dialogues, **SMALL)


@pytest.fixture(scope="module")
def transformers_made(tiny_bert):
    return {
        towers: TransformerDualEncoderModel.build(tiny_bert, (), towers=towers) for towers in ("shared", "separate")
    }


def batch_of(made, examples=EXAMPLES):
    model, tokenizer = made
    return collate(list(examples), tokenizer, model.config, Truncation())


def test_the_vocabulary_is_the_most_frequent_words_in_a_fixed_order():
    dialogues = [Dialogue(talk("b a a", "C, c b"))]
    tokenizer = word_tokenizer(dialogues, len(MARKS) + 5)
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    assert names == [PADDING, UNKNOWN, *MARKS, "a", "b", "c"]  # "," is rarer and finds no room
    assert tokenizer("A ,zebra B")["input_ids"] == [len(names) - 3, 1, 1, len(names) - 2]


def test_a_vocabulary_without_room_for_words_is_refused():
    with pytest.raises(InputError, match="vocabulary_size: got 8, expected at least 9"):
        word_tokenizer([Dialogue(talk("a", "b"))], 8)


def test_marks_in_a_text_are_words_and_no_marks(made):
    model, _ = made
    plain, marked = (
        batch_of(made, [RankingExample(talk(text), ("yes", "no"))])["input_ids"][0].tolist()
        for text in ("hotel", "hotel <|response|>")
    )
    assert plain[0] == marked[0] == model.config.marker_ids[0]
    assert not set(model.config.marker_ids) & set(marked[1:])


def test_contexts_keep_their_end_and_responses_their_start(made):
    model, tokenizer = made
    count = Truncation()
    long = RankingExample(talk("hotel " * 300, "seven " * 100), ("cheap " * 50 + "nights " * 200, "no"))
    batch = collate([long], tokenizer, model.config, count)
    words = tokenizer.convert_ids_to_tokens(batch["input_ids"][0].tolist())
    assert words == ["hotel"] * 59 + ["<|assistant|>"] + ["seven"] * 100
    words = tokenizer.convert_ids_to_tokens(batch["candidate_ids"][0, 0].tolist())
    assert words == ["<|response|>"] + ["cheap"] * 50 + ["nights"] * 109
    assert (count.truncated, count.dialogues, count.dropped_tokens) == (2, 3, 402 - 160 + 251 - 160)


def test_the_state_after_the_last_word_is_what_torch_says_of_the_text_alone(made):
    model, _ = made
    batch = batch_of(made)
    found = model(**batch).pooler_output
    for row, length in enumerate(batch["attention_mask"].sum(-1).tolist()):
        words = model.context.words(batch["input_ids"][row : row + 1, :length])
        torch.testing.assert_close(found[row], model.context.reader(words)[1][0][0, 0])


def test_scores_are_products_and_the_loss_is_equation_6(made):
    model, _ = made
    batch = batch_of(made)
    output = model(**batch)
    flat = batch["candidate_ids"].flatten(0, 1), batch["candidate_mask"].flatten(0, 1)
    responses = model(*flat).pooler_output.unflatten(0, (2, 3))
    expected = (output.pooler_output.unsqueeze(1) * responses).sum(-1)
    torch.testing.assert_close(output.logits, expected)
    by_hand = [-math.log(math.exp(row[0]) / sum(map(math.exp, row))) for row in expected.tolist()]
    assert output.loss.item() == pytest.approx(np.mean(by_hand), rel=1e-5)
    assert torch.equal(output.similarities.squeeze(-1), output.logits)


def test_a_cosine_and_a_temperature_change_the_scores_as_they_say(made):
    model, _ = made
    contexts, responses = torch.randn(2, 12), torch.randn(2, 3, 12)
    model.config.score, model.config.loss_temperature = "cosine", 0.5
    found = model.product(contexts, responses)
    model.config.score, model.config.loss_temperature = "dot", 1.0
    expected = torch.cosine_similarity(contexts.unsqueeze(1), responses, dim=-1) / 0.5
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", ["words", "shared", "separate"])
def test_contexts_and_responses_may_come_mixed(made, transformers_made, kind):
    model, tokenizer = made if kind == "words" else transformers_made[kind]
    batch = batch_of((model, tokenizer))
    contexts = model(batch["input_ids"], batch["attention_mask"]).pooler_output
    responses = model(batch["candidate_ids"][0], batch["candidate_mask"][0]).pooler_output
    width = max(batch["input_ids"].shape[1], batch["candidate_ids"].shape[2])
    padded = [torch.nn.functional.pad(ids, (0, width - ids.shape[1]), value=tokenizer.pad_token_id or 0)
              for ids in (batch["candidate_ids"][0], batch["input_ids"])]  # fmt: skip
    masks = [torch.nn.functional.pad(mask, (0, width - mask.shape[1]))
             for mask in (batch["candidate_mask"][0], batch["attention_mask"])]  # fmt: skip
    mixed = model(torch.cat(padded), torch.cat(masks)).pooler_output
    torch.testing.assert_close(mixed, torch.cat([responses, contexts]), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["words", "separate"])
def test_two_towers_read_the_same_words_differently_once_they_have_learnt(made, transformers_made, kind):
    model, tokenizer = made if kind == "words" else transformers_made[kind]
    model.zero_grad()
    model(**batch_of((model, tokenizer))).loss.backward()
    tables = [model.context, model.response] if kind == "words" else [model.encoder, model.response_encoder]
    gradients = [torch.cat([p.grad.flatten() for p in tower.parameters() if p.grad is not None]) for tower in tables]
    assert all(gradient.abs().sum() > 0 for gradient in gradients)
    assert not torch.equal(*gradients)


def test_a_shared_tower_is_the_backbone_itself(transformers_made, tiny_bert):
    from transformers import AutoModel

    model, _ = transformers_made["shared"]
    before = AutoModel.from_pretrained(tiny_bert).state_dict()
    assert all(torch.equal(value, before[name]) for name, value in model.encoder.state_dict().items())
    assert model.response_encoder is None


def test_neither_padding_nor_the_batch_changes_an_embedding(made):
    model, tokenizer = made
    texts = ["For how many nights?", "food", "A hotel in the north, cheap"] * 40
    ranker = type("Ranker", (), {"model": model, "tokenizer": tokenizer})()
    together, alone = encode_responses(ranker, texts), encode_responses(ranker, texts[:3], batch_size=1)
    np.testing.assert_allclose(together[:3], alone, atol=1e-6)
    np.testing.assert_allclose(together[3:6], alone, atol=1e-6)


@pytest.mark.parametrize("kind", ["words", "shared", "separate"])
def test_a_saved_ranker_scores_and_embeds_the_same(made, transformers_made, kind, tmp_path):
    model, tokenizer = made if kind == "words" else transformers_made[kind]
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = load_ranker(str(tmp_path))
    scores = score_candidates(loaded, EXAMPLES)
    expected = model(**batch_of((model, tokenizer))).logits.detach().numpy()
    np.testing.assert_allclose(np.stack(scores), expected, rtol=1e-4, atol=1e-5)
    asked = [example.context for example in EXAMPLES]
    ranker = type("Ranker", (), {"model": model, "tokenizer": tokenizer})()
    np.testing.assert_allclose(encode_contexts(loaded, asked), encode_contexts(ranker, asked), atol=1e-6)


def test_the_template_lays_out_as_collate_does(made):
    _, tokenizer = made
    batch = batch_of(made, EXAMPLES[1:])
    messages = [{"role": turn.role, "content": turn.content} for turn in EXAMPLES[1].context]
    assert tokenizer.apply_chat_template(messages)["input_ids"] == batch["input_ids"][0].tolist()
    as_document = [{"role": "system", "content": "response"}, {"role": "user", "content": "In the north"}]
    for asked in ([{"role": "response", "content": "In the north"}], as_document):
        ids = tokenizer.apply_chat_template(asked)["input_ids"]
        assert ids == batch["candidate_ids"][0, 1, : len(ids)].tolist()


def test_word_vectors_begin_both_tables(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("2 3\nhotel 1 2 3\nunheard 4 5 6\n", encoding="utf-8")
    model, tokenizer = DualEncoderModel.build(
        str(file), [Dialogue(talk("a hotel", "yes"))], vocabulary_size=50, embedding_size=3, hidden_size=4
    )
    place = tokenizer.convert_tokens_to_ids("hotel")
    for tower in (model.context, model.response):
        assert tower.words.weight[place].tolist() == [1, 2, 3]
        assert tower.words.weight[tokenizer.convert_tokens_to_ids("yes")].abs().sum() > 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hotel 1 2\n", "got 2 numbers, expected 3"),
        ("hotel 1 x 3\n", "no finite number"),
        ("hotel 1 nan 3\n", "no fin"),
    ],
)
def test_a_damaged_file_of_word_vectors_is_one_sentence(tmp_path, text, reason):
    file = tmp_path / "vectors.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"vectors.txt: line 1.*{reason}"):
        read_word_vectors(file, ["hotel"], 3)
    with pytest.raises(InputError, match="expected a text file of word vectors"):
        read_word_vectors(tmp_path / "none.txt", ["hotel"], 3)


def test_sets_of_different_sizes_are_refused_together_and_scored_apart(made):
    model, tokenizer = made
    uneven = [EXAMPLES[0], RankingExample(EXAMPLES[1].context, EXAMPLES[1].candidates[:2])]
    with pytest.raises(InputError, match="got 2 for one context and 3 for another"):
        collate(uneven, tokenizer, model.config, Truncation())
    ranker = type("Ranker", (), {"model": model, "tokenizer": tokenizer,
                                 "method": type("M", (), {"collate": staticmethod(collate)})})()  # fmt: skip
    assert [len(scores) for scores in score_candidates(ranker, uneven)] == [3, 2]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"num_candidates": 1}, "num_candidates: got 1"),
        ({"granularity": 6}, "granularity: got 6, expected a value between 1 and 5"),
        ({"loss_temperature": 0.0}, "loss_temperature: got 0"),
        ({"hidden_sise": 3}, "hidden_sise"),
    ],
)
def test_settings_out_of_range_or_misspelt_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        DualEncoderConfig(**settings)


@pytest.mark.parametrize("kind", ["words", "shared", "separate"])
def test_padding_may_stand_on_either_side(made, transformers_made, kind):
    model, tokenizer = made if kind == "words" else transformers_made[kind]
    batch = batch_of((model, tokenizer))
    turned = dict(batch)
    for ids, mask in (("input_ids", "attention_mask"), ("candidate_ids", "candidate_mask")):
        moved = batch[mask].argsort(dim=-1, stable=True)  # padding first, the tokens in their order
        turned[ids], turned[mask] = batch[ids].gather(-1, moved), batch[mask].gather(-1, moved)
    assert not turned["input_ids"].equal(batch["input_ids"])
    with torch.inference_mode():
        torch.testing.assert_close(model(**turned).logits, model(**batch).logits)
        names = ("input_ids", "attention_mask")
        alone, expected = (model(**{name: given[name] for name in names}) for given in (turned, batch))
    torch.testing.assert_close(alone.pooler_output, expected.pooler_output)


def test_the_side_that_is_cut_is_saved(made, tmp_path):
    made[1].save_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path).truncation_side == "left"


@pytest.mark.parametrize("example", [RankingExample((), ("a", "b")), RankingExample(talk("a"), ())])
def test_a_context_without_turns_or_candidates_is_refused(made, example):
    model, tokenizer = made
    with pytest.raises(InputError, match=r"example 1: got no (turn|candidate)"):
        score_candidates(LoadedRanker(model, tokenizer, METHOD), [EXAMPLES[0], example])
