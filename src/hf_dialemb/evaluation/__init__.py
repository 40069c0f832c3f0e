"""Evaluation: dialogues are embedded once by each encoder, then every task scores the same vectors.

`evaluate` measures models on a corpus and writes a results file; the others are its parts.
Importing this package loads neither torch nor scikit-learn.
"""

from ..encoders import Encoder, load_encoder
from .evaluating import evaluate
from .results.result_tables import markdown_table, paper_table
from .results.rows import Results, Row, describe_run, read_results, write_results
from .tasks.domains import evaluate_embeddings
from .tasks.task import TASKS, Problem, Task, default_tasks, get_task

__all__ = [
    "TASKS",
    "Encoder",
    "Problem",
    "Results",
    "Row",
    "Task",
    "default_tasks",
    "describe_run",
    "evaluate",
    "evaluate_embeddings",
    "get_task",
    "load_encoder",
    "markdown_table",
    "paper_table",
    "read_results",
    "write_results",
]
