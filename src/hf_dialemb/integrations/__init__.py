"""Encoders in other libraries: sentence-transformers and scikit-learn.

Every name is imported on first use, because each needs its own library; ``__init__.pyi`` lists
them.
"""

from ..hooks import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        ".inputs": ["to_transcript"],
        ".pipeline": ["DialogueVectorizer"],
        ".sentence_evaluators": ["DialogueDomainEvaluator", "TaskEvaluator"],
    },
)
