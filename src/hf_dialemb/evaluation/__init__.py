"""Evaluation: dialogues are embedded once by each encoder, then every task scores the same vectors.

`evaluate` measures models on a corpus and writes a results file; the others are its parts.
Importing this package loads neither torch nor scikit-learn.
"""

from ..encoders import Encoder as Encoder
from ..encoders import load_encoder as load_encoder
from .evaluating import evaluate as evaluate
from .results.result_tables import markdown_table as markdown_table
from .results.result_tables import paper_table as paper_table
from .results.rows import Results as Results
from .results.rows import Row as Row
from .results.rows import describe_run as describe_run
from .results.rows import read_results as read_results
from .results.rows import write_results as write_results
from .tasks.domains import evaluate_embeddings as evaluate_embeddings
from .tasks.task import TASKS as TASKS
from .tasks.task import Problem as Problem
from .tasks.task import Task as Task
from .tasks.task import default_tasks as default_tasks
from .tasks.task import get_task as get_task
