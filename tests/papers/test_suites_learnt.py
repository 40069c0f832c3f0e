"""Suites mark what a model learnt from."""

import shutil
from dataclasses import replace

from made_up_results import RUN, row
from test_evaluation import learning_from

from hf_dialemb.evaluation.results.learnt import NOTE
from hf_dialemb.evaluation.results.rows import Results
from hf_dialemb.papers.benchmark import evaluate_suite
from hf_dialemb.papers.report.page import write_report
from hf_dialemb.papers.suites import SUITES, Entry, Suite


def test_a_suite_marks_what_an_earlier_version_measured_without_marks(tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setitem(SUITES, "dial2vec", Suite((Entry("sample", "domains"),)))
    model = shutil.copytree(tiny_checkpoint, tmp_path / "run")
    before, after = [], []
    for found in (before, after):
        found += evaluate_suite("dial2vec", [str(model)], seeds=[0], output=tmp_path / "dial2vec.json").results
        learning_from(model, "sample/test")
    assert not any(row.learnt for row in before)
    assert after == [replace(row, learnt=row.metric != "seconds" and row.quoted_from is None) for row in before]


def test_a_report_marks_learnt_figures_and_sets_others_in_bold(tmp_path):
    figure = {"corpus": "star", "task": "action-similarity", "metric": "f1", "setting": "1-shot", "std": 1.0, "n": 10}
    rows = (row("ours", 95.0, **figure, learnt=True), row("one", 80.0, **figure), row("two", 70.0, **figure))
    write_report([Results(RUN, rows)], [], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert ">95.00†" in page
    assert '<b class="best">80.00</b>' in page
    assert page.count(NOTE) == 1
