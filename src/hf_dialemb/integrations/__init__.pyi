"""The public names, each with its place, read by the package and by type checkers alike."""

from .inputs import to_transcript as to_transcript
from .pipeline import DialogueVectorizer as DialogueVectorizer
from .sentence_evaluators import DialogueDomainEvaluator as DialogueDomainEvaluator
from .sentence_evaluators import TaskEvaluator as TaskEvaluator
