"""Evaluators for sentence-transformers: the benchmark's own figures while a model trains.

They go where that library takes one: ``SentenceTransformerTrainer(evaluator=...)``,
``model.evaluate(...)``, or as parts of a ``SequentialEvaluator``. Figures are those of a results
file, shares as percentages. To choose a checkpoint by one, set
``metric_for_best_model="eval_NAME_FIGURE"``.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator

from ..encoders import Encoder, load_encoder
from ..encoders.embedding_cache import RememberingEncoder
from ..evaluation.results.result_tables import LOWER_OF_FLOWS
from ..evaluation.results.rows import Row
from ..evaluation.tasks.domains import evaluate_embeddings
from ..evaluation.tasks.task import CorpusPart, load_problem
from .inputs import read_items

LOWER_IS_BETTER = frozenset(("adjusted_alignment", "uniformity", "inter", *LOWER_OF_FLOWS))
"""The figures of which the least is the best, whatever setting follows."""


Measure = Callable[[Encoder, Sequence[int]], list[Row]]  # of an encoder, with seeds


class BenchmarkEvaluator(BaseEvaluator):
    """A measure of the benchmark as an evaluator: a model in, figures out.

    ``seeds`` are repeats of all that is drawn, ``batch_size`` is of texts or dialogues. Checkpoints
    are chosen by ``primary_metric``, whose name begins with the evaluator's after the first call,
    and ``greater_is_better`` says if more of it is better.
    """

    def __init__(
        self,
        measure: Measure,
        *,
        seeds: Iterable[int] = range(10),
        primary_metric: str = "",
        name: str = "",
        batch_size: int = 32,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.measure = measure
        self.seeds = list(seeds)
        self.primary_metric: str = primary_metric
        self.name = name
        self.batch_size = batch_size
        self.greater_is_better = greater_is_better(primary_metric)
        self._chosen = primary_metric

    def __call__(  # type: ignore[override]
        self,
        model: SentenceTransformer,
        output_path: str | None = None,
        epoch: float = -1,
        steps: int = -1,
    ) -> dict[str, float]:
        """Measure a model; ``epoch`` and ``steps`` are -1 outside of training.

        Returns figures by name, such as ``{"dev_purity": 91.2}`` for the evaluator's name ``dev``.
        """
        encoder = load_encoder(model, batch_size=self.batch_size)
        figures = named_figures(self.measure(encoder, self.seeds))
        # the name begins with the evaluator's after each call
        self.primary_metric = self._chosen or next(iter(figures))
        self.greater_is_better = greater_is_better(self.primary_metric)
        metrics: dict[str, float] = self.prefix_name_to_metrics(figures, self.name)
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)  # type: ignore[arg-type]
        return metrics


class DialogueDomainEvaluator(BenchmarkEvaluator):
    """Do dialogues of one domain lie together (dial2vec, sections 4.1 and 5.3.3)?

    Figures: ``purity``, ``nmi``, ``ari``, ``spearman_pairs``, ``spearman_per_query``, ``map``,
    ``mrr``, ``adjusted_alignment``, ``uniformity``, as `hf_dialemb.evaluation.evaluate_embeddings`
    computes them. Dialogues are lists of chat messages, `Dialogue` objects or texts, each with a
    label; an InputError says that one is malformed or that there are too few labels. Settings are
    those of `BenchmarkEvaluator`; by default the primary metric is purity.
    """

    def __init__(self, dialogues: Iterable[Any], labels: Sequence[str], **settings: Any) -> None:
        items = read_items(dialogues)
        names = list(labels)

        def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
            return evaluate_embeddings(encoder.encode(items), names, seeds=seeds)

        super().__init__(measure, **{"primary_metric": "purity", **settings})


class TaskEvaluator(BenchmarkEvaluator):
    """A task of the benchmark on a part of a corpus.

    ``task`` is a key of `hf_dialemb.evaluation.TASKS`. Of more items than
    the limit a fixed random sample is taken. By default the primary metric is the first figure, the
    name that of corpus, split and task. An InputError says that something is not found, or that the
    task does not suit.
    """

    def __init__(
        self,
        task: str,
        corpus: str,
        data_dir: str | Path | None = None,
        split: str = "dev",
        limit: int | None = None,
        **settings: Any,
    ) -> None:
        self.task = task
        self.problem = load_problem(task, CorpusPart(corpus, data_dir, split, limit))

        def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
            return self.problem.measure(RememberingEncoder(encoder), seeds)

        super().__init__(measure, **{"name": f"{Path(corpus).stem}_{split}_{task}", **settings})


def greater_is_better(figure: str) -> bool:
    """Return whether more of a figure is better, by its name as `named_figures` makes it."""
    return not any(figure == name or figure.startswith(f"{name}_") for name in LOWER_IS_BETTER)


def named_figures(measurements: Iterable[Row]) -> dict[str, float]:
    """Name means by metric and setting, such as ``accuracy_5_shot``.

    Where two are alike, by task as well.
    """
    rows = list(measurements)
    names = Counter((row.metric, row.setting) for row in rows)
    tasks = [row.task if names[row.metric, row.setting] > 1 else "" for row in rows]
    return {
        re.sub(r"\W+", "_", f"{task} {row.metric} {row.setting}").strip("_"): row.mean
        for task, row in zip(tasks, rows, strict=True)
    }
