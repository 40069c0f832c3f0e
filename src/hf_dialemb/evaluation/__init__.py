"""Evaluation: dialogues are embedded once by each encoder, then every task scores the same vectors.

`evaluate_models` measures models on a corpus, `evaluate_suite` on all that a paper measures on, beside the paper's own
figures, `run_benchmark` on several suites, with one report; all write results files. The others are their parts.
Importing this package loads neither torch nor scikit-learn.
"""

from ..encoders.specs import Encoder, load_encoder
from .benchmark import evaluate_suite
from .benchmark_report import run_benchmark
from .results.rows import Results, Row, describe_run, merge_results, read_results, write_results
from .results.tables import latex_table, markdown_table, paper_table
from .run import evaluate_models
from .suites import SUITES
from .tasks.domains import evaluate_embeddings
from .tasks.registry import TASKS, default_tasks, get_task
from .tasks.task import Measurement, Problem, Task

__all__ = [
    "SUITES",
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
    "evaluate_suite",
    "get_task",
    "latex_table",
    "load_encoder",
    "markdown_table",
    "merge_results",
    "paper_table",
    "read_results",
    "run_benchmark",
    "write_results",
]
