"""Evaluation: dialogues are embedded once by each encoder, then every task scores the same vectors.

`evaluate_models` does it all and writes a results file; `load_encoder`, `evaluate_embeddings` and the functions on
results are its parts. Importing this package loads neither torch nor scikit-learn.
"""

from .encoders import Encoder, load_encoder
from .results import Results, Row, describe_run, merge_results, read_results, write_results
from .run import evaluate_models
from .tables import markdown_table
from .tasks import Measurement, evaluate_embeddings

__all__ = [
    "Encoder",
    "Measurement",
    "Results",
    "Row",
    "describe_run",
    "evaluate_embeddings",
    "evaluate_models",
    "load_encoder",
    "markdown_table",
    "merge_results",
    "read_results",
    "write_results",
]
