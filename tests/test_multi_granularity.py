"""The ensemble: it answers as equation 7 says, whoever its members are, and lives in one file."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer, BertConfig

from hf_dialemb.cli import main
from hf_dialemb.models.deep_attention_matching import DeepAttentionMatchingModel
from hf_dialemb.models.dual_encoder import DualEncoderModel
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation
from hf_dialemb.models.multi_granularity import (
    METHOD,
    MultiGranularityConfig,
    MultiGranularityModel,
    collate,
    log_mean_probability,
)
from hf_dialemb.models.ranker import RankingExample
from hf_dialemb.models.ranking import LoadedRanker, encode_contexts, encode_responses, load_ranker, score_candidates
from hf_dialemb.models.ranking_examples import RankingExamples
from hf_dialemb.models.transformer_dual_encoder import TransformerDualEncoderConfig, TransformerDualEncoderModel

LIMITS = {"max_context_tokens": 40, "max_response_tokens": 12}


def lstm(dialogues, seed: int, **settings):
    torch.manual_seed(seed)
    sizes = {"vocabulary_size": 200, "embedding_size": 8, "hidden_size": 6, "responses": "any", **LIMITS, **settings}
    model, tokenizer = DualEncoderModel.build(None, dialogues, **sizes)
    for parameter in model.parameters():  # so that candidates differ
        parameter.data.mul_(2)
    return model, tokenizer


def transformer(dialogues, seed: int):
    """A transformer that reads the words of `lstm`, as a member of another type."""
    like, tokenizer = lstm(dialogues, 0)
    torch.manual_seed(seed)
    backbone = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    config = TransformerDualEncoderConfig(
        encoder_config=backbone, marker_ids=like.config.marker_ids, towers="separate", **LIMITS
    )
    return TransformerDualEncoderModel(config).eval(), tokenizer


def matcher(dialogues, seed: int):
    torch.manual_seed(seed)
    sizes = {"vocabulary_size": 200, "embedding_size": 6, "num_blocks": 1, "max_turns": 3, "max_turn_tokens": 8}
    model, tokenizer = DeepAttentionMatchingModel.build(None, dialogues, **sizes, **LIMITS)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model, tokenizer


def save(made, folder) -> str:
    model, tokenizer = made
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def folders(sample_dialogues, tmp_path_factory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("members")
    members = {
        "a": lstm(sample_dialogues, 1),
        "b": lstm(sample_dialogues, 2, score="cosine", loss_temperature=0.1),
        "t": transformer(sample_dialogues, 3),
        "m": matcher(sample_dialogues, 4),
        "n": matcher(sample_dialogues, 5),
    }
    return {name: save(made, place / name) for name, made in members.items()}


@pytest.fixture(scope="module")
def ensemble(folders):
    return MultiGranularityModel.from_members([folders[name] for name in "abt"])


@pytest.fixture(scope="module")
def examples(sample_dialogues) -> list[RankingExample]:
    config = lstm(sample_dialogues, 0, num_candidates=5)[0].config
    drawn = RankingExamples(sample_dialogues, config, seed=0)
    return [drawn.example(0, index) for index in range(0, len(drawn), len(drawn) // 12)]


def ranker_of(made) -> LoadedRanker:
    return LoadedRanker(*made, METHOD)


def batch_of(made, examples):
    return collate(examples, made[1], made[0].config, Truncation())


def test_the_probability_is_the_mean_of_the_members_probabilities(ensemble, folders, examples):
    output = ensemble[0](**batch_of(ensemble, examples))
    assert output.member_logits.shape == (len(examples), 3, 5)
    expected = output.member_logits.softmax(-1).mean(1)
    assert torch.allclose(output.logits.softmax(-1), expected, atol=1e-6)
    assert torch.allclose(output.logits.exp(), expected, atol=1e-6)
    assert torch.allclose(output.loss, -expected[:, 0].log().mean(), atol=1e-6)
    assert torch.equal(output.similarities.squeeze(-1), output.logits)
    for place, name in enumerate("abt"):
        alone = np.stack(score_candidates(load_ranker(folders[name]), examples))
        assert np.allclose(output.member_logits[:, place].detach().numpy(), alone, atol=1e-5), name


def test_scores_far_apart_stay_finite():
    logits = log_mean_probability(torch.tensor([[[1e4, 0.0], [0.0, 1e4], [0.0, 1e4]], [[3e4, 0.0]] * 3]))
    assert torch.allclose(logits, torch.tensor([[1 / 3, 2 / 3], [1.0, 0.0]]).log().clamp(min=-3e4))


def test_the_order_of_members_does_not_matter_and_that_of_candidates_is_kept(ensemble, folders, examples):
    scores = np.stack(score_candidates(ranker_of(ensemble), examples))
    other = MultiGranularityModel.from_members([folders[name] for name in "tba"])
    assert np.allclose(np.stack(score_candidates(ranker_of(other), examples)), scores, atol=1e-6)
    order = [3, 0, 4, 1, 2]
    shuffled = [RankingExample(each.context, tuple(each.candidates[place] for place in order)) for each in examples]
    assert np.allclose(np.stack(score_candidates(ranker_of(ensemble), shuffled)), scores[:, order], atol=1e-6)


def test_one_member_ranks_as_it_does_alone(folders, examples):
    single = MultiGranularityModel.from_members([folders["a"]])
    alone = torch.from_numpy(np.stack(score_candidates(load_ranker(folders["a"]), examples)))
    assert np.allclose(np.stack(score_candidates(ranker_of(single), examples)), alone.log_softmax(-1), atol=1e-5)


def test_the_cosine_of_embeddings_is_the_mean_of_the_members_cosines(ensemble, folders, examples):
    contexts, responses = [each.context for each in examples], [each.candidates[1] for each in examples]
    ranker = ranker_of(ensemble)
    left, right = encode_contexts(ranker, contexts), encode_responses(ranker, responses)
    assert left.shape == (len(examples), 6 + 6 + 16) == (len(examples), ensemble[0].config.hidden_size)
    assert np.allclose(np.linalg.norm(left, axis=1), 1, atol=1e-6)
    cosines = []
    for name in "abt":
        member = load_ranker(folders[name])
        pair = encode_contexts(member, contexts), encode_responses(member, responses)
        one, two = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in pair)
        cosines.append(one @ two.T)
    assert np.allclose(left @ right.T, np.mean(cosines, axis=0), atol=1e-6)
    output = ensemble[0](**batch_of(ensemble, examples))  # beside candidates it gives the contexts' embeddings
    assert np.allclose(output.pooler_output.detach().numpy(), left, atol=1e-6)


def test_layout_and_settings_are_the_members(ensemble, folders, examples):
    model, tokenizer = ensemble
    member = load_ranker(folders["a"])
    count = Truncation()
    expected = member.method.collate(examples, tokenizer, member.model.config, count)
    found = collate(examples, tokenizer, model.config, given := Truncation())
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)
    assert str(given) == str(count)
    assert (model.config.max_context_tokens, model.config.max_response_tokens) == (40, 12)
    assert model.config.marker_ids == member.model.config.marker_ids
    assert model.config.granularity is None


PROGRAM = """
import sys, numpy, torch, hf_dialemb
from transformers import AutoModel
path, inputs, output = sys.argv[1:]
model = AutoModel.from_pretrained(path)
batch = {name: torch.from_numpy(ids) for name, ids in numpy.load(inputs).items()}
with torch.inference_mode():
    numpy.save(output, model(**batch).logits.numpy())
"""


@pytest.mark.slow
def test_it_is_saved_as_one_file_and_loads_in_a_fresh_process(ensemble, examples, tmp_path):
    folder, batch = save(ensemble, tmp_path / "ensemble"), batch_of(ensemble, examples)
    assert [path.name for path in (tmp_path / "ensemble").glob("*.safetensors")] == ["model.safetensors"]
    weights = load_file(tmp_path / "ensemble" / "model.safetensors")
    assert weights.keys() == ensemble[0].state_dict().keys()
    assert {name[:10] for name in weights} == {f"members.{place}." for place in range(3)}
    np.savez(tmp_path / "batch.npz", **{name: ids.numpy() for name, ids in batch.items()})
    words = [sys.executable, "-c", PROGRAM, folder, str(tmp_path / "batch.npz"), str(tmp_path / "logits.npy")]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    assert np.allclose(np.load(tmp_path / "logits.npy"), ensemble[0](**batch).logits.detach().numpy(), atol=1e-6)
    again = MultiGranularityModel.from_pretrained(folder)
    again.save_pretrained(tmp_path / "again")
    names = ("config.json", "model.safetensors")
    assert all((tmp_path / "again" / n).read_bytes() == (tmp_path / "ensemble" / n).read_bytes() for n in names)


def test_a_checkpoint_may_be_two_members_which_then_share_no_weight(folders, tmp_path):
    folder = save(MultiGranularityModel.from_members([folders["t"]] * 2), tmp_path)
    first, second = AutoModel.from_pretrained(folder).members
    assert all(map(torch.equal, first.state_dict().values(), second.state_dict().values()))
    first.encoder.embeddings.word_embeddings.weight.data.zero_()
    assert second.encoder.embeddings.word_embeddings.weight.any()


def test_matchers_make_an_ensemble_that_ranks_but_does_not_embed(folders, examples, tmp_path):
    folder = save(MultiGranularityModel.from_members([folders["m"], folders["n"]]), tmp_path)
    ranker = load_ranker(folder)
    scores = np.stack(score_candidates(ranker, examples))
    alone = [np.exp(np.stack(score_candidates(load_ranker(folders[name]), examples))) for name in "mn"]
    expected = np.mean([each / each.sum(-1, keepdims=True) for each in alone], axis=0)
    assert np.allclose(np.exp(scores), expected, atol=1e-6)
    assert not ranker.model.embeds
    assert ranker.model.config.hidden_size == 0
    for attempt in (
        lambda: encode_contexts(ranker, [examples[0].context]),
        lambda: encode_responses(ranker, ["yes"]),
        lambda: ranker.model(torch.ones(1, 4, dtype=torch.long)),
    ):
        with pytest.raises(InputError, match="embeds neither; rank candidates with it"):
            attempt()


def refused(paths) -> str:
    with pytest.raises(InputError) as error:
        MultiGranularityModel.from_members(paths)
    return str(error.value)


def test_other_tokenizers_are_refused(folders, sample_dialogues, tmp_path):
    other = save(lstm(sample_dialogues, 1, vocabulary_size=150), tmp_path)
    message = refused([folders["a"], other])
    assert f"different tokenizers in '{folders['a']}' (200 tokens) and '{other}' (150 tokens)" in message
    assert "train them on the same dialogues" in message


def test_what_a_tokenizer_last_cut_or_padded_is_no_difference(folders, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(folders["b"])
    tokenizer(["a hotel"], padding="max_length", max_length=9, truncation=True)
    save((load_ranker(folders["b"]).model, tokenizer), tmp_path)
    assert json.loads((tmp_path / "tokenizer.json").read_text())["truncation"] is not None
    MultiGranularityModel.from_members([folders["a"], str(tmp_path)])


def test_other_layouts_are_refused(folders, sample_dialogues, tmp_path):
    other = save(lstm(sample_dialogues, 1, max_context_tokens=30), tmp_path)
    assert "got max_context_tokens 40 and 30, expected the same in all" in refused([folders["a"], other])


def test_towers_and_matchers_do_not_mix(folders):
    message = refused([folders["a"], folders["m"]])
    assert "got dual_encoder and deep_attention_matching, expected rankers that take contexts in one form" in message


def test_members_that_are_no_base_rankers_are_refused(folders, ensemble, tiny_bert, tmp_path):
    assert f"'{tiny_bert}': got a model of type bert, expected one of dialemb-dual-encoder" in refused([tiny_bert])
    nested = save(ensemble, tmp_path)
    assert "got a model of type dialemb-multi-granularity, expected one of" in refused([folders["a"], nested])
    with pytest.raises(InputError, match="members: got a model of type dialemb-rocket, expected one of"):
        MultiGranularityConfig(members=[{"model_type": "dialemb-rocket"}])
    with pytest.raises(InputError, match="members: got a model of type None"):
        MultiGranularityConfig(members=[{}])


def test_there_must_be_members():
    assert "members: got none" in refused([])
    for made in (MultiGranularityConfig, lambda: MultiGranularityModel.build(None, ())):
        with pytest.raises(InputError, match="members: got none, expected the folders of trained rankers"):
            made()


def test_it_is_not_trained_but_assembled(tmp_path, capsys):
    words = ["train", "--method", "multi_granularity", "--num_candidates", "5", "--output_dir", str(tmp_path / "run")]
    assert main(words) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("dialemb: error: ")]
    assert len(errors) == 1
    assert "train them one by one, then put them together with dialemb ensemble" in errors[0]
    assert not (tmp_path / "run").exists()
