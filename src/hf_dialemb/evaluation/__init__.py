"""Evaluation: dialogues are embedded once by each encoder, then every task scores the same vectors.

`evaluate_models` measures models on a corpus, `evaluate_paper` on all that a paper measures on, beside the paper's own
figures; both write a results file. `load_encoder`, `get_task`, `evaluate_embeddings` and the functions on results are
their parts. Importing this package loads neither torch nor scikit-learn.
"""

from .domains import evaluate_embeddings
from .encoders import Encoder, load_encoder
from .papers import evaluate_paper
from .registry import TASKS, default_tasks, get_task
from .results import Results, Row, describe_run, merge_results, read_results, write_results
from .run import evaluate_models
from .tables import markdown_table, paper_table
from .task import Measurement, Problem, Task

__all__ = [
    "TASKS",
    "Encoder",
    "Measurement",
    "Problem",
    "Results",
    "Row",
    "Task",
    "default_tasks",
    "describe_run",
    "evaluate_embeddings",
    "evaluate_models",
    "evaluate_paper",
    "get_task",
    "load_encoder",
    "markdown_table",
    "merge_results",
    "paper_table",
    "read_results",
    "write_results",
]
