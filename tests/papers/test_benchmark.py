"""The papers' own lists and figures.

What is quoted from where, what is left out, and going on after a stop."""

import re
from dataclasses import replace
from itertools import groupby, product
from types import SimpleNamespace

import numpy as np
import pytest
from given_vectors import RUN, Given, hashed, row, said
from scipy import stats

from hf_dialemb import InputError, data
from hf_dialemb.data import MissingFilesError
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.evaluation import get_task, read_results
from hf_dialemb.evaluation.evaluating import page_of, write_with_page
from hf_dialemb.evaluation.results.result_tables import markdown_table, meanings, paper_table
from hf_dialemb.evaluation.results.rows import Results, place_of
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.papers import benchmark
from hf_dialemb.papers.benchmark import evaluate_suite
from hf_dialemb.papers.quoted import quoted_beside, quoted_figures
from hf_dialemb.papers.significance import paired_bootstrap
from hf_dialemb.papers.suites import SUITES, Entry

# corpora of the papers that this package does not read, and averages
NOT_READ = {
    "amazonqa",
    "bitod",
    "dialogue_nli",
    "dstc7_ubuntu",
    "gsim",
    "metalwoz",
    "six corpora",
    "ubuntu",
}
STAND_INS = {  # for corpora that are scarce
    "dial2vec": {"star", "kvret", "dailydialog"},
    "dse": {"sgd", "ubuntu_irc"},
    "dialog2flow": {"star", "sgd", "multiwoz"},
    "dialogue_cse": {"sgd"},
    "mgt": {"sgd", "ubuntu_irc"},
}
TASKS = {"domains": "dialogue-retrieval"}
ROW = row("ours", task="action-similarity", metric="f1", setting="1-shot", std=1.0, n=10)


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_quotes_paper_table_and_row_of_all_its_problems(suite):
    entries = SUITES[suite]
    assert len(set(entries)) == len(entries)
    for entry in entries:
        assert data.get_corpus(entry.corpus).kind in get_task(entry.task).kinds
    # all that is measured on a corpus comes one after the other
    names = [name for name, _ in groupby(entry.corpus for entry in entries)]
    assert len(names) == len(set(names))
    quoted = quoted_figures(suite)
    source = r".+ \(.+( et al\.| and \w+), 20\d\d\), (Table \d+|section 4\.5).*, row \S.*"
    for each in quoted.rows:
        assert re.fullmatch(source, each.quoted_from), each.quoted_from
        assert each.corpus in {*data.CORPORA, *NOT_READ}
    assert len({(row.model, *place_of(row)) for row in quoted.rows}) == len(quoted.rows)
    assert set(quoted.shown) <= {row.model for row in quoted.rows}
    figures = {(row.corpus, row.task) for row in quoted.rows}
    for corpus, task, _ in entries:
        assert corpus in STAND_INS[suite] or (corpus, TASKS.get(task, task)) in figures


def test_the_table_has_a_row_per_figure_and_labelled_columns_of_the_paper():
    plain = {"metric": "intra", "setting": "", "std": None}
    rows = [
        ROW,
        replace(ROW, model="a|b", mean=60.0),
        replace(ROW, mean=0.5, **plain),
        replace(
            ROW,
            model="DSE",
            mean=70.0,
            quoted_from="Paper (A et al., 2022), Table 2, row DSE (ours)",
        ),
    ]
    rows += [replace(ROW, task="encoding", metric="seconds", setting="", std=None)]
    rows += [replace(ROW, model="BERT", mean=0.25, quoted_from="Paper, Table 3", **plain)]
    assert paper_table(rows).splitlines() == [
        "| Corpus | Figure | ours | a\\|b | paper: DSE | paper: BERT |",
        "| :-- | :-- | --: | --: | --: | --: |",
        "| sgd, test | F1 (1-shot) | 50.00 ± 1.00 | **60.00** ± 1.00 | 70.00 ± 1.00 | — |",
        "| sgd, test | Within actions | 0.500 | — | — | 0.250 |",
        "",
        "The paper's figures are quoted from Paper (A et al., 2022), Table 2; Paper, Table 3.",
    ]


def test_the_papers_figures_stand_beside_a_task_but_not_in_its_results(tmp_path):
    rows = (
        replace(ROW, corpus="dialog2flow_evaluation"),
        replace(ROW, corpus="calls.jsonl", mean=40.0),
    )
    output = tmp_path / "results.json"
    write_with_page(Results(RUN, rows), output)
    assert read_results(output).results == rows
    own, beside = output.with_suffix(".md").read_text().split("\n**Beside what papers print**\n\n")
    assert own.endswith(f"\n\n{markdown_table(rows)}\n{meanings(rows)}")
    assert beside == paper_table((rows[0], *quoted_beside(rows)))
    assert {row.model for row in quoted_beside(rows)} == set(quoted_figures("dialog2flow").shown)
    assert quoted_beside(rows[1:]) == quoted_beside(rows, ["dse"]) == []


def failing_at_snips(error):
    def vector(text):
        if "snips" in text:
            raise error
        return hashed(text)

    return vector


@pytest.fixture
def small(monkeypatch):
    """A paper of three problems, of which one is not at hand, with two models."""

    def load(corpus, data_dir, split, **_):
        if corpus == "hwu64":
            raise MissingFilesError(f"{corpus} is not here")
        return said(
            *((f"{corpus} {word} number {n}", word) for word in ("card", "loan") for n in range(12))
        )

    models = {name: Given(hashed) for name in ("one", "two", "tfidf")}
    # those of a suite's own are no other choices
    sizes = {"banking77": None, "snips": 20, "hwu64": None}
    problems = [Entry(corpus, "intent-classification", most) for corpus, most in sizes.items()]
    monkeypatch.setitem(SUITES, "dse", tuple(problems))
    monkeypatch.setattr(data, "load_dialogues", load)
    monkeypatch.setattr(CorpusPart, "data_hash", lambda part: None)
    monkeypatch.setattr(benchmark, "check_request", lambda *arguments, **settings: None)
    monkeypatch.setattr(
        benchmark, "RememberingEncoder", lambda model, cache: RememberingEncoder(models[model])
    )
    monkeypatch.setattr(benchmark, "find_encoder", lambda model: SimpleNamespace(fingerprint=model))
    return models


def run(output, *models):
    return evaluate_suite("dse", models, seeds=[0], output=output)


def own(results):
    return [row for row in results.results if row.quoted_from is None]


def test_a_stopped_run_keeps_its_figures_and_the_next_has_all(small, tmp_path):
    output = tmp_path / "out" / "dse.json"
    small["two"].vector = failing_at_snips(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run(output, "one", "two")
    kept = {(row.model, row.corpus) for row in own(read_results(output))}
    assert kept == {("one", "banking77"), ("one", "snips"), ("two", "banking77")}
    small["two"].vector = hashed
    results = run(output, "one", "two")
    assert read_results(output) == results
    config = results.run["config"]
    assert config["left_out"] == ["hwu64 (intent-classification)"]
    assert [problem["limit"] for problem in config["problems"]] == [None, 20]
    tasks = ("intent-classification", "encoding")
    measured = {(row.model, row.corpus, row.task) for row in own(results)}
    assert measured == set(product(("one", "two"), ("banking77", "snips"), tasks))
    table = paper_table(results.results)
    page = output.with_suffix(".md").read_text()
    assert page.endswith(
        f"each of 2 models is on the tasks of dse. Look at Accuracy (1-shot) first.\n\n{table}"
    )
    assert "| Figure | one | two | paper: DSE (BERT-base) |" in table
    assert "| 43.12 |" in table  # banking77, 1-shot


def test_one_model_that_fails_does_not_stop_the_others(small):
    small["one"].vector = failing_at_snips(InputError("no words"))
    config = run(None, "one", "two").run["config"]
    assert config["not_measured"] == {"one, snips, test, intent-classification": "no words"}
    assert [cell[:2] for cell in config["cells"]] == [
        ["one", "banking77"],
        ["two", "banking77"],
        ["two", "snips"],
    ]


SMALLER = {
    "dialog2flow": (
        Entry("dialog2flow_evaluation", "action-similarity"),
        Entry("spokenwoz", "flow-extraction"),
    ),
    "dialogue_cse": (Entry("jddc_sts", "dialogue-sts"),),
}


@pytest.mark.slow
def test_a_benchmark_from_the_command_line_shows_all(data_dir, tmp_path, printed, monkeypatch):
    for suite, entries in SMALLER.items():
        monkeypatch.setitem(SUITES, suite, entries)
    output = tmp_path / "benchmark"
    words = ["--model", "tfidf", "lda", "--seeds", "1", "--limit", "150", "--suite", *SMALLER]
    printed = printed("papers", "benchmark", *words, "--data-dir", data_dir, "--output", output)
    assert "| tfidf | lda | paper: D2F single (BERT-base) |" in printed
    assert "313 actions that are published" in printed
    assert "Left out: spokenwoz (flow-extraction)" in printed
    for suite in SMALLER:
        assert (output / f"{suite}.md").read_text() == page_of(
            read_results(output / f"{suite}.json")
        )


def test_wrong_benchmarks_are_refused_before_any_work(tmp_path, refused):
    for words, message in (
        ("dsee", "Unknown suite 'dsee'. Did you mean 'dse'?"),
        ("dse --seeds 0", "seeds: got none"),
    ):
        command = ("papers", "benchmark", "--output", tmp_path / "out", "--model", "tfidf")
        assert message in refused(*command, "--suite", *words.split())
    assert not (tmp_path / "out").exists()
    none = r"got none of its corpora \(dialog2flow_evaluation \(action-similarity\), star"
    with pytest.raises(InputError, match=none):
        evaluate_suite("dialog2flow", ["tfidf"], tmp_path)


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
    assert paired_bootstrap(counts(20, 0), counts(20, 0)).p_value == 1
    better = paired_bootstrap(np.linspace(0.5, 1, 40), np.linspace(0.2, 0.6, 40))
    assert better.p_value == 1 / 10_001  # the floor
    assert better.low > 0
    assert (better.examples, better.resamples) == (40, 10_000)


def test_p_and_f1_agree_with_all_possible_draws():
    first, second = counts(4, 5), counts(4, 6)

    def gain(rows: tuple[int, ...]) -> float:
        sums = [table[list(rows)].sum(axis=0) for table in (first, second)]
        one, other = (2 * hits / max(1, 2 * hits + wrong + missed) for hits, wrong, missed in sums)
        return one - other

    drawn = np.array([gain(rows) for rows in product(range(4), repeat=4)])
    observed = gain((0, 1, 2, 3))
    exact = np.mean(np.abs(drawn - observed) >= abs(observed) - 1e-12)
    comparison = paired_bootstrap(first, second)
    assert comparison.difference == pytest.approx(observed)
    assert comparison.p_value == pytest.approx(exact, abs=0.02)


def test_interval_and_p_are_scipys():
    first, second = scores(80, 0.04)
    comparison = paired_bootstrap(first, second)
    interval = stats.bootstrap(
        (first - second,), np.mean, method="percentile", rng=1
    ).confidence_interval
    assert (comparison.low, comparison.high) == pytest.approx(
        (interval.low, interval.high), abs=0.004
    )
    permuted = stats.permutation_test((first - second,), np.mean, permutation_type="samples", rng=1)
    assert comparison.p_value == pytest.approx(permuted.pvalue, abs=0.02)
