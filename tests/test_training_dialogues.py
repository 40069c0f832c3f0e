"""Which dialogues a run learns from: entailment pairs, contexts with their answers, and those that are long enough."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ranker_checkpoints import dual_encoder, save

from hf_dialemb.corpora import load_examples, write_jsonl
from hf_dialemb.models import get_method
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation, tokenize
from hf_dialemb.models.ranking import encode_responses, load_ranker
from hf_dialemb.training.arguments import parse
from hf_dialemb.training.candidate_sets import response_vectors
from hf_dialemb.training.dialogues import dev_dialogues, training_dialogues
from hf_dialemb.training.run import _dev_examples

FILES = Path(__file__).parent / "corpora_files"


def learnt_from(method: str = "dse", **settings: object) -> tuple[list[Dialogue], list[str]]:
    words = {"method": method, "output_dir": "run", "use_cpu": "true", "exclude": "none", **settings}
    run = parse(None, [word for name, value in words.items() for word in (f"--{name}", str(value))]).run
    lines: list[str] = []
    return training_dialogues(run, get_method(method), 0, lines.append), lines


def test_of_sentence_pairs_those_that_entail_are_two_turns_in_their_order():
    pairs = load_examples("dialogue_nli", FILES, "train")
    found, _ = learnt_from(corpus="dialogue_nli", data_dir=FILES)
    expected = [(pair.first, pair.second) for pair in pairs if pair.label == "positive"]
    assert 0 < len(expected) < len(pairs)
    assert [tuple(turn.content for turn in dialogue.turns) for dialogue in found] == expected
    assert {tuple(turn.role for turn in dialogue.turns) for dialogue in found} == {("user", "assistant")}


@pytest.mark.parametrize(("least", "kept"), [(None, [2, 3, 4, 5]), (4, [4, 5])])
def test_dialogues_of_fewer_turns_are_left_out_and_counted(tmp_path, least, kept):
    said = [Turn(role, "so it is then") for role in ("user", "assistant") * 3]
    write_jsonl([Dialogue(tuple(said[:count]), str(count)) for count in range(1, 6)], tmp_path / "calls.jsonl")
    found, lines = learnt_from(corpus=tmp_path / "calls.jsonl", **({} if least is None else {"min_turns": least}))
    assert [len(dialogue.turns) for dialogue in found] == kept
    assert lines == [f"Left out {5 - len(kept)} dialogues of fewer than {least or 2} turns"]


def dev_of(**more):
    values = {"backbone": "none", "dev_split": "dev", "use_cpu": "true", **more}
    words = [word for name, value in values.items() for word in (f"--{name}", *str(value).split())]
    settings = parse(None, words)
    return dev_dialogues(settings.run, get_method("dial2vec"), lambda line: None)


def test_dev_dialogues_are_drawn_from_all_and_the_same_for_every_seed():
    everything = dev_of(corpus="sample", max_dev_dialogues=10_000)
    some = dev_of(corpus="sample", max_dev_dialogues=20)
    assert some == dev_of(corpus="sample", max_dev_dialogues=20, seed=7)
    assert len(some) == 20
    places = [everything.index(dialogue) for dialogue in some]
    assert places == sorted(places)
    assert places != list(range(20))


@pytest.mark.parametrize("split", ["all", "dev"])
def test_dev_dialogues_are_not_learnt_from(split):
    with pytest.raises(InputError, match=f"expected a split of sample/{split} that is not learnt from"):
        dev_of(corpus=f"sample/{split}")
    with pytest.raises(InputError, match="that is not learnt from"):
        dev_of(corpus=f"sample/{split} sample/train")


def test_dev_dialogues_without_a_label_have_no_purity(tmp_path, sample_dialogues):
    write_jsonl([Dialogue(each.turns, each.id) for each in sample_dialogues[:9]], tmp_path / "dev.jsonl")
    more = {"corpus": "sample", "dev_split": tmp_path / "dev.jsonl"}
    assert len(dev_of(**more)) == 9
    with pytest.raises(InputError, match=r"without a dialogue of one label in domains, which dev_purity reads"):
        dev_of(**more, checkpoint_selection="dev_purity")
    with pytest.raises(InputError, match="without a dialogue that is long enough"):
        dev_of(**more, min_turns=99)


def test_corpora_without_a_dev_split_do_not_choose():
    found = dev_of(corpus="sample/train multiwoz22_text/train woz2/all", max_dev_dialogues=10_000)
    assert found == dev_of(corpus="sample", max_dev_dialogues=10_000)


def test_dev_examples_of_a_granularity_are_drawn_from_all_responses(tmp_path, sample_dialogues):
    settings = parse(None, [
        "--method", "dual_encoder", "--granularity", "1", "--granularity_model", "there", "--use_cpu", "true",
        "--output_dir", str(tmp_path), "--num_candidates", "5", "--dev_split", "dev", "--exclude", "none",
    ])  # fmt: skip
    config = get_method("dual_encoder").config_class(**settings.method)
    made = _dev_examples(settings, sample_dialogues[:20], config)
    assert config.granularity == 1
    assert len(made) > 20
    plain = parse(None, ["--method", "dual_encoder", "--use_cpu", "true", "--num_candidates", "5"])
    config = get_method("dual_encoder").config_class(**plain.method)
    same = get_method("dual_encoder").examples(sample_dialogues[:20], config, settings.training.seed)
    assert made.example(0, 3) == same.example(0, 3)


def test_vectors_of_responses_are_in_their_order_and_made_once(tmp_path, sample_dialogues):
    folder = save(dual_encoder(sample_dialogues), tmp_path / "ranker")
    texts = ["which one", "goodbye", "a room for two"]
    lines: list[str] = []
    found = response_vectors(texts, folder, lines.append)
    expected = encode_responses(load_ranker(folder), texts)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(expected - expected[::-1]).max() > 1e-3
    np.testing.assert_array_equal(response_vectors(texts, folder, lines.append), found)
    assert len(lines) == 1
    np.testing.assert_allclose(response_vectors(texts[::-1], folder, lines.append), expected[::-1], atol=1e-6)


def test_dialogues_without_a_token_are_counted(tiny_checkpoint):
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = (kind.from_pretrained(tiny_checkpoint) for kind in (AutoModel, AutoTokenizer))
    count = Truncation()
    tokenize([Dialogue((Turn("user", "\u200b"),)), Dialogue((Turn("user", "a"),))], tokenizer, model.config, count)
    assert (count.empty, count.dialogues) == (1, 2)
    assert str(count).endswith("; 1 gave no token")


@pytest.mark.parametrize("method", ["dual_encoder", "deep_attention_matching"])
def test_rankers_of_words_have_no_dropout(method, sample_dialogues):
    with pytest.raises(InputError, match=f"dropout: got 0.1, but {method} has none; leave it out"):
        get_method(method).model_class.build(None, sample_dialogues[:3], 0.1)


def test_turns_on_both_sides_of_one_that_is_left_out_are_not_consecutive(tmp_path):
    texts = ["Hello, a question.", "Ask!", "How do I renew my library card?", "At the desk.", "Thanks for the help."]
    said = tuple(Turn(role, text) for role, text in zip(("user", "assistant") * 3, texts, strict=False))
    write_jsonl([Dialogue(said, "t")], tmp_path / "calls.jsonl")
    write_jsonl([Dialogue((Turn("user", texts[2].lower()),), "e")], tmp_path / "evaluation.jsonl")
    found, lines = learnt_from(corpus=tmp_path / "calls.jsonl", exclude=tmp_path / "evaluation.jsonl")
    assert [dialogue.turns for dialogue in found] == [said[:2], said[3:]]
    assert lines[0].endswith("evaluation.jsonl hold them or nearly so: 0 dialogues (1 turns)")
