"""Evaluation from embeddings to results files and tables, which mark what a model learnt from."""

import json
import time
from collections import Counter
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from given_vectors import Given, hashed, row, said

import hf_dialemb
from hf_dialemb import InputError, data, evaluate, load_encoder
from hf_dialemb.data import write_jsonl
from hf_dialemb.encoders import embedding_cache
from hf_dialemb.evaluation import (
    default_tasks,
    evaluate_embeddings,
    evaluating,
    get_task,
    markdown_table,
    paper_table,
)
from hf_dialemb.evaluation.results.contamination import NOTE, is_learnt, learnt_sets, sets_behind
from hf_dialemb.evaluation.results.rows import (
    Results,
    describe_run,
    merge_results,
    read_results,
    with_ties,
    write_results,
)
from hf_dialemb.evaluation.tasks.sampling import mean_interval
from hf_dialemb.metrics.alignment_uniformity import alignment_uniformity
from hf_dialemb.metrics.dialogue_retrieval import retrieval_scores
from hf_dialemb.metrics.purity import cluster_purity
from hf_dialemb.metrics.semantic_relatedness import binary_spearman, pair_relatedness
from hf_dialemb.metrics.vectors import query_scores

ROW = row()
SHAPE = {"task": "alignment-uniformity", "metric": "uniformity"}


def test_every_figure_stands_under_its_own_name_in_percent(caplog):
    labels = ["a"] * 12 + ["b"] * 8
    vectors = np.random.default_rng(0).normal(size=(20, 3)) + np.array(
        [[0.9, 0, 0]] * 12 + [[0, 0.9, 0]] * 8
    )
    found = {
        (each.metric, each.setting): each
        for each in evaluate_embeddings(vectors, labels, seeds=[0, 1])
    }
    clusters = cluster_purity(vectors, labels, [0, 1])
    retrieval, geometry = retrieval_scores(vectors, labels), alignment_uniformity(vectors, labels)
    expected = {(name, ""): 100 * np.mean(clusters[name]) for name in ("purity", "nmi", "ari")}
    expected |= {(name, ""): 100 * retrieval[name] for name in ("map", "mrr")}
    (spearman,), _ = query_scores(vectors, labels, binary_spearman)
    expected |= {("spearman", "per-query"): 100 * np.nan_to_num(spearman).mean()}
    expected |= {("spearman", "pairs"): 100 * np.mean(pair_relatedness(vectors, labels, [0, 1]))}
    expected |= {(name, ""): geometry[name] for name in ("adjusted_alignment", "uniformity")}
    assert len({round(value, 3) for value in expected.values()}) == len(expected)
    assert {place: each.mean for place, each in found.items()} == pytest.approx(expected)
    repeated = {"purity", "nmi", "ari", "pairs"}
    for (metric, setting), each in found.items():
        assert (each.n, each.std is None) == (
            (2, False) if {metric, setting} & repeated else (1, True)
        )
    evaluate_embeddings(np.ones((5, 2)), ["a", "a", "b", "b", "c"], seeds=[0])
    assert "1 of 5 dialogues have a label of their own" in caplog.text
    assert "counts as 0 for 1 draws of pairs and 4 queries" in caplog.text


def test_results_survive_a_round_trip_and_tell_how_they_were_measured(tmp_path):
    run = describe_run("dialemb evaluate", {"limit": None}, range(2), time.perf_counter() - 5)
    assert set(run) == {"command", "config", "seeds", "versions", "hardware", "seconds"}
    assert (run["seeds"], run["versions"]["numpy"], bool(run["hardware"])) == (
        [0, 1],
        np.__version__,
        True,
    )
    assert 5 <= run["seconds"] < 60
    more = {
        "std": 0.5,
        "n": 2,
        "quoted_from": "paper, Table 2",
        "interval": (49.0, 51.5),
        "learnt": True,
    }
    results = Results(run, (ROW, replace(ROW, model="dial2vec", **more)))
    path = tmp_path / "new" / "results.json"
    write_results(results, path)
    assert read_results(path) == results
    assert [entry.name for entry in path.parent.iterdir()] == ["results.json"]


def test_ties_are_told_from_differences_by_pairs_of_items(tmp_path):
    noise = np.random.default_rng(0).normal(size=400)
    scores = {
        "best": 60 + noise,
        "above": 60 + noise - 2,
        "level": 60 + noise - 0.01 * np.sign(noise[::-1]),
    }
    scores |= {"shorter": 60 + noise[:300], "single": [60.0]}
    rows = [
        row(model, float(np.mean(values)), scores=tuple(values)) for model, values in scores.items()
    ]
    tied = {entry.model: entry.tied for entry in with_ties(rows)}
    assert tied == {
        "best": ("level",),
        "level": ("best",),
        "above": (),
        "shorter": (),
        "single": (),
    }


SCORED = {
    "rare": lambda generator, size: generator.random(size) < 0.02,
    "half": lambda generator, size: generator.random(size) < 0.5,
    "ranks": lambda generator, size: 1 / generator.integers(1, 101, size),
    "precisions": lambda generator, size: np.minimum(1, 3 * generator.random(size)),
    "near 1": lambda generator, size: generator.beta(8, 2, size),
}


@pytest.mark.parametrize("size", [3, 5, 10, 30])
@pytest.mark.parametrize("population", [*SCORED, "differences", "seeds"])
def test_intervals_hold_the_true_mean_at_least_92_times_of_100(population, size):
    generator = np.random.default_rng(0)
    bounds = None if population == "seeds" else (0.0, 1.0)
    if population == "seeds":
        drawn, truth = generator.normal(60, 2, (2_000, size)), 60
    elif population == "differences":
        chances = generator.random((2_000, size))
        drawn, truth, bounds = (chances < 0.1) * 1.0 - (chances > 0.95), 0.05, (-1.0, 1.0)
    else:
        drawn = SCORED[population](generator, (2_000, size)) * 1.0
        truth = SCORED[population](generator, (10_000, 300)).mean()
    ends = np.array([mean_interval(values, bounds) for values in drawn])
    assert ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean() >= 0.92
    assert mean_interval(drawn[0, :2], bounds) is None


def test_merging_keeps_the_latest_figure():
    quoted, later = replace(ROW, quoted_from="paper"), replace(ROW, mean=60.0)
    assert merge_results([Results({}, (ROW, quoted)), Results({}, (later,))]) == [later, quoted]


def test_a_corpus_has_a_table_of_one_row_per_model():
    rows = [row("tfidf", 70.0, metric="mrr"), row("tfidf", 50.04), row("a|b", 60.0, std=1.25, n=10)]
    rows += [row("a|b", -2.0, **SHAPE), row("tfidf", -3.0, **SHAPE)]
    rows += [row("dial2vec", 60.04, quoted_from="paper, Table 2")]
    rows += [row("tfidf", task="dialogue-sts", metric="spearman", setting="a|b")]
    assert markdown_table(rows).splitlines() == [
        "**sgd, test**",
        "",
        "| Model | MAP | MRR | Uniformity ↓ | dialogue-sts spearman (a\\|b) |",
        "| :-- | --: | --: | --: | --: |",
        "| tfidf | 50.0 | 70.0 | **-3.000** | 50.0 |",
        "| a\\|b | **60.0** ± 1.2 |  | -2.000 |  |",
        "| dial2vec [1] | **60.0** |  |  |  |",
        "",
        "[1] Quoted from paper, Table 2.  ",
    ]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"models": []}, "models: got"),
        ({"seeds": []}, "seeds: got none"),
        ({"limit": 1}, "limit: got 1"),
        ({"output": "/dev/null/results.json"}, "cannot be written"),
        (
            {"output": "results.md"},
            r"name it "
            r"\.json",
        ),
    ],
)
def test_wrong_requests_are_refused_before_any_work(monkeypatch, request_, words):
    monkeypatch.setattr(data, "load_dialogues", lambda *_, **__: pytest.fail("the corpus was read"))
    with pytest.raises(InputError, match=words):
        evaluate(**{"models": ["tfidf"], "dialogues": "small", **request_})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"corpus": ["sgd/train", "multiwoz/dev"]}, {("sgd", "train"), ("multiwoz", "dev")}),
        (
            {"corpus": ["star/all"], "exclude": ["star/test", "sgd/test"]},
            {("star", "train"), ("star", "dev")},
        ),
        (
            {"corpus": ["calls.jsonl", "org/calls"], "exclude": ["none"]},
            {("calls.jsonl", ""), ("org/calls", "train")},
        ),
        ({"corpus": ["org/calls"], "train_split": "all"}, {("org/calls", "all")}),
    ],
)
def test_what_a_training_read_is_told_by_its_settings(settings, expected):
    assert learnt_sets(settings) == expected


def learning_from(folder, *corpora):
    folder.mkdir(exist_ok=True)
    (folder / "training_settings.json").write_text(json.dumps({"corpus": corpora}))


def test_an_ensemble_learnt_what_its_members_learnt(tmp_path):
    learning_from(tmp_path / "one", "sgd/train")
    learning_from(tmp_path / "two", "star/test")
    (tmp_path / "both").mkdir()
    made_of = [{"run": "one", "weights": "a"}, {"run": "two/checkpoint-5", "weights": "b"}]
    (tmp_path / "both" / "members.json").write_text(json.dumps(made_of))
    one, two = {("sgd", "train")}, {("star", "test")}
    expected = {"one": one, "one (utterances)": one, "two/checkpoint-5": two, "both": one | two}
    assert {model: sets_behind(str(tmp_path / model)) for model in expected} == expected
    assert sets_behind("all-MiniLM-L6-v2") == sets_behind("tfidf") == frozenset()


def test_all_of_a_corpus_is_learnt_if_a_part_is(tmp_path, monkeypatch):
    sets = frozenset(
        {("star", "test"), ("calls.jsonl", ""), ("org/calls", "train"), ("org/chats", "all")}
    )
    monkeypatch.chdir(tmp_path)
    for place in ("star/test", "star/all", "org/calls/train", "org/calls/all", "org/chats/test"):
        assert is_learnt(*place.rsplit("/", 1), sets), place
    assert is_learnt(str(tmp_path / "calls.jsonl"), "test", sets)
    for place in ("star/dev", "sgd/test", "org/calls/test", "other.jsonl/test"):
        assert not is_learnt(*place.rsplit("/", 1), sets), place


def test_tables_mark_what_was_learnt_and_make_the_best_of_the_others_bold():
    figure = {
        "corpus": "star",
        "task": "action-similarity",
        "metric": "f1",
        "setting": "1-shot",
        "std": 1.0,
        "n": 10,
    }
    others = [row("one", 80.0, **figure), row("two", 70.0, **figure)]
    rows = [row("ours", 95.0, **figure, learnt=True), *others]
    for table, decimals in ((markdown_table(rows), "0"), (paper_table(rows), "00")):
        assert f"95.{decimals}† ± 1.0" in table
        assert "**80.0" in table
        assert "**95" not in table
        assert table.count(NOTE) == 1
    assert NOTE not in markdown_table(others) + paper_table(others)


@pytest.mark.slow
def test_texts_that_a_model_learnt_are_marked_whatever_file_has_them(tiny_bert, tmp_path):
    dialogues = data.load_dialogues("sample", None, "test")
    write_jsonl([replace(dialogue, domains=()) for dialogue in dialogues], tmp_path / "calls.jsonl")
    write_jsonl(dialogues[5:], tmp_path / "labelled.jsonl")
    write_jsonl(data.load_dialogues("sample", None, "dev"), tmp_path / "other.jsonl")
    settings = {
        "backbone": tiny_bert,
        "max_steps": 1,
        "exclude": ["none"],
        "output_dir": tmp_path / "run",
    }
    run = hf_dialemb.train("dse", tmp_path / "calls.jsonl", **settings)
    for name, learnt in (("labelled", True), ("other", False)):
        file = str(tmp_path / f"{name}.jsonl")
        results = evaluate([str(run.path), "tfidf"], file, tasks=["domains"], seeds=[0])
        marks = {(row.model, row.metric): row.learnt for row in results.results}
        assert (marks[str(run.path), "map"], marks["tfidf", "map"]) == (learnt, False)


def test_what_suits_a_corpus_and_what_does_not():
    for corpus in data.CORPORA:
        for task in map(get_task, default_tasks(corpus)):
            assert data.get_corpus(corpus).kind in task.kinds, corpus
    assert default_tasks("sgd") == default_tasks("mine.jsonl") == ("domains",)
    assert default_tasks("clinc150") == ("intent-classification", "out-of-scope-detection")


def test_tasks_share_vectors_and_many_figures_make_a_long_table(monkeypatch, tmp_path):
    """Of two intents that a word tells, and utterances out of scope."""

    def load(corpus, data_dir, split, **_):
        known = [
            (f"{split} {word} number {number}", word)
            for word in ("card", "loan")
            for number in range(12)
        ]
        return said(*known, *((f"{split} weather {number}", "oos") for number in range(9)))

    monkeypatch.setattr(data, "load_dialogues", load)
    (tmp_path / "clinc150").mkdir()  # a corpus is looked for, and not read
    monkeypatch.setenv("HF_DIALEMB_DATA", str(tmp_path))
    encoder = Given(hashed)
    monkeypatch.setattr(embedding_cache, "load_encoder", lambda model: load_encoder(encoder))
    monkeypatch.setattr(evaluating, "find_encoder", lambda model: None)
    output = tmp_path / "results.json"
    results = evaluate(["one"], "clinc150", seeds=[0, 1], output=output)
    assert read_results(output).results == results.results
    assert set(Counter(chain(*encoder.calls)).values()) == {1}
    assert {row.task for row in results.results} == {
        "intent-classification",
        "out-of-scope-detection",
        "encoding",
    }
    assert sum(row.task == "encoding" for row in results.results) == 1
    config = read_results(output).run["config"]
    assert (config["corpus"], config["split"], config["labels"]) == ("clinc150", "test", 2)
    assert config["tasks"] == ["intent-classification", "out-of-scope-detection"]
    assert config["intent-classification"]["utterances"] == 24
    assert config["out-of-scope-detection"]["utterances"] == 33
