"""MTEB.

Our encoders as its models, our corpora as its tasks, and figures that agree with the benchmark's
own.
"""

from pathlib import Path

import numpy as np
import pytest
from made_up_corpora import FILES, needs

from hf_dialemb.data import load_examples, write_jsonl
from hf_dialemb.dialogue import Turn
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.tasks import task_texts
from hf_dialemb.evaluation.tasks.domains import load_domains
from hf_dialemb.evaluation.tasks.task import CorpusPart, load_problem
from hf_dialemb.evaluation.tasks.task_texts import last_words

mteb = pytest.importorskip("mteb")

from hf_dialemb.integrations import DialembEncoder, dialogue_tasks  # noqa: E402
from hf_dialemb.integrations.mteb import OF_KIND, last_turns  # noqa: E402


class Recorded:
    """An encoder of random vectors, which remembers what it was asked."""

    name = "recorded"

    def __init__(self):
        self.seen = []

    def encode(self, dialogues):
        self.seen += dialogues
        texts = [
            "".join(turn.role + turn.content for turn in dialogue.turns) for dialogue in dialogues
        ]
        return np.stack(
            [np.random.default_rng(list(text.encode())).normal(size=8) for text in texts]
        )


def scores(model, tasks, **options):
    """Runs MTEB; returns its scores by the name of the task."""
    results = mteb.evaluate(
        model, tasks, show_progress_bar=False, co2_tracker=False, **{"cache": None, **options}
    )
    return {result.task_name: next(iter(result.scores.values()))[0] for result in results}


def agree(found, names, task, corpus, data_dir, split, limit, encoder):
    """Compares MTEB's scores with the benchmark's, by the names that both have for them."""
    measured = load_problem(task, CorpusPart(corpus, data_dir, split, limit)).measure(encoder, [0])
    expected = {each.metric: each.mean for each in measured if not each.setting}
    for theirs, ours in names.items():
        assert 100 * found[theirs] == pytest.approx(expected[ours], abs=1e-2)


@pytest.fixture(scope="module")
def wrapped(tiny_bert):
    return DialembEncoder(tiny_bert, device="cpu")


@pytest.fixture(scope="module")
def intents(tmp_path_factory) -> Path:
    """A corpus of utterances in the format of banking77: four intents that a word tells apart."""
    folder = tmp_path_factory.mktemp("banking77") / "banking_data"
    folder.mkdir()
    wishes = {
        "book": "Please book a table",
        "pay": "I pay the bill",
        "sing": "Sing a song",
        "drive": "Drive me",
    }
    for split, size in (("train", 7), ("test", 3)):
        rows = [
            f"{wish} at {split} {row},{name}"
            for name, wish in wishes.items()
            for row in range(size)
        ]
        (folder / f"{split}.csv").write_text("\n".join(["text,category", *rows]), encoding="utf-8")
    return folder.parent


@pytest.mark.slow
def test_figures_agree_between_both_wrappers_and_the_benchmark(plain, wrapped, monkeypatch):
    monkeypatch.setattr(task_texts, "OTHERS", 5)  # candidates beside the true one
    found = scores(wrapped, dialogue_tasks("sample", split="dev", limit=24))
    names = [f"sample-{task}-dev" for task in OF_KIND["dialogues"]]
    assert list(found) == names
    retrieval = {"map_at_1000": "map", "mrr_at_1000": "mrr"}
    agree(found[names[1]], retrieval, "domains", "sample", None, "dev", 24, wrapped.model)
    selection = {**{f"hit_rate_at_{k}": f"top{k}" for k in (1, 3, 10)}, "mrr_at_100": "mrr"}
    agree(
        found[names[2]],
        selection,
        "dialogue-response-selection",
        "sample",
        None,
        "dev",
        24,
        wrapped.model,
    )
    assert 0 < found[names[0]]["v_measure"] <= 1
    theirs = scores(plain, dialogue_tasks("sample", split="dev", limit=24))
    for name, each in theirs.items():
        assert each["main_score"] == pytest.approx(found[name]["main_score"], abs=1e-4)


@pytest.mark.slow
def test_intents_are_told_from_five_examples(plain, wrapped, intents):
    (task,) = dialogue_tasks("banking77", intents)
    assert task.metadata.name == "banking77-IntentClassification"
    found = scores(wrapped, [task])["banking77-IntentClassification"]
    assert found["accuracy"] > 0.9
    assert len(found["scores_per_experiment"]) == 10
    theirs = scores(plain, [task])["banking77-IntentClassification"]
    assert theirs["accuracy"] == pytest.approx(found["accuracy"])


def test_models_that_read_turns_get_them_and_others_the_text(sample_dialogues):
    encoder = Recorded()
    task = dialogue_tasks("sample", split="dev", tasks=["DomainRetrieval"], limit=20)[0]
    scores(DialembEncoder(encoder), [task])
    asked = load_domains(CorpusPart("sample", None, "dev", 20)).dialogues
    labels = list(task.columns["labels"])
    paired = [each for each, label in zip(asked, labels, strict=True) if labels.count(label) > 1]
    assert [each.to_messages() for each in encoder.seen] == [
        each.to_messages() for each in [*paired, *asked]
    ]
    assert task.columns["text"] == [" ".join(turn.content for turn in each.turns) for each in asked]


@needs("ecommerce")
def test_candidates_of_a_corpus_are_ranked_as_by_the_benchmark():
    encoder = Recorded()
    (task,) = dialogue_tasks("ecommerce", FILES)
    found = scores(DialembEncoder(encoder), [task])["ecommerce-ResponseSelection"]
    answered = [each for each in load_examples("ecommerce", FILES, "test") if each.correct]
    assert len(task.columns["text"]) == len(answered)
    offered = [[text for text, _ in offered] for offered in task.columns["candidates"]]
    assert offered == [list(each.responses) for each in answered]

    class Joined(Recorded):  # the benchmark hands contexts over as texts
        def encode_utterances(self, texts):
            dialogues = {
                " ".join(turn.content for turn in each.turns): each for each in encoder.seen
            }
            return self.encode([dialogues[text] for text in texts])

    agree(
        found,
        {"mrr_at_100": "mrr"},
        "dialogue-response-selection",
        "ecommerce",
        FILES,
        "test",
        None,
        Joined(),
    )


@pytest.mark.parametrize("words", [1, 4, 5, 9, 50])
def test_a_context_is_cut_in_turns_where_its_text_is_cut(words):
    turns = tuple(
        Turn("user", text)
        for text in ("one two three", " four five ", "six", "seven  eight nine ten")
    )
    kept = last_turns(turns, words)
    whole = " ".join(turn.content for turn in turns)
    assert " ".join(turn.content for turn in kept).split() == last_words(whole, words).split()
    assert [turn.content for turn in turns[-len(kept) + 1 :]] == [
        turn.content for turn in kept[1:]
    ] or len(kept) == 1


def test_the_cache_of_mteb_knows_data_and_weights(tmp_path, tiny_bert, sample_dialogues):
    metadata = []
    for count in (30, 31):
        write_jsonl(sample_dialogues[:count], tmp_path / "mine.jsonl")
        metadata.append(
            dialogue_tasks(str(tmp_path / "mine.jsonl"), tasks=["DomainRetrieval"])[0].metadata
        )
    assert metadata[0].name == metadata[1].name == "mine.jsonl-DomainRetrieval"
    assert metadata[0].revision != metadata[1].revision
    one, other = (
        DialembEncoder(f"{tiny_bert}{level}").mteb_model_meta for level in ("", "@utterances")
    )
    assert one.name != other.name
    assert one.revision != other.revision


def test_blank_texts_have_no_direction_and_draws_are_the_same():
    encoder = DialembEncoder(Recorded())
    metadata = dialogue_tasks("sample", split="dev", tasks=["DomainClustering"], limit=20)[
        0
    ].metadata
    options = {"task_metadata": metadata, "hf_split": "dev", "hf_subset": "default"}
    vectors = encoder.encode([{"text": ["a", " "]}, {"text": ["b"]}], **options)
    assert vectors.any(axis=1).tolist() == [True, False, True]
    turns = [{"role": "user", "content": text} for text in ("", "a")]
    spoken = encoder.encode([{"text": ["a"], "conversation": [turns]}], **options)
    np.testing.assert_allclose(spoken, vectors[:1], atol=1e-6)
    task = dialogue_tasks("sample", split="dev", tasks=["DomainClustering"], limit=40)
    one, again = (scores(DialembEncoder(Recorded()), task) for _ in range(2))
    assert one == again
    found = scores(DialembEncoder("tfidf"), task)
    assert found["sample-DomainClustering-dev"]["v_measure"] > 0.5
    with pytest.raises(InputError, match="choose a clustering task or another model"):
        scores(
            DialembEncoder("tfidf"),
            dialogue_tasks("sample", split="dev", tasks=["DomainRetrieval"], limit=40),
        )


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (("sample",), {"tasks": ["DomainSearch"]}, "Unknown task 'DomainSearch'"),
        (
            ("sample",),
            {"tasks": ["IntentClassification"]},
            "which holds dialogues, expected DomainClustering or",
        ),
        pytest.param(
            ("jddc_sts", FILES), {}, "which holds sentence-pairs", marks=needs("jddc_sts")
        ),
        pytest.param(
            ("ecommerce", FILES),
            {"tasks": ["DomainClustering"]},
            "expected ResponseSelection",
            marks=needs("ecommerce"),
        ),
        (("sample", None, "dev"), {"limit": 2}, "expected at least two"),
    ],
)
def test_mistakes_are_told_in_one_sentence(arguments, options, sentence):
    with pytest.raises(InputError, match=sentence):
        dialogue_tasks(*arguments, **options)
