"""Use from elsewhere: sentence-transformers, MTEB, scikit-learn, LangChain, LlamaIndex, datasets and Ray Data.

Every name is imported on first use, because each needs its own library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "BatchEncoder": "batch_encoder",
    "DialembEncoder": "mteb_encoder",
    "DialogueDomainEvaluator": "sentence_evaluators",
    "DialogueVectorizer": "pipeline",
    "FewShotEvaluator": "sentence_evaluators",
    "LangChainEmbeddings": "langchain_embeddings",
    "LlamaIndexEmbedding": "llama_index_embeddings",
    "ResponseSelectionEvaluator": "sentence_evaluators",
    "SentenceEncoder": "sentence_encoder",
    "TaskEvaluator": "sentence_evaluators",
    "dialogue_tasks": "mteb_tasks",
    "to_transcript": "transcripts",
}

if TYPE_CHECKING:
    from .batch_encoder import BatchEncoder as BatchEncoder
    from .langchain_embeddings import LangChainEmbeddings as LangChainEmbeddings
    from .llama_index_embeddings import LlamaIndexEmbedding as LlamaIndexEmbedding
    from .mteb_encoder import DialembEncoder as DialembEncoder
    from .mteb_tasks import dialogue_tasks as dialogue_tasks
    from .pipeline import DialogueVectorizer as DialogueVectorizer
    from .sentence_encoder import SentenceEncoder as SentenceEncoder
    from .sentence_evaluators import DialogueDomainEvaluator as DialogueDomainEvaluator
    from .sentence_evaluators import FewShotEvaluator as FewShotEvaluator
    from .sentence_evaluators import ResponseSelectionEvaluator as ResponseSelectionEvaluator
    from .sentence_evaluators import TaskEvaluator as TaskEvaluator
    from .transcripts import to_transcript as to_transcript


def __getattr__(name: str) -> Any:  # noqa: ANN401 - public names of several types
    if name not in _PUBLIC:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
