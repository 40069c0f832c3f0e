"""Evaluators for sentence-transformers: the benchmark's own figures while a model trains.

They go where that library takes one: ``SentenceTransformerTrainer(evaluator=...)``, ``model.evaluate(...)``, or as
parts of a ``SequentialEvaluator``. Figures are those of a results file, shares as percentages. To choose a checkpoint
by one, set ``metric_for_best_model="eval_NAME_FIGURE"``.
"""

from __future__ import annotations

import csv
import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator

from ..encoders import Encoder, load_encoder
from ..encoders.remembering import RememberingEncoder
from ..errors import InputError
from ..evaluation.results.rows import Row
from ..evaluation.results.tables import FLOWS, LOWER_OF_FLOWS
from ..evaluation.tasks.actions import compare_actions
from ..evaluation.tasks.domains import evaluate_embeddings
from ..evaluation.tasks.intents import classify_intents
from ..evaluation.tasks.task import CorpusPart, get_task, load_problem, percentage
from ..metrics.response_selection import selection_scores
from .inputs import check_lengths, read_items

logger = logging.getLogger(__name__)

LOWER_IS_BETTER = frozenset(("adjusted_alignment", "uniformity", "inter", *LOWER_OF_FLOWS))
"""The figures of which the least is the best, whatever setting follows."""


class EvaluatorSettings(TypedDict, total=False):
    """What all evaluators may be told beside what they measure on."""

    seeds: Iterable[int]  # repeats of everything that draws at random
    primary_metric: str  # the figure that checkpoints are chosen by
    name: str  # what figures and the CSV file are called by; may be empty
    batch_size: int  # how many texts or dialogues go through the model at once
    write_csv: bool  # whether figures are written to a file as well


class BenchmarkEvaluator(BaseEvaluator):
    """What the evaluators share: a model in, figures out, a line more in a CSV file, in the folder that a call names.

    From the first call on, ``primary_metric`` starts with the name; ``greater_is_better`` says whether more of it is
    better.
    """

    def __init__(
        self,
        seeds: Iterable[int] = range(10),
        primary_metric: str = "",
        name: str = "",
        batch_size: int = 32,
        write_csv: bool = True,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seeds = list(seeds)
        self.primary_metric: str = primary_metric
        self.name = name
        self.batch_size = batch_size
        self.write_csv = write_csv
        self.greater_is_better = greater_is_better(self.primary_metric)
        self.csv_file = "_".join(filter(None, (self.description.lower().replace(" ", "_"), self.name, "results.csv")))
        self._chosen = self.primary_metric

    def measure(self, encoder: Encoder) -> list[Row]:
        """Measure an encoder on what the evaluator holds."""
        raise NotImplementedError

    def __call__(  # type: ignore[override]
        self, model: SentenceTransformer, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Measure a model; the file goes into ``output_path``, ``epoch`` and ``steps`` are -1 outside of training.

        Returns figures by name, such as ``{"dev_purity": 91.2}`` for the evaluator's name ``dev``. An InputError says
        that the vectors cannot be measured, or that there is no figure of the primary metric's name.
        """
        try:
            figures = named_figures(self.measure(load_encoder(model, batch_size=self.batch_size)))
        except InputError:
            raise
        except ValueError as error:  # of a metric
            raise InputError(f"evaluator {self.name or self.description}: {error}") from error
        self._chosen = self._chosen or next(iter(figures))
        if self._chosen not in figures:
            raise InputError(f"primary_metric: got '{self._chosen}', expected one of {', '.join(figures)}; choose one")
        self.primary_metric = self._chosen
        self.greater_is_better = greater_is_better(self._chosen)
        logger.info("%s: %s is %.4g", self.name or self.description, self._chosen, figures[self._chosen])
        if output_path is not None and self.write_csv:
            self._add_line(Path(output_path), {"epoch": epoch, "steps": steps, **figures})
        metrics: dict[str, float] = self.prefix_name_to_metrics(figures, self.name)
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)  # type: ignore[arg-type]
        return metrics

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings for the model card."""
        return {"seeds": self.seeds}

    def _add_line(self, folder: Path, line: dict[str, float]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.csv_file
        heads = [] if path.is_file() else [line.keys()]
        with path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([*heads, line.values()])


class DialogueDomainEvaluator(BenchmarkEvaluator):
    """Do dialogues of one domain lie together (dial2vec, sections 4.1 and 5.3.3)?

    Figures: ``purity``, ``nmi``, ``ari``, ``spearman_pairs``, ``spearman_per_query``, ``map``, ``mrr``,
    ``adjusted_alignment``, ``uniformity``, as `hf_dialemb.evaluation.evaluate_embeddings` computes them. Dialogues are
    lists of chat messages, `Dialogue` objects or texts, each with a label; an InputError says that one is malformed or
    that there are too few labels. The primary metric is purity unless `EvaluatorSettings` name another.
    """

    def __init__(self, dialogues: Iterable[Any], labels: Sequence[str], **settings: Unpack[EvaluatorSettings]) -> None:
        settings.setdefault("primary_metric", "purity")
        super().__init__(**settings)
        self.dialogues, self.labels = read_items(dialogues), list(labels)
        check_lengths(self.dialogues, "dialogues", self.labels, "labels")
        counts = Counter(self.labels)
        if len(counts) < 2 or max(counts.values()) < 2:
            raise InputError(
                f"labels: got {len(self.labels)} with {len(counts)} distinct ones, expected at least two, and two "
                "dialogues of one of them; add dialogues"
            )

    def measure(self, encoder: Encoder) -> list[Row]:
        """Measure an encoder."""
        return evaluate_embeddings(encoder.encode(self.dialogues), self.labels, seeds=self.seeds)


class FewShotEvaluator(BenchmarkEvaluator):
    """Do the means of few examples tell intents or actions apart (DSE, section 4.2.2; Dialog2Flow, section 5.1)?

    With examples of their own, such as the training split, utterances are classified as in the task
    ``intent-classification``: ``accuracy_1_shot``, ``accuracy_5_shot`` and ``accuracy_5_shot_unit_prototypes``.
    Without, examples are drawn from the utterances themselves as in ``action-similarity``, which gives F1, nDCG and the
    cosines within and between labels as well. Utterances are whatever `DialogueDomainEvaluator` takes, each with a
    label. The primary metric is the accuracy, without examples the F1, with five examples, unless `EvaluatorSettings`
    name another.
    """

    def __init__(
        self,
        utterances: Iterable[Any],
        labels: Sequence[str],
        *,
        example_utterances: Iterable[Any] | None = None,
        example_labels: Sequence[str] = (),
        **settings: Unpack[EvaluatorSettings],
    ) -> None:
        if not settings.get("primary_metric"):
            settings["primary_metric"] = "f1_5_shot" if example_utterances is None else "accuracy_5_shot"
        super().__init__(**settings)
        examples = [] if example_utterances is None else read_items(example_utterances, "example_utterances")
        asked = read_items(utterances, "utterances")
        check_lengths(asked, "utterances", labels, "labels")
        check_lengths(examples, "example_utterances", example_labels, "example_labels")
        self.examples = len(examples)
        self.utterances, self.labels = [*examples, *asked], [*example_labels, *labels]

    def measure(self, encoder: Encoder) -> list[Row]:
        """Measure an encoder."""
        vectors = encoder.encode(self.utterances)
        if self.examples:
            return classify_intents(vectors, self.labels, self.examples, self.seeds)
        return compare_actions(vectors, self.labels, self.seeds)


class ResponseSelectionEvaluator(BenchmarkEvaluator):
    """Is the response that really followed nearest to its context (DSE, section 4.2.2)?

    Figures: ``top1``, ``top3``, ``top10``, ``mrr``, as `hf_dialemb.metrics.response_selection` computes them. Of N
    contexts, in the forms that `DialogueDomainEvaluator` takes, each has a list of texts to choose from, and the
    position, or list of positions, of what followed; an InputError says that these do not fit. The primary metric is
    ``mrr`` unless `EvaluatorSettings` name another. Nothing is drawn.
    """

    def __init__(
        self,
        contexts: Iterable[Any],
        candidates: Sequence[Sequence[str]],
        correct: Sequence[int | Sequence[int]],
        **settings: Unpack[EvaluatorSettings],
    ) -> None:
        settings["seeds"] = ()
        settings.setdefault("primary_metric", "mrr")
        super().__init__(**settings)
        self.contexts = read_items(contexts, "contexts")
        check_lengths(self.contexts, "contexts", candidates, "candidates")
        check_lengths(self.contexts, "contexts", correct, "correct")
        self.candidates = [list(texts) for texts in candidates]
        self.correct = [set(right) if isinstance(right, Sequence) else {int(right)} for right in correct]
        for place, (texts, right) in enumerate(zip(self.candidates, self.correct, strict=True)):
            if not right or not right <= set(range(len(texts))):
                raise InputError(
                    f"correct[{place}]: got {sorted(right)}, expected positions among {len(texts)} candidates; mend it"
                )

    def measure(self, encoder: Encoder) -> list[Row]:
        """Measure an encoder."""
        places: dict[str, int] = {}
        rows = [[places.setdefault(text, len(places)) for text in texts] for texts in self.candidates]
        vectors, offered = encoder.encode(self.contexts), encoder.encode_utterances(list(places))
        scores = [
            selection_scores(asked[None], offered[row], [[at in right for at in range(len(row))]])
            for asked, row, right in zip(vectors, rows, self.correct, strict=True)
        ]
        return [
            percentage("response-selection", metric, "", [float(np.mean([score[metric] for score in scores]))])
            for metric in scores[0]
        ]


class TaskEvaluator(BenchmarkEvaluator):
    """A task of the benchmark that does not fine-tune, a key of `hf_dialemb.evaluation.TASKS`, on a part of a corpus.

    Of more items than the limit a fixed random sample is taken. The primary metric is the first figure, the name that
    of corpus, split and task, unless `EvaluatorSettings` name others. An InputError says that something is not found,
    or that the task does not suit.
    """

    def __init__(
        self,
        task: str,
        corpus: str,
        data_dir: str | Path | None = None,
        split: str = "dev",
        limit: int | None = None,
        **settings: Unpack[EvaluatorSettings],
    ) -> None:
        if get_task(task).fine_tunes:
            raise InputError(
                f"task {task}: got a task that trains a copy of the model, which no evaluator does; choose another"
            )
        if settings.get("name") is None:
            settings["name"] = f"{Path(corpus).stem}_{split}_{task}"
        super().__init__(**settings)
        if not self.primary_metric:
            self.greater_is_better = task != FLOWS  # whose first figure is how far sizes are off
        self.task = task
        self.problem = load_problem(task, CorpusPart(corpus, data_dir, split, limit))

    def measure(self, encoder: Encoder) -> list[Row]:
        """Measure an encoder."""
        return self.problem.measure(RememberingEncoder(encoder), self.seeds)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings for the model card."""
        return {"task": self.task, **self.problem.config, **super().get_config_dict()}


def greater_is_better(figure: str) -> bool:
    """Return whether more of a figure is better, by its name as `named_figures` makes it."""
    return not any(figure == name or figure.startswith(f"{name}_") for name in LOWER_IS_BETTER)


def named_figures(measurements: Iterable[Row]) -> dict[str, float]:
    """Name means by metric and setting, such as ``accuracy_5_shot``; where two are alike, by task as well."""
    rows = list(measurements)
    names = Counter((row.metric, row.setting) for row in rows)
    tasks = [row.task if names[row.metric, row.setting] > 1 else "" for row in rows]
    return {
        re.sub(r"\W+", "_", f"{task} {row.metric} {row.setting}").strip("_"): row.mean
        for task, row in zip(tasks, rows, strict=True)
    }
