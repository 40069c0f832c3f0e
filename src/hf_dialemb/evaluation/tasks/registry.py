"""The tasks, by name, and which of them a corpus is measured by; importing this loads none of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...errors import InputError, unknown_name
from ...hooks import Registry
from .task import CorpusPart, Problem, Task

_DIALOGUES, _UTTERANCES, _PAIRS = "dialogues", "utterances", "sentence-pairs"
_RESPONSES, _RETRIEVAL = "response-selection", "retrieval"

# fmt: off
_ALL = (
    Task("domains", "do dialogues of one domain lie together: clusters, relatedness and retrieval",
         "hf_dialemb.evaluation.tasks.domains:load_domains", "dial2vec, sections 4.1 and 5.3.3"),
    Task("intent-classification", "intents of utterances, from few examples of each",
         "hf_dialemb.evaluation.tasks.intents:load_intents", "DSE, section 4.2.2", (_UTTERANCES,)),
    Task("out-of-scope-detection", "which utterances belong to no intent, from few examples of each",
         "hf_dialemb.evaluation.tasks.out_of_scope:load_out_of_scope", "DSE, section 4.2.2", (_UTTERANCES,)),
    Task("action-similarity", "do utterances that do the same lie together",
         "hf_dialemb.evaluation.tasks.actions:load_actions", "Dialog2Flow, section 5.1", (_DIALOGUES, _UTTERANCES)),
    Task("response-selection", "which of 100 responses follows an utterance",
         "hf_dialemb.evaluation.tasks.response_selection:load_pairs", "DSE, section 4.2.2"),
    Task("dialogue-response-selection", "which of 100 responses follows a dialogue so far",
         "hf_dialemb.evaluation.tasks.response_selection:load_contexts", "DSE, section 4.2.2",
         (_DIALOGUES, _RESPONSES)),
    Task("next-utterance-retrieval", "which of 20 responses follows a dialogue so far, for rankers of responses too",
         "hf_dialemb.evaluation.tasks.next_utterance:load_selections", "Mehri and Eskenazi (2019), section 4",
         (_DIALOGUES, _RESPONSES)),
)
# fmt: on

TASKS = Registry("tasks", {task.name: task for task in _ALL})
"""The tasks. A further one is a module with a function that loads it, and an entry above.

The figures of most carry the task's name; "domains" gives all those of the dial2vec benchmark, and fine-tuned intents
are figures of intent classification.
"""

_OF_KIND = {
    _DIALOGUES: ("domains",),
    _UTTERANCES: ("intent-classification",),
    _RETRIEVAL: ("semantic-retrieval",),
    _PAIRS: ("dialogue-sts",),
    _RESPONSES: ("dialogue-response-selection",),
}
_OF_CORPUS = {
    "clinc150": ("intent-classification", "out-of-scope-detection"),
    "dialog2flow_evaluation": ("action-similarity",),
    "dialogue_nli": ("dialogue-nli",),
}


def get_task(name: str) -> Task:
    """Look a task of `TASKS` up; raise InputError for an unknown name."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    task: Task = TASKS[name]
    return task


def default_tasks(corpus: str | CorpusPart) -> tuple[str, ...]:
    """Return the tasks that suit a corpus, none of which fine-tunes."""
    part = CorpusPart(corpus) if isinstance(corpus, str) else corpus
    return _OF_CORPUS.get(part.place) or _OF_KIND[part.kind]


def load_problem(name: str, part: CorpusPart) -> Problem:
    """Load what a task asks of encoders on a part of a corpus, which its configuration names."""
    task, part = get_task(name), replace(part, is_cut=False)
    if part.kind not in task.kinds:
        raise InputError(
            f"task {name}: got corpus {part.place}, which holds {part.kind}, expected {' or '.join(task.kinds)}; "
            f"choose another corpus, or the task {' or '.join(default_tasks(part))}"
        )
    problem = task.load(part)
    how: dict[str, Any] = {
        name: spoken for name, spoken in (("columns", part.columns), ("roles", part.roles)) if spoken
    }
    how |= {"part": True} if part.is_cut else {}
    whole = {"corpus": part.name, "split": part.split, "limit": part.limit, **how, **problem.config}
    return replace(problem, config={**whole, "data_sha256": part.data_hash()})
