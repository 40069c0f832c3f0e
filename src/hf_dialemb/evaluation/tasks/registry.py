"""The tasks, by name: from a name to the module that defines it, and which of them a corpus is measured by."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

from ...models.errors import InputError, unknown_name
from .task import Problem, Task

TASKS: dict[str, str] = {
    "domains": "domains",
    "ablations": "ablations",
    "intent-classification": "intents",
    "out-of-scope-detection": "out_of_scope",
    "action-similarity": "actions",
    "flow-extraction": "flow_extraction",
    "response-selection": "response_selection",
    "dialogue-response-selection": "response_selection",
    "next-utterance-retrieval": "next_utterance",
    "bag-of-words-probe": "context_probes",
    "dialogue-act-probe": "context_probes",
    "semantic-retrieval": "semantic_retrieval",
    "dialogue-sts": "dialogue_sts",
    "dialogue-nli": "nli",
    "intent-fine-tuning": "intent_fine_tuning",
    "dialogue-action-prediction": "action_prediction",
}
"""Task name to the module of this folder that defines it as ``TASK``, or among its ``TASKS``.

A further task is one file that ends in ``TASK = Task(...)`` and one line here. The figures of most carry the task's
name; "domains" gives all those of the dial2vec benchmark, and fine-tuned intents are figures of intent classification.
"""

_OF_KIND = {
    "dialogues": ("domains",),
    "utterances": ("intent-classification",),
    "retrieval": ("semantic-retrieval",),
    "sentence-pairs": ("dialogue-sts",),
    "response-selection": ("dialogue-response-selection",),
}
_OF_CORPUS = {
    "clinc150": ("intent-classification", "out-of-scope-detection"),
    "dialog2flow_evaluation": ("action-similarity",),
    "dialogue_nli": ("dialogue-nli",),
}


def get_task(name: str) -> Task:
    """Imports a task.

    Args:
        name: A key of `TASKS`.

    Returns:
        The task.

    Raises:
        InputError: There is no task of that name.
    """
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    module = import_module(f"{__package__}.{TASKS[name]}")
    tasks: tuple[Task, ...] = module.TASKS if hasattr(module, "TASKS") else (module.TASK,)
    return next(task for task in tasks if task.name == name)


def default_tasks(corpus: str) -> tuple[str, ...]:
    """Says which tasks a corpus is measured by when none is named; none of them fine-tunes.

    Args:
        corpus: A name in `hf_dialemb.corpora.CORPORA`, or a file, folder or Hub dataset of one's own.

    Returns:
        Keys of `TASKS`.
    """
    from ...corpora import CORPORA, get_corpus

    if corpus in _OF_CORPUS:
        return _OF_CORPUS[corpus]
    return _OF_KIND[get_corpus(corpus).kind if corpus in CORPORA else "dialogues"]


def load_problem(name: str, corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> Problem:
    """Loads what a task asks of encoders on a corpus."""
    from ...corpora import CORPORA, get_corpus
    from ...corpora.source.fingerprint import data_hash

    task = get_task(name)
    kind = get_corpus(corpus).kind if corpus in CORPORA else "dialogues"
    if kind not in task.kinds:
        raise InputError(
            f"task {name}: got corpus {corpus}, which holds {kind}, expected {' or '.join(task.kinds)}; "
            f"choose another corpus, or the task {' or '.join(default_tasks(corpus))}"
        )
    problem = task.load(corpus, data_dir, split, limit)
    return replace(problem, config={**problem.config, "data_sha256": data_hash(corpus, data_dir)})
