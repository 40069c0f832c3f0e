"""Use from elsewhere: evaluators for sentence-transformers, a model and tasks for MTEB, a step for scikit-learn.

Every name is imported on first use, because each needs its own library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "DialembEncoder": "mteb_encoder",
    "DialogueDomainEvaluator": "sentence_evaluators",
    "DialogueVectorizer": "pipeline",
    "FewShotEvaluator": "sentence_evaluators",
    "ResponseSelectionEvaluator": "sentence_evaluators",
    "SentenceEncoder": "sentence_encoder",
    "TaskEvaluator": "sentence_evaluators",
    "dialogue_tasks": "mteb_tasks",
}

if TYPE_CHECKING:
    from .mteb_encoder import DialembEncoder as DialembEncoder
    from .mteb_tasks import dialogue_tasks as dialogue_tasks
    from .pipeline import DialogueVectorizer as DialogueVectorizer
    from .sentence_encoder import SentenceEncoder as SentenceEncoder
    from .sentence_evaluators import DialogueDomainEvaluator as DialogueDomainEvaluator
    from .sentence_evaluators import FewShotEvaluator as FewShotEvaluator
    from .sentence_evaluators import ResponseSelectionEvaluator as ResponseSelectionEvaluator
    from .sentence_evaluators import TaskEvaluator as TaskEvaluator


def __getattr__(name: str) -> Any:  # noqa: ANN401 - public names of several types
    if name not in _PUBLIC:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
