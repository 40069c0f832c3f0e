"""Tasks as they are run, and the paired bootstrap."""

from collections import Counter
from dataclasses import astuple
from importlib import import_module
from itertools import chain, product
from types import SimpleNamespace

import numpy as np
import pytest
from given_vectors import Given, hashed, said
from made_up_corpora import FILES
from scipy import stats

from hf_dialemb import corpora
from hf_dialemb.cli import main
from hf_dialemb.corpora import write_jsonl
from hf_dialemb.corpora.corpus import KINDS
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.encoders import load_encoder, remembering
from hf_dialemb.encoders.remembering import RememberingEncoder
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation import TASKS, default_tasks, evaluate, get_task, read_results, run
from hf_dialemb.evaluation.tasks import sampling
from hf_dialemb.evaluation.tasks.registry import load_problem
from hf_dialemb.evaluation.tasks.sampling import draw_examples, fixed_sample, mean_interval
from hf_dialemb.evaluation.tasks.task import CorpusPart, ask_encoder
from hf_dialemb.papers.significance import paired_bootstrap, paired_bootstrap_f1
from hf_dialemb.papers.tasks.ablations import FIRST, MEAN, SECOND, SUM, load_ablations, views


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_there(name):
    task = get_task(name)
    module, _, function = task.loader.partition(":")
    assert callable(getattr(import_module(module), function))
    assert task.source
    assert 0 < len(task.title) < 100
    assert set() < set(task.kinds) <= set(KINDS)
    assert task.fine_tunes == (name in ("intent-fine-tuning", "dialogue-action-prediction"))


def test_what_an_encoder_can_beside_vectors_is_asked_of_the_one_that_is_remembered():
    ranker, plain = load_encoder(SimpleNamespace(name="ranker", encode=len)), Given(hashed)
    ranker.ranker = "scores"
    for encoder in (ranker, RememberingEncoder(ranker)):
        assert ask_encoder(encoder, "ranker", str) == "scores"
    for encoder in (plain, RememberingEncoder(plain)):
        assert ask_encoder(encoder, "ranker", str) is None


def test_what_suits_a_corpus_and_what_does_not():
    for corpus in corpora.CORPORA:
        for task in map(get_task, default_tasks(corpus)):
            assert corpora.get_corpus(corpus).kind in task.kinds, corpus
            assert not task.fine_tunes, corpus
    assert default_tasks("sgd") == default_tasks("mine.jsonl") == ("domains",)
    assert default_tasks("clinc150") == ("intent-classification", "out-of-scope-detection")
    assert default_tasks("dialog2flow_evaluation") == ("action-similarity",)
    assert default_tasks("dialogue_nli") == ("dialogue-nli",)
    with pytest.raises(InputError, match=r"holds sentence-pairs, expected dialogues; .* the task dialogue-sts"):
        load_problem("domains", CorpusPart("jddc_sts", FILES, "dev"))
    with pytest.raises(InputError, match="task intent-fine-tuning: got the model tfidf, which has no weights"):
        evaluate(["tfidf"], "clinc150", data_dir=FILES, tasks=["intent-fine-tuning"])


def test_a_sample_is_fixed_and_in_order_and_examples_are_drawn_of_labels_that_have_enough(random):
    sample = fixed_sample(range(100), 10)
    assert sample == fixed_sample(range(100), 10) == sorted(sample)
    assert sample != list(range(10))
    assert fixed_sample("abc", None) == fixed_sample("abc", 3) == ["a", "b", "c"]
    labels = np.array(list("aaabbbbc"))
    assert Counter(labels[draw_examples(labels, np.arange(8), 2, 3, random)]) == {"a": 2, "b": 2}
    with pytest.raises(InputError, match="got 1 labels with 4 utterances to draw 2 examples from"):
        draw_examples(labels, np.arange(8), 2, 4, random)


@pytest.fixture
def banking(monkeypatch, tmp_path):
    """Two intents of which one word tells, with some utterances out of scope, in place of CLINC150."""

    def load(corpus, data_dir, split, **_):
        known = [(f"{split} {word} number {number}", word) for word in ("card", "loan") for number in range(12)]
        return said(*known, *((f"{split} weather {number}", "oos") for number in range(9)))

    monkeypatch.setattr(corpora, "load_dialogues", load)
    (tmp_path / "clinc150").mkdir()  # a corpus is looked for, and not read
    monkeypatch.setenv("HF_DIALEMB_DATA", str(tmp_path))
    encoder = Given(hashed)
    monkeypatch.setattr(remembering, "load_encoder", lambda model: load_encoder(encoder))
    monkeypatch.setattr(run, "find_encoder", lambda model: None)
    monkeypatch.setattr(run, "fingerprint", lambda model: "0" * 16)
    return encoder


def measured(**more):
    return evaluate(["one"], "clinc150", **more)


def test_several_tasks_share_what_is_encoded_and_many_figures_stand_below_each_other(banking, tmp_path):
    output = tmp_path / "results.json"
    results = measured(seeds=[0, 1], output=output)
    assert read_results(output).results == results.results
    assert set(Counter(chain(*banking.calls)).values()) == {1}
    assert {row.task for row in results.results} == {"intent-classification", "out-of-scope-detection", "encoding"}
    assert sum(row.task == "encoding" for row in results.results) == 1
    config = read_results(output).run["config"]
    assert (config["corpus"], config["split"], config["labels"]) == ("clinc150", "test", 2)
    assert config["tasks"] == ["intent-classification", "out-of-scope-detection"]
    assert config["intent-classification"]["utterances"] == 24
    assert config["out-of-scope-detection"]["utterances"] == 33
    own, _ = output.with_suffix(".md").read_text().split("\n**Beside what papers print**\n")
    lines, meanings = (part.splitlines() for part in own.split("\n\n- "))
    assert meanings[0] == "Accuracy: intents recognised from one or five examples of each."
    assert lines[6] == "| Figure | one |"
    assert lines[8].startswith("| Accuracy (1-shot) | ")
    assert lines[-1].startswith("| Encoding (s) ↓ | ")
    assert sum("out-of-scope-detection oos_recall" in line for line in lines) == 8


def test_tasks_can_be_named_and_pictures_need_labels(banking, tmp_path):
    results = measured(tasks=["intent-classification"], seeds=[0])
    assert {row.task for row in results.results} == {"intent-classification", "encoding"}
    banking.calls.clear()
    plot = tmp_path / "map.png"
    with pytest.raises(InputError, match="Unknown task 'intents'"):
        measured(tasks=["intents"])
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match="got out-of-scope-detection, whose items have no labels"):
        measured(tasks=["out-of-scope-detection"], plot=plot)
    assert not banking.calls
    measured(seeds=[0], plot=plot)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert set(Counter(chain(*banking.calls)).values()) == {1}


def test_tasks_of_a_file_of_ones_own_and_help_names_all(tmp_path, capsys, printed):
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    assert set(TASKS) <= set(capsys.readouterr().out.replace(",", " ").replace(";", " ").split())
    path, output = tmp_path / "mine.jsonl", tmp_path / "results.json"
    turns = [Turn("user", f"{act} {n}", (act,)) for act in ("request", "bye") for n in range(15)]
    write_jsonl([Dialogue((turn,)) for turn in turns], path)
    words = ["evaluate", "--model", "tfidf", "--corpus", path, "--output", output, "--seeds", "2"]
    assert "| F1 (1-shot) |" in printed(*words, "--task", "action-similarity")


ASKING = Dialogue((Turn("user", "hello"), Turn("assistant", "hi"), Turn("user", "a room")))
CALLING = Dialogue((Turn("assistant", "good day"), Turn("user", "yes")))


def test_an_encoder_without_parts_is_given_what_one_speaker_says():
    def encode(dialogues):
        return np.array([(len(each.turns), sum(len(turn.content) for turn in each.turns)) for each in dialogues])

    found = views(SimpleNamespace(name="counting", encode=encode), [ASKING, CALLING])
    assert {setting: vectors.tolist() for setting, vectors in found.items()} == {
        FIRST: [[2, 11], [1, 8]], SECOND: [[1, 2], [1, 3]],
    }  # fmt: skip


@pytest.mark.parametrize("remembered", [False, True])
def test_a_dialogue_encoder_gives_its_parts_of_the_whole_dialogue(tiny_checkpoint, sample_dialogues, remembered):
    encoder = load_encoder(str(tiny_checkpoint))
    dialogues = [*sample_dialogues[:5], CALLING]
    found = views(RememberingEncoder(encoder) if remembered else encoder, dialogues)
    speakers, tokens = encoder.encode_speakers(dialogues)
    assert (tokens > 0).all()
    np.testing.assert_array_equal(found[FIRST][-1], speakers[-1, 1])  # the assistant calls
    np.testing.assert_array_equal(found[SECOND][-1], speakers[-1, 0])
    np.testing.assert_array_equal(found[FIRST][:-1], speakers[:-1, 0])
    center = encoder.encode_speakers.args[0].center.numpy()
    np.testing.assert_allclose(found[SUM], encoder.encode(dialogues) + center, atol=1e-5)
    encoder.encode_speakers.args[0].config.pooling = "mean"
    np.testing.assert_allclose(found[MEAN], encoder.encode(dialogues) + center, atol=1e-5)


def test_one_voice_is_left_out_and_all_settings_are_measured(tmp_path):
    path = tmp_path / "mine.jsonl"
    rooms = [Dialogue((Turn("user", f"room {n}"), Turn("assistant", "fine")), f"r{n}", ("hotel",)) for n in range(4)]
    trains = [Dialogue((Turn("user", "train"), Turn("assistant", f"at {n}")), f"t{n}", ("train",)) for n in range(4)]
    alone = Dialogue((Turn("user", "well"),), "alone", ("hotel",))
    write_jsonl([*rooms, *trains, alone], path)
    problem = load_ablations(CorpusPart(str(path)))
    assert (problem.config["dialogues"], problem.config["labels"]) == (8, 2)
    found = {(row.task, row.metric, row.setting): row.mean for row in problem.measure(load_encoder("tfidf"), [0])}
    assert found["dialogue-retrieval", "map", FIRST] == pytest.approx(100)
    measured = [("domain-categorization", "purity", ""), ("semantic-relatedness", "spearman", "per-query, ")]
    measured += [("dialogue-retrieval", "map", "")]
    assert set(found) == {(*names, at + place) for *names, at in measured for place in (FIRST, SECOND)}
    write_jsonl([rooms[0], trains[0], alone], path)
    with pytest.raises(InputError, match="got 2 dialogues of two speakers with 2 distinct labels"):
        load_ablations(CorpusPart(str(path)))


def scores(count: int, gain: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    second = generator.random(count)
    return second + gain + generator.normal(0, 0.2, count), second


def counts(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, (count, 3))


def test_closed_forms():
    ranks = 1 / np.arange(1, 30)
    same = paired_bootstrap(ranks, ranks)
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    assert paired_bootstrap_f1(counts(20, 0), counts(20, 0)).p_value == 1
    better = paired_bootstrap(np.linspace(0.5, 1, 40), np.linspace(0.2, 0.6, 40), resamples=999)
    assert better.p_value == 1 / 1000  # the floor
    assert better.low > 0
    assert (better.examples, better.resamples, better.seed) == (40, 999, 0)


@pytest.mark.parametrize("compare", [paired_bootstrap, paired_bootstrap_f1])
def test_the_order_of_the_systems_turns_the_sign_and_nothing_else(compare):
    first, second = scores(50, 0.03) if compare is paired_bootstrap else (counts(50, 1), counts(50, 2))
    there, back = compare(first, second), compare(second, first)
    assert 0.001 < there.p_value < 1
    assert back.p_value == there.p_value
    assert (back.difference, back.low, back.high) == pytest.approx((-there.difference, -there.high, -there.low))


def test_the_seed_decides_and_blocks_do_not(monkeypatch):
    first, second = scores(31, 0.05)
    whole = paired_bootstrap(first, second, seed=3)
    assert whole != paired_bootstrap(first, second, seed=4)
    monkeypatch.setattr(sampling, "_BLOCK", 100)
    assert astuple(paired_bootstrap(first, second, seed=3)) == pytest.approx(astuple(whole), abs=1e-12)


def test_p_and_f1_agree_with_all_possible_draws():
    first, second = counts(4, 5), counts(4, 6)

    def gain(rows: tuple[int, ...]) -> float:
        sums = [table[list(rows)].sum(axis=0) for table in (first, second)]
        one, other = (2 * hits / max(1, 2 * hits + wrong + missed) for hits, wrong, missed in sums)
        return one - other

    drawn, observed = np.array([gain(rows) for rows in product(range(4), repeat=4)]), gain((0, 1, 2, 3))
    exact = np.mean(np.abs(drawn - observed) >= abs(observed) - 1e-12)
    found = paired_bootstrap_f1(first, second)
    assert found.difference == pytest.approx(observed)
    assert found.p_value == pytest.approx(exact, abs=0.02)


def test_the_interval_is_scipys_and_p_is_close_to_that_of_permutations():
    first, second = scores(80, 0.04)
    found = paired_bootstrap(first, second)
    interval = stats.bootstrap((first - second,), np.mean, method="percentile", rng=1).confidence_interval
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=0.004)
    permuted = stats.permutation_test((first - second,), np.mean, permutation_type="samples", rng=1)
    assert found.p_value == pytest.approx(permuted.pvalue, abs=0.02)


def test_chance_is_called_significant_as_often_as_it_should_be():
    p_values = [paired_bootstrap(*scores(60, 0.0, seed), resamples=400, seed=seed).p_value for seed in range(200)]
    assert 0.01 <= np.mean(np.array(p_values) < 0.05) <= 0.1


def test_what_cannot_be_compared_is_refused():
    for compare, values, message in (
        (paired_bootstrap, ([1, 2], [1]), "expected that of first"),
        (paired_bootstrap, ([], []), "at least one example"),
        (paired_bootstrap, ([np.nan], [1]), "finite"),
        (lambda *given: paired_bootstrap(*given, resamples=0), ([1], [1]), "at least 1"),
        (paired_bootstrap_f1, ([[1, 2]], [[1, 2]]), r"expected \(N, 3\)"),
        (paired_bootstrap_f1, ([[1, 2, -1]], [[1, 2, 3]]), "negative"),
        (mean_interval, ([],), "values: got"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(*values)


def test_the_interval_of_a_mean_is_that_of_a_difference_to_zero():
    values = scores(50, 0.1)[0]
    found = paired_bootstrap(values, np.zeros(50), resamples=1_000)
    assert mean_interval(values) == pytest.approx((found.low, found.high))
    assert mean_interval([0.25] * 4) == (0.25, 0.25)
