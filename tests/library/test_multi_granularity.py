"""The ensemble: it answers as equation 7 says, whoever its members are, and lives in one file."""

import numpy as np
import pytest
import torch
from checkpoints import assembled, deep_attention_matching, dual_encoder, save
from transformers import BertConfig

from hf_dialemb.errors import InputError
from hf_dialemb.methods import ranker as ranking
from hf_dialemb.methods.dual_encoder import TRANSFORMER_METHOD as TOWERS
from hf_dialemb.methods.layout import Truncation
from hf_dialemb.methods.multi_granularity import log_mean_probability

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


def batch_of(ranker, examples, count=None):
    return ranker.method.collate(
        examples, ranker.tokenizer, ranker.model.config, count or Truncation()
    )


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
    for attempt in (
        lambda: ranking.encode_contexts(ranker, [examples[0].context]),
        lambda: ranking.encode_responses(ranker, ["yes"]),
        lambda: ranker.model(torch.ones(1, 4, dtype=torch.long)),
    ):
        with pytest.raises((InputError, NotImplementedError), match="embeds neither"):
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
