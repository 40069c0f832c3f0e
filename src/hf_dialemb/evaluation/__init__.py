"""Evaluation: dialogues are embedded once by each encoder, then every task scores the same vectors.

`evaluate_models` measures models on a corpus, `evaluate_suite` on all that a paper measures on, beside the paper's own
figures, `run_benchmark` on several suites, with one report; all write results files. `load_encoder`, `get_task`,
`evaluate_embeddings` and the functions on results are their parts. Importing this package loads neither torch nor
scikit-learn.
"""

from .benchmark import evaluate_suite
from .benchmark_run import run_benchmark
from .domains import evaluate_embeddings
from .encoders import Encoder, load_encoder
from .registry import TASKS, default_tasks, get_task
from .results import Results, Row, describe_run, merge_results, read_results, write_results
from .run import evaluate_models
from .suites import SUITES
from .tables import latex_table, markdown_table, paper_table
from .task import Measurement, Problem, Task

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
