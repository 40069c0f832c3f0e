"""Evaluation from embeddings to results files, tables and pictures."""

import builtins
import json
import subprocess
import sys
import time
from dataclasses import astuple, replace

import numpy as np
import pytest

from hf_dialemb import corpora
from hf_dialemb.corpora.source import fingerprint
from hf_dialemb.evaluation import evaluate_embeddings, evaluate_models, markdown_table
from hf_dialemb.evaluation.results.rows import Results, Row, describe_run, merge_results, read_results, write_results
from hf_dialemb.evaluation.run import _caption
from hf_dialemb.evaluation.tasks.domains import pair_scores
from hf_dialemb.metrics.alignment_uniformity.functional import alignment_uniformity
from hf_dialemb.metrics.purity.functional import cluster_purity
from hf_dialemb.metrics.semantic_relatedness.functional import pair_relatedness
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.errors import InputError
from hf_dialemb.runs.files import write_atomically

ROW = Row(model="tfidf", corpus="sgd", split="test", task="dialogue-retrieval", metric="map", setting="", mean=50.0)
SHAPE = {"task": "alignment-uniformity", "metric": "uniformity"}


def dialogue(domains, *words):
    return Dialogue.from_messages([{"role": "user", "content": word} for word in words], domains=domains.split())


@pytest.fixture
def small_corpus(monkeypatch):
    """Three domains whose dialogues share words, and one dialogue of two domains that must not be used."""
    places = [(domain, index) for domain in ("hotel", "taxi", "train") for index in range(4)]
    loaded = [dialogue(domain, f"i need a {domain}", f"which {domain}", f"number {n}") for domain, n in places]
    loaded.append(dialogue("hotel taxi", "hotel taxi"))
    monkeypatch.setattr(corpora, "load_dialogues", lambda corpus, data_dir, split: loaded)
    monkeypatch.setattr(fingerprint, "data_hash", lambda corpus, data_dir: None)


def measured(**more):
    return evaluate_models(["tfidf"], "small", None, "test", seeds=[0, 1], **more)


# tasks


def test_every_figure_stands_under_its_own_name_in_percent():
    labels = ["a"] * 12 + ["b"] * 8
    vectors = np.random.default_rng(0).normal(size=(20, 3)) + np.array([[0.9, 0, 0]] * 12 + [[0, 0.9, 0]] * 8)
    figures = {(each.metric, each.setting): each for each in evaluate_embeddings(vectors, labels, seeds=[0, 1])}
    clusters = cluster_purity(vectors, labels, [0, 1])
    queries, geometry = pair_scores(vectors, labels), alignment_uniformity(vectors, labels)
    expected = {(name, ""): 100 * np.mean(clusters[name]) for name in ("purity", "nmi", "ari")}
    expected |= {("map", ""): 100 * queries.average_precision.mean(), ("mrr", ""): 100 * queries.reciprocal_rank.mean()}
    expected |= {("spearman", "per-query"): 100 * queries.spearman.mean()}
    expected |= {("spearman", "pairs"): 100 * np.mean(pair_relatedness(vectors, labels, [0, 1])["spearman"])}
    expected |= {(name, ""): geometry[name] for name in ("adjusted_alignment", "uniformity")}
    assert len({round(value, 3) for value in expected.values()}) == len(expected)
    assert {place: each.mean for place, each in figures.items()} == pytest.approx(expected)
    repeated = {"purity", "nmi", "ari", "pairs"}
    for (metric, setting), each in figures.items():
        assert (each.n, each.std is None) == ((2, False) if {metric, setting} & repeated else (1, True))


def test_vectors_that_tell_domains_apart_have_the_best_figures_and_what_is_left_out_is_logged(caplog):
    found = evaluate_embeddings(np.eye(2)[[0] * 5 + [1] * 5], ["a"] * 5 + ["b"] * 5, seeds=[0, 1])
    assert np.allclose([each.mean for each in found if each.task != "alignment-uniformity"], 100.0)
    assert [each.mean for each in found if each.metric == "adjusted_alignment"] == [pytest.approx(-2.0)]
    assert len(found) == 9
    evaluate_embeddings(np.ones((5, 2)), ["a", "a", "b", "b", "c"], seeds=[0])
    assert "1 of 5 dialogues have a label of their own" in caplog.text
    assert "counts as 0 for 1 draws of pairs and 4 queries" in caplog.text


# results


def test_results_survive_a_round_trip_and_tell_how_they_were_measured(tmp_path):
    run = describe_run("dialemb evaluate", {"limit": None}, range(2), time.perf_counter() - 5)
    assert set(run) == {"command", "config", "seeds", "versions", "commit", "hardware", "seconds"}
    assert (run["seeds"], run["versions"]["numpy"]) == ([0, 1], np.__version__)
    assert 5 <= run["seconds"] < 60
    assert run["hardware"]
    assert run["commit"] is None or len(run["commit"]) == 40
    more = {"std": 0.5, "n": 2, "quoted_from": "paper, Table 2", "interval": (49.0, 51.5)}
    results = Results(run, (ROW, replace(ROW, model="dial2vec", **more)))
    path = tmp_path / "new" / "results.json"
    write_results(results, path)
    assert read_results(path) == results
    assert [entry.name for entry in path.parent.iterdir()] == ["results.json"]
    record = json.loads(path.read_text())
    assert record["schema"] == 1
    del record["results"][1]["interval"]  # as files of earlier versions
    path.write_text(json.dumps(record))
    assert read_results(path).results[1].interval is None


WHOLE = {"schema": 1, "run": describe_run("", {}, [], 0.0)}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        ("{", "text that is not JSON"),
        ("[]", "field schema: got 'list', expected 1"),
        ('{"schema": 2}', "field schema: got 2, expected 1"),
        ('{"schema": 1, "run": {}}', "got no 'run' object or no 'results' list"),
        ('{"schema": 1, "run": {}, "results": []}', "run: field command is missing"),
        ({"mean": "50"}, r"results\[0\]: field mean: got '50'"),
        ({"mean": float("nan")}, "field mean: got nan"),
        ({"std": True}, "field std: got True"),
        ({"n": 1.5}, "field n: got 1.5"),
        ({"model": None}, "field model: got None"),
        ({"quoted_from": 3}, "field quoted_from: got 3"),
        ({"extra": 1}, "expected exactly the fields model, corpus"),
    ],
)
def test_malformed_files_and_rows_are_refused(tmp_path, content, words):
    path = tmp_path / "results.json"
    if isinstance(content, dict):
        content = json.dumps({**WHOLE, "results": [vars(ROW) | content]})
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=words) as caught:
        read_results(path)
    assert str(path) in str(caught.value)


def test_merging_keeps_the_latest_figure_and_mixes_neither_quotations_nor_two_files_of_one_name():
    quoted, later = replace(ROW, quoted_from="paper"), replace(ROW, mean=60.0)
    assert merge_results([Results({}, (ROW, quoted)), Results({}, (later,))]) == (later, quoted)
    data = [{"corpus": "calls.jsonl", "data_sha256": digest} for digest in "aab"]
    runs = [Results({"config": config}, (ROW,)) for config in (*data, {"problems": data[2:]})]
    assert merge_results(runs[:2]) == (ROW,)
    for other in runs[2:]:
        with pytest.raises(InputError, match=r"calls\.jsonl: got figures of two different files of this name"):
            merge_results([runs[0], other])


# tables


def test_table_has_one_row_per_model_and_bold_bests_and_each_corpus_its_own():
    rows = [
        replace(ROW, metric="mrr", mean=70.0),
        replace(ROW, mean=50.04),
        replace(ROW, model="a|b", mean=60.0, std=1.25, n=10),
        replace(ROW, model="a|b", mean=-2.0, **SHAPE),
        replace(ROW, mean=-3.0, **SHAPE),
        replace(ROW, model="dial2vec", mean=60.04, quoted_from="paper, Table 2"),
        replace(ROW, task="dialogue-sts", metric="spearman", setting="a|b"),
    ]
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
    table = markdown_table([ROW, replace(ROW, corpus="multiwoz")])
    assert [line for line in table.splitlines() if line.startswith("**")] == ["**sgd, test**", "**multiwoz, test**"]
    assert markdown_table([]) == ""


# the whole


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(temporary):
        temporary.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_atomically(path, fail)
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["old"]


def test_missing_matplotlib_is_told_before_any_work(small_corpus, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r'pip install "hf-dialemb\[plot\]"'):
        measured(plot=tmp_path / "map.png")


@pytest.mark.slow
def test_evaluate_models_writes_results_table_and_picture(small_corpus, tmp_path, capsys):
    output, plot = tmp_path / "out" / "results.json", tmp_path / "out" / "map.png"
    again, results = (measured(output=output, plot=plot) for _ in range(2))
    assert again.results[:-1] == results.results[:-1]  # all but the seconds
    assert read_results(output) == results
    assert output.with_suffix(".md").read_text() == markdown_table(results.results)
    assert plot.read_bytes().startswith(b"\x89PNG")
    figures = {(row.task, row.metric): row.mean for row in results.results}
    assert figures["domain-categorization", "purity"] == figures["dialogue-retrieval", "map"] == 100.0
    assert figures["encoding", "seconds"] >= 0
    assert {row[:3] for row in map(astuple, results.results)} == {("tfidf", "small", "test")}
    config = results.run["config"]
    assert (config["dialogues"], config["labels"], config["labels_of_one_dialogue"]) == (12, 3, 0)
    assert capsys.readouterr().out == ""


def test_a_limit_is_a_sample_and_not_the_first(small_corpus):
    config = measured(limit=6).run["config"]
    assert config["dialogues"] == 6
    assert config["labels"] > 1


def test_a_file_in_a_folder_has_one_name_in_all_tasks(tmp_path):
    path = tmp_path / "sub" / "mine.csv"
    path.parent.mkdir()
    lines = [f"{domain}{n},user,{domain} {n},{domain}" for domain in ("hotel", "taxi") for n in range(12)]
    pairs = [f"{line}\n{line.replace(',user,', ',assistant,yes ')}" for line in lines]
    path.write_text("\n".join(["id,role,text,domain", *pairs]))
    tasks = ["domains", "next-utterance-retrieval"]
    results = evaluate_models(["tfidf"], str(path), None, "test", tasks=tasks, seeds=[0])
    assert {row.corpus for row in results.results} == {"mine.csv"}


def test_the_caption_of_a_picture_is_of_what_it_shows():
    purity = {"task": "domain-categorization", "metric": "purity"}
    rows = [replace(ROW, mean=95.0, **purity), replace(ROW, mean=90.0)]
    rows += [replace(ROW, mean=60.0, setting="second speaker", **purity), replace(ROW, task="semantic-retrieval")]
    assert _caption(rows, "tfidf") == "purity 95.0, MAP 90.0"


@pytest.mark.parametrize(
    ("dialogues", "words"),
    [
        ([], "no dialogue of it has exactly one domain label"),
        ([dialogue("hotel", "a room"), dialogue("hotel", "two rooms")], "2 dialogues with 1 distinct labels"),
        ([dialogue("hotel", "a room"), dialogue("taxi", "a car")], "2 dialogues with 2 distinct labels"),
    ],
)
def test_too_few_labels_are_refused(monkeypatch, dialogues, words):
    monkeypatch.setattr(corpora, "load_dialogues", lambda corpus, data_dir, split: dialogues)
    with pytest.raises(InputError, match=words):
        measured()


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"models": []}, "models: got"),
        ({"models": "tfidf"}, "models: got 'tfidf'"),
        ({"models": ["tfidf", "tfidf"]}, "more than once"),
        ({"seeds": []}, "seeds: got none"),
        ({"limit": 1}, "limit: got 1"),
        ({"output": ""}, "output"),  # a folder
        ({"output": "file/results.json"}, "cannot be written"),
        ({"output": "results.md"}, r"name it \.json"),
    ],
)
def test_wrong_requests_are_refused_before_any_work(monkeypatch, tmp_path, request_, words):
    def never(corpus, data_dir, split):
        raise AssertionError("the corpus was read")

    monkeypatch.setattr(corpora, "load_dialogues", never)
    (tmp_path / "file").touch()
    if "output" in request_:
        request_ = {"output": tmp_path / request_["output"]}
    with pytest.raises(InputError, match=words):
        evaluate_models(**{"models": ["tfidf"], "corpus": "small", "data_dir": None, "split": "test", **request_})


def test_importing_evaluation_is_light():
    heavy = "[m for m in ('torch', 'sklearn', 'matplotlib') if m in sys.modules]"
    code = f"import sys, hf_dialemb.evaluation; print({heavy})"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
