"""Dialogues from corpora that are at hand as tasks of MTEB.

``mteb.evaluate(model, dialogue_tasks("sgd"))`` runs them with any model of MTEB, such as a folder
that `hf_dialemb.hub.export` wrote. Nothing is downloaded, and nothing sent anywhere. A dialogue is
its turns joined by blanks. Figures are MTEB's own, as shares: ``map_at_1000`` and ``mrr_at_1000``
of `DomainRetrieval` agree with MAP and MRR, of up to a thousand dialogues; `DomainClustering`
follows MTEB (bootstrapped mini-batch k-means, V-measure) where this package follows the papers.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from datasets import Dataset, DatasetDict

from ..data import CORPORA, get_corpus
from ..encoders.word_vectors import dialogue_texts
from ..errors import InputError
from ..evaluation.tasks.domains import load_domains
from ..evaluation.tasks.task import CorpusPart
from ..hashing import json_key

try:
    from mteb.abstasks import AbsTaskClustering, AbsTaskRetrieval
    from mteb.abstasks.abstask import AbsTask
    from mteb.abstasks.task_metadata import TaskMetadata
except ImportError as error:
    raise InputError('MTEB is not installed; run: pip install "hf-dialemb[mteb]"') from error


class _AtHand(AbsTask):
    """A task whose texts and labels lie in memory.

    `dialogue_tasks` makes a class of it for each corpus, as MTEB wants it. ``kind`` is what MTEB
    calls its type, category, main score and subtype.
    """

    kind: ClassVar[tuple[Any, Any, str, Any]]
    texts: ClassVar[list[str]]
    labels: ClassVar[list[str]]

    def load_data(self, num_proc: int | None = None, **_: object) -> None:
        """Make MTEB's form of the data."""
        # a second model is to meet the same draws as the first
        self.rng_state = random.Random(self.seed)
        self.dataset = self._dataset(self.metadata.eval_splits[0])
        self.data_loaded = True

    def _dataset(self, split: str) -> Any:
        raise NotImplementedError


class DomainClustering(_AtHand, AbsTaskClustering):
    """Do clusters of dialogues agree with their domains?"""

    kind = ("Clustering", "t2c", "v_measure", "Thematic clustering")
    input_column_name = "text"
    max_fraction_of_documents_to_embed = None

    def _dataset(self, split: str) -> DatasetDict:
        # bootstraps are of the data's own size
        self.max_documents_per_cluster = len(self.labels)
        rows = Dataset.from_dict({"text": self.texts, "labels": self.labels})
        return DatasetDict({split: rows})


class DomainRetrieval(_AtHand, AbsTaskRetrieval):
    """Does a dialogue find those of its domain?"""

    kind = ("Retrieval", "t2t", "map_at_1000", "Conversational retrieval")
    ignore_identical_ids = True

    def _dataset(self, split: str) -> dict[str, Any]:
        ids = [str(row) for row in range(len(self.labels))]
        documents = Dataset.from_dict({"id": ids, "text": self.texts})
        items = list(zip(ids, self.labels, strict=True))
        relevant = {}
        for query, label in items:
            alike = [other for other, its in items if its == label and other != query]
            relevant[query] = dict.fromkeys(alike, 1)
        parts = {
            "queries": documents,
            "corpus": documents,
            "relevant_docs": relevant,
            "top_ranked": None,
        }
        return {"default": {split: parts}}


_TASKS: tuple[type[_AtHand], ...] = (DomainClustering, DomainRetrieval)


def dialogue_tasks(
    corpus: str,
    data_dir: str | Path | None = None,
    split: str = "test",
    *,
    limit: int | None = None,
    languages: Sequence[str] = ("eng-Latn",),
) -> list[AbsTask]:
    """Make `DomainClustering` and `DomainRetrieval` of a corpus, by name or a file.

    They are named by corpus and task, and by the split if it is not test; their revision is a
    digest of their data, so that MTEB never takes old results of other data for theirs. Of more
    dialogues than the limit a fixed random sample is taken. MTEB files results under ``languages``.
    An InputError says that the corpus is not at hand, or lacks domains, one for each dialogue.
    """
    source = CorpusPart(corpus, data_dir, split, limit)
    problem = load_domains(source)
    texts = dialogue_texts(problem.dialogues)
    revision = json_key([texts, list(problem.labels)])[:12]
    tasks: list[AbsTask] = []
    for task in _TASKS:
        part = () if source.is_own or source.split == "test" else (source.split,)
        type_, category, main_score, subtype = task.kind
        metadata = TaskMetadata(
            name="-".join((source.name.replace("/", "--"), task.__name__, *part)),
            description=f"{task.__doc__} ({source.place}, {source.split})",
            type=type_,
            category=category,
            main_score=main_score,
            task_subtypes=[subtype],
            dataset={"path": source.place, "revision": revision},
            eval_splits=[source.split],
            eval_langs=list(languages),
            reference=get_corpus(corpus).source if corpus in CORPORA else None,
        )
        content = {
            "metadata": metadata,
            "texts": texts,
            "labels": list(problem.labels),
            "__module__": __name__,
        }
        made: type[AbsTask] = type(task.__name__, (task,), content)
        tasks.append(made())
    return tasks
