"""Which dialogues a run learns from: entailment pairs, contexts with their answers, and those that are long enough."""

from pathlib import Path

import numpy as np
import pytest
from ranker_checkpoints import dual_encoder, save
from talks import dialogue
from training_runs import words_of

from hf_dialemb.corpora import load_examples, write_jsonl
from hf_dialemb.models import get_method
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.ranking import encode_responses, load_ranker
from hf_dialemb.training.arguments import parse
from hf_dialemb.training.candidate_sets import response_vectors
from hf_dialemb.training.dialogues import dev_dialogues, training_dialogues
from hf_dialemb.training.run import _dev_examples

FILES = Path(__file__).parent / "corpora_files"


def learnt_from(**settings: object) -> tuple[list[Dialogue], list[str]]:
    lines: list[str] = []
    run = parse(None, words_of("run", **{"method": "dse", "exclude": "none", "train_split": "train", **settings})).run
    return training_dialogues(run, get_method("dse"), 0, lines.append), lines


def test_of_sentence_pairs_those_that_entail_are_two_turns_in_their_order():
    pairs = load_examples("dialogue_nli", FILES, "train")
    found, _ = learnt_from(corpus="dialogue_nli", data_dir=FILES)
    expected = [dialogue(pair.first, pair.second, id=pair.id) for pair in pairs if pair.label == "positive"]
    assert 0 < len(expected) < len(pairs)
    assert found == expected


@pytest.mark.parametrize(("least", "kept"), [(None, [2, 3, 4, 5]), (4, [4, 5])])
def test_dialogues_of_fewer_turns_are_left_out_and_counted(tmp_path, least, kept):
    write_jsonl([dialogue(*["so it is then"] * count) for count in range(1, 6)], tmp_path / "calls.jsonl")
    found, lines = learnt_from(corpus=tmp_path / "calls.jsonl", min_turns=least)
    assert [len(dialogue.turns) for dialogue in found] == kept
    assert lines == [f"Left out {5 - len(kept)} dialogues of fewer than {least or 2} turns"]


def test_turns_on_both_sides_of_one_that_is_left_out_are_not_consecutive(tmp_path):
    texts = ["Hello, a question.", "Ask!", "How do I renew my library card?", "At the desk.", "Thanks for the help."]
    said, calls, evaluation = dialogue(*texts), tmp_path / "calls.jsonl", tmp_path / "evaluation.jsonl"
    write_jsonl([said], calls)
    write_jsonl([dialogue(texts[2].lower())], evaluation)
    found, lines = learnt_from(corpus=calls, exclude=evaluation)
    assert [dialogue.turns for dialogue in found] == [said.turns[:2], said.turns[3:]]
    assert lines[0].endswith("evaluation.jsonl hold them or nearly so: 0 dialogues (1 turns)")


def test_speakers_of_transcripts_of_ones_own_have_the_roles_that_were_said(tmp_path):
    (tmp_path / "call.txt").write_text("Ana: I would like a room\nDesk: For how many nights?")
    found, _ = learnt_from(corpus=tmp_path, roles="Ana=assistant,Desk=user")
    assert found[0].roles == ("assistant", "user")


def dev_of(**settings):
    words = words_of("run", **{"backbone": "none", "dev_split": "dev", "train_split": "train", **settings})
    return dev_dialogues(parse(None, words).run, get_method("dial2vec"), print)


def test_dev_dialogues_are_drawn_from_all_and_the_same_for_every_seed():
    everything = dev_of(max_dev_dialogues=10_000)
    some = dev_of(max_dev_dialogues=20)
    assert some == dev_of(max_dev_dialogues=20, seed=7)
    places = [everything.index(dialogue) for dialogue in some]
    assert len(places) == 20
    assert places == sorted(places)
    assert places != list(range(20))
    # Corpora without a dev split do not choose.
    assert everything == dev_of(corpus=["sample/train", "multiwoz22_text/train", "woz2/all"], max_dev_dialogues=10_000)


@pytest.mark.parametrize("corpora", [["sample/all"], ["sample/dev", "sample/train"]])
def test_dev_dialogues_are_not_learnt_from(corpora):
    with pytest.raises(InputError, match=f"expected a split of {' or '.join(corpora)} that is not learnt from"):
        dev_of(corpus=corpora)


def test_dev_dialogues_without_a_label_have_no_purity(tmp_path, sample_dialogues):
    dev = tmp_path / "dev.jsonl"
    write_jsonl([Dialogue(each.turns, each.id) for each in sample_dialogues[:9]], dev)
    assert len(dev_of(dev_split=dev)) == 9
    with pytest.raises(InputError, match=r"without a dialogue of one label in domains, which dev_purity reads"):
        dev_of(dev_split=dev, checkpoint_selection="dev_purity")
    with pytest.raises(InputError, match="without a dialogue that is long enough"):
        dev_of(dev_split=dev, min_turns=99)


def test_dev_examples_of_a_granularity_are_drawn_from_all_responses(tmp_path, sample_dialogues):
    method, ranking = get_method("dual_encoder"), {"method": "dual_encoder", "num_candidates": 5}
    level = {"granularity": 1, "granularity_model": "there", "dev_split": "dev", "exclude": "none"}
    settings = parse(None, words_of(tmp_path, **ranking, **level, train_split="train"))
    config = method.config_class(**settings.method)
    made = _dev_examples(settings, sample_dialogues[:20], config)
    assert config.granularity == 1
    config = method.config_class(**parse(None, words_of(tmp_path, **ranking)).method)
    same = method.examples(sample_dialogues[:20], config, settings.training.seed)
    assert made.example(0, 3) == same.example(0, 3)


def test_vectors_of_responses_are_in_their_order_and_made_once(tmp_path, sample_dialogues):
    folder = save(dual_encoder(sample_dialogues), tmp_path / "ranker")
    texts, lines = ["which one", "goodbye", "a room for two"], []
    found = response_vectors(texts, folder, lines.append)
    expected = encode_responses(load_ranker(folder), texts)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(expected - expected[::-1]).max() > 1e-3
    np.testing.assert_array_equal(response_vectors(texts, folder, lines.append), found)
    assert len(lines) == 1
    np.testing.assert_allclose(response_vectors(texts[::-1], folder, lines.append), expected[::-1], atol=1e-6)


@pytest.mark.parametrize("method", ["dual_encoder", "deep_attention_matching"])
def test_rankers_of_words_have_no_dropout(method, sample_dialogues):
    with pytest.raises(InputError, match=f"dropout: got 0.1, but {method} has none; leave it out"):
        get_method(method).model_class.build(None, sample_dialogues[:3], 0.1)
