"""Figures of dialogues that a model learnt from are marked wherever figures are shown, and win nothing."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from hf_dialemb.evaluation.benchmark import evaluate_suite
from hf_dialemb.evaluation.report.page import write_report
from hf_dialemb.evaluation.results.learnt import NOTE, is_learnt, learnt_sets, sets_behind
from hf_dialemb.evaluation.results.rows import Results, Row, read_results, write_results
from hf_dialemb.evaluation.results.tables import latex_table, markdown_table, paper_table
from hf_dialemb.evaluation.run import evaluate_models
from hf_dialemb.evaluation.suites import SUITES, Entry, Suite
from hf_dialemb.models.errors import InputError

ROW = Row(
    model="ours", corpus="star", split="test", task="action-similarity", metric="f1", setting="1-shot", mean=95.0,
    std=1.0, n=10,
)  # fmt: skip
RUN = {"command": None, "hardware": None, "commit": None, "seconds": 1.0, "config": {}, "seeds": [0], "versions": {}}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"corpus": "sgd"}, {("sgd", "train")}),
        ({"corpus": "sgd", "train_split": "dev"}, {("sgd", "dev")}),
        ({"corpus": ["sgd/train", "multiwoz/dev"]}, {("sgd", "train"), ("multiwoz", "dev")}),
        ({"corpus": ["star/all"]}, {("star", "train"), ("star", "dev"), ("star", "test")}),
        ({"corpus": ["star/all"], "exclude": ["star/test", "sgd/test"]}, {("star", "train"), ("star", "dev")}),
        ({"corpus": ["star/all"], "exclude": ["star/all"]}, set()),
        ({"corpus": ["calls.jsonl", "org/calls"], "exclude": ["none"]}, {("calls.jsonl", ""), ("org/calls", "train")}),
        ({"corpus": ["org/calls"], "train_split": "all"}, {("org/calls", "all")}),
        ({"corpus": ["calls.jsonl"], "exclude": ["calls.jsonl"]}, set()),
    ],
)
def test_what_a_training_read_is_told_by_its_settings(settings, expected):
    assert learnt_sets(settings) == expected


def learning_from(folder, *corpora):
    folder.mkdir(exist_ok=True)
    (folder / "training_settings.json").write_text(json.dumps({"corpus": corpora}))


def test_a_model_is_asked_by_its_folder_and_an_ensemble_by_those_of_its_members(tmp_path):
    learning_from(tmp_path / "one", "sgd/train")
    learning_from(tmp_path / "two", "star/test")
    (tmp_path / "both").mkdir()
    made_of = [{"run": "one", "weights": "a"}, {"run": "two/checkpoint-5", "weights": "b"}]
    (tmp_path / "both" / "members.json").write_text(json.dumps(made_of))
    one, two = {("sgd", "train")}, {("star", "test")}
    expected = {"one": one, "one@utterances,whitened": one, "two/checkpoint-5": two, "both": one | two}
    assert {model: sets_behind(str(tmp_path / model)) for model in expected} == expected
    assert sets_behind("all-MiniLM-L6-v2") == sets_behind("tfidf") == frozenset()


def test_all_of_a_corpus_is_learnt_if_a_part_is(tmp_path, monkeypatch):
    sets = frozenset({("star", "test"), ("calls.jsonl", ""), ("org/calls", "train"), ("org/chats", "all")})
    monkeypatch.chdir(tmp_path)
    for place in ("star/test", "star/all", "org/calls/train", "org/calls/all", "org/chats/test"):
        assert is_learnt(*place.rsplit("/", 1), sets), place
    assert is_learnt(str(tmp_path / "calls.jsonl"), "test", sets)
    for place in ("star/dev", "sgd/test", "org/calls/test", "other.jsonl/test"):
        assert not is_learnt(*place.rsplit("/", 1), sets), place


def test_tables_mark_what_was_learnt_and_make_the_best_of_the_others_bold(tmp_path):
    others = [replace(ROW, model="one", mean=80.0), replace(ROW, model="two", mean=70.0)]
    rows = [replace(ROW, learnt=True), *others]
    for table, decimals in ((markdown_table(rows), "0"), (paper_table(rows), "00")):
        assert f"95.{decimals}† ± 1.0" in table
        assert "**80.0" in table
        assert "**95" not in table
        assert table.count(NOTE) == 1
    assert NOTE not in markdown_table(others) + paper_table(others) + latex_table(others, "C")
    latex = latex_table(rows, "C")
    for words in (r"95.00\textdagger{} $\pm$ 1.00", r"\textbf{80.00}", r"\textdagger{} The model learnt"):
        assert words in latex
    write_report([Results(RUN, tuple(rows))], [], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert ">95.00†" in page
    assert '<b class="best">80.00</b>' in page
    assert page.count(NOTE) == 1


def test_the_mark_is_kept_in_the_results_file_and_older_files_have_none(tmp_path):
    path = tmp_path / "r.json"
    write_results(Results(RUN, (replace(ROW, learnt=True), ROW)), path)
    assert [row.learnt for row in read_results(path).results] == [True, False]
    record = json.loads(path.read_text())
    for row in record["results"]:
        del row["learnt"]
    path.write_text(json.dumps(record))
    assert [row.learnt for row in read_results(path).results] == [False, False]
    with pytest.raises(InputError, match="field learnt: got 'yes', expected true or false"):
        replace(ROW, learnt="yes")


@pytest.mark.slow
@pytest.mark.parametrize(("corpus", "expected"), [("sample/train", False), ("sample/all", True)])
def test_evaluation_marks_the_model_that_learnt_from_the_corpus_and_no_other(
    tiny_checkpoint, tmp_path, corpus, expected
):
    model = shutil.copytree(tiny_checkpoint, tmp_path / "run")
    learning_from(model, corpus)
    results = evaluate_models([str(model), "tfidf"], "sample", None, "test", tasks=["domains"], seeds=[0])
    marks = {(row.model, row.metric): row.learnt for row in results.results}
    assert marks[str(model), "map"] is expected
    assert not marks["tfidf", "map"]
    assert not marks[str(model), "seconds"]


def test_a_suite_marks_what_an_earlier_version_measured_without_marks(tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setitem(SUITES, "dial2vec", Suite((Entry("sample", "domains"),)))
    model = shutil.copytree(tiny_checkpoint, tmp_path / "run")
    before, after = [], []
    for found in (before, after):
        found += evaluate_suite("dial2vec", [str(model)], seeds=[0], output=tmp_path / "dial2vec.json").results
        learning_from(model, "sample/test")
    assert not any(row.learnt for row in before)
    assert after == [replace(row, learnt=row.metric != "seconds" and row.quoted_from is None) for row in before]
