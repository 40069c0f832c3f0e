"""MTEB: our corpora as its tasks, and figures that agree with the benchmark's own."""

import pytest
from made_up_corpora import FILES, needs

from hf_dialemb.data import write_jsonl
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation import load_encoder
from hf_dialemb.evaluation.tasks.domains import load_domains
from hf_dialemb.evaluation.tasks.task import CorpusPart, load_problem

mteb = pytest.importorskip("mteb")

from hf_dialemb.integrations import dialogue_tasks  # noqa: E402


def scores(model, tasks):
    """Run MTEB, and return its scores by the name of the task."""
    results = mteb.evaluate(model, tasks, show_progress_bar=False, co2_tracker=False, cache=None)
    return {result.task_name: next(iter(result.scores.values()))[0] for result in results}


@pytest.mark.slow
def test_figures_agree_with_the_benchmark(plain, tiny_bert):
    part = CorpusPart("sample", None, "dev", 24)
    tasks = dialogue_tasks("sample", split="dev", limit=24)
    assert tasks[0].texts == [
        " ".join(turn.content for turn in dialogue.turns)
        for dialogue in load_domains(part).dialogues
    ]
    found = scores(plain, tasks)
    assert list(found) == ["sample-DomainClustering-dev", "sample-DomainRetrieval-dev"]
    rows = load_problem("domains", part).measure(load_encoder(tiny_bert, device="cpu"), [0])
    expected = {row.metric: row.mean for row in rows if not row.setting}
    for theirs, ours in (("map_at_1000", "map"), ("mrr_at_1000", "mrr")):
        value = 100 * found["sample-DomainRetrieval-dev"][theirs]
        assert value == pytest.approx(expected[ours], abs=1e-2)
    assert 0 < found["sample-DomainClustering-dev"]["v_measure"] <= 1
    assert scores(plain, tasks) == found  # draws are the same


def test_the_cache_of_mteb_knows_data(tmp_path, sample_dialogues):
    metadata = []
    for count in (30, 31):
        write_jsonl(sample_dialogues[:count], tmp_path / "mine.jsonl")
        metadata.append(dialogue_tasks(str(tmp_path / "mine.jsonl"))[1].metadata)
    assert metadata[0].name == metadata[1].name == "mine.jsonl-DomainRetrieval"
    assert metadata[0].revision != metadata[1].revision


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        pytest.param(("jddc_sts", FILES), {}, "jddc_sts", marks=needs("jddc_sts")),
        (("sample", None, "dev"), {"limit": 2}, "expected at least two"),
    ],
)
def test_mistakes_are_told_in_one_sentence(arguments, options, sentence):
    with pytest.raises(InputError, match=sentence):
        dialogue_tasks(*arguments, **options)
