"""Tasks of the five papers that `hf_dialemb.evaluation` does without."""

from pathlib import Path

from ...evaluation.tasks.task import read_tasks

TASKS = read_tasks(Path(__file__).with_name("tasks.toml"))
