"""MTEB.

Any encoder of this package as its model, and dialogues from corpora that are at hand as its tasks.

``mteb.evaluate(DialembEncoder(spec), dialogue_tasks("sgd"))`` runs both, and each goes with MTEB's
own. Nothing is downloaded, and nothing sent anywhere. Text models get the turns of a dialogue
joined by blanks (``text``), models that read turns find them beside it (``conversation``, as MTEB
names them). Figures are MTEB's own, as shares:

- `DomainRetrieval`: ``map_at_1000`` and ``mrr_at_1000`` agree with MAP and MRR, of up to a thousand
  dialogues;
- `ResponseSelection`: ``hit_rate_at_1``, ``_3``, ``_10`` and ``mrr_at_100`` agree with the first
  repeat of ``dialogue-response-selection``, for models of texts;
- `DomainClustering` (bootstrapped mini-batch k-means, V-measure) and `IntentClassification`
  (logistic regression on five examples of each intent) follow MTEB where this package follows the
  papers. Ties apart, every draw is fixed.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset, DatasetDict
from numpy.typing import NDArray

from ..data import CORPORA, get_corpus
from ..dialogue import Dialogue, Turn
from ..encoders import Encoder, load_encoder
from ..errors import InputError, unknown_name
from ..evaluation.tasks.domains import load_domains
from ..evaluation.tasks.intents import load_intents
from ..evaluation.tasks.response_selection_task import CONTEXT_WORDS, selections_of
from ..evaluation.tasks.sampling import SHOTS
from ..evaluation.tasks.task import CorpusPart
from ..evaluation.tasks.task_texts import correct_candidates, last_words
from ..hashing import json_key

try:
    from mteb.abstasks import AbsTaskClassification, AbsTaskClustering, AbsTaskRetrieval
    from mteb.abstasks.abstask import AbsTask
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ScoringFunction
except ImportError as error:
    raise InputError('MTEB is not installed; run: pip install "hf-dialemb[mteb]"') from error

Columns = dict[str, Any]  # what a task holds, as plain lists, so that it can be hashed


class DialembEncoder(AbsEncoder):
    """An encoder of dialogues, in any form that `load_encoder` takes, as a model of MTEB.

    A blank text, which some tasks of MTEB hold, has the vector 0. Results are filed under
    ``dialemb/`` and the name; the revision is the encoder's fingerprint unless it is given, so that
    MTEB's cache never mixes up weights.
    """

    def __init__(
        self,
        model_name: str | Encoder,
        revision: str | None = None,
        *,
        device: str | None = None,
        batch_size: int = 32,
        **_: object,
    ) -> None:
        self.model = load_encoder(model_name, batch_size=batch_size, device=device)
        revision = revision or self.model.fingerprint or None
        name = "dialemb/" + self.model.name.strip("/").replace("/", "--")
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": name, "revision": revision, "similarity_fn_name": ScoringFunction.COSINE}
        )

    def encode(
        self, inputs: Iterable[Mapping[str, Any]], *, task_metadata: TaskMetadata, **_: object
    ) -> NDArray[np.float32]:
        """Return the vectors (N, D) of batches with ``text``, or with ``conversation`` where there
        are any.

        An InputError refuses a malformed message, and an encoder that is fitted anew in each of
        several calls.
        """
        if self.model.fitted_on_input and task_metadata.simplified_task_type != "clustering":
            raise InputError(
                f"model '{self.model.name}': is fitted on what it encodes, but got "
                f"{task_metadata.name}, which encodes "
                "in several calls; choose a clustering task or another model"
            )
        batches = list(inputs)
        if any("conversation" in batch for batch in batches):
            spoken = [messages for batch in batches for messages in batch["conversation"]]
            kept = [
                [message for message in messages if message["content"].strip()]
                for messages in spoken
            ]
            items = [Dialogue.from_messages(messages) if messages else None for messages in kept]
            vectors = self.model.encode([item for item in items if item])
        else:
            items = [text.strip() and text for batch in batches for text in batch["text"]]
            vectors = self.model.encode_utterances([item for item in items if item])
        rows = [row for row, item in enumerate(items) if item]
        result = np.zeros((len(items), vectors.shape[1]), dtype=np.float32)
        result[rows] = vectors
        return result


class _AtHand(AbsTask):
    """A task whose data lie in memory.

    `dialogue_tasks` makes a class of it for each corpus, as MTEB wants it.

    ``kind`` is what MTEB calls its type, category, main score and subtype.
    """

    kind: ClassVar[tuple[Any, Any, Any, Any]]
    columns: ClassVar[Columns]
    split: ClassVar[str]
    read: Callable[[CorpusPart], Columns]  # what the task asks of a corpus

    def load_data(self, num_proc: int | None = None, **_: object) -> None:
        """Make MTEB's form of the data."""
        if not self.data_loaded:
            # a second model is to meet the same draws as the first
            self.rng_state = random.Random(self.seed)
            self.dataset = self._dataset()
            self.data_loaded = True

    def _dataset(self) -> Any:
        raise NotImplementedError


def _read_domains(source: CorpusPart) -> Columns:
    problem = load_domains(source)
    return {**_inputs(problem.dialogues), "labels": list(problem.labels)}


class DomainClustering(_AtHand, AbsTaskClustering):
    """Do clusters of dialogues agree with their domains?"""

    kind = ("Clustering", "t2c", "v_measure", "Thematic clustering")
    # MTEB hands plain texts over if only one column is named.
    input_column_name = ("text", "conversation")  # type: ignore[assignment]
    max_fraction_of_documents_to_embed = None

    read = staticmethod(_read_domains)

    def _dataset(self) -> DatasetDict:
        # bootstraps are of the data's own size
        self.max_documents_per_cluster = len(self.columns["labels"])
        return DatasetDict({self.split: Dataset.from_dict(self.columns)})


class DomainRetrieval(_AtHand, AbsTaskRetrieval):
    """Do a dialogue find those of its domain?"""

    kind = ("Retrieval", "t2t", "map_at_1000", "Conversational retrieval")
    ignore_identical_ids = True

    read = staticmethod(_read_domains)

    def _dataset(self) -> dict[str, Any]:
        labels = self.columns["labels"]
        ids = [str(row) for row in range(len(labels))]
        documents = _with_ids(self.columns, ids)
        relevant = {
            query: {
                other: 1
                for other, same in zip(ids, labels, strict=True)
                if same == label and other != query
            }
            for query, label in zip(ids, labels, strict=True)
        }
        split = {
            "queries": documents,
            "corpus": documents,
            "relevant_docs": relevant,
            "top_ranked": None,
        }
        return {"default": {self.split: split}}


class ResponseSelection(_AtHand, AbsTaskRetrieval):
    """Is the response that really followed nearest to its context?"""

    kind = ("Reranking", "t2t", "mrr_at_100", "Dialog Systems")
    k_values = (1, 3, 10, 100)

    @staticmethod
    def read(source: CorpusPart) -> Columns:
        """Read contexts with their candidates.

        Those that the corpus gives, or drawn from its dialogues.
        """
        selections = selections_of(source)[0](0)  # the first repeat of the task
        if not selections:
            raise source.error(
                "got no context with responses to choose from; choose another corpus or raise the "
                "limit"
            )
        contexts = [
            Dialogue(last_turns(selection.context, CONTEXT_WORDS)) for selection in selections
        ]
        candidates = [_numbered(selection.responses) for selection in selections]
        return {
            **_inputs(contexts),
            "candidates": candidates,
            "correct": [
                [
                    candidate
                    for candidate, right in zip(offered, correct_candidates(selection), strict=True)
                    if right
                ]
                for selection, offered in zip(selections, candidates, strict=True)
            ],
        }

    def _dataset(self) -> dict[str, Any]:
        offered = dict.fromkeys(
            tuple(text) for texts in self.columns["candidates"] for text in texts
        )
        names = {text: f"response-{place}" for place, text in enumerate(offered)}
        ids = [f"context-{row}" for row in range(len(self.columns["text"]))]

        def of_contexts(column: str) -> dict[str, list[str]]:
            return {
                context: [names[tuple(text)] for text in texts]
                for context, texts in zip(ids, self.columns[column], strict=True)
            }

        split = {
            "queries": _with_ids(self.columns, ids),
            "corpus": Dataset.from_dict(
                {"id": list(names.values()), "text": [text for text, _ in names]}
            ),
            "relevant_docs": {
                context: dict.fromkeys(right, 1)
                for context, right in of_contexts("correct").items()
            },
            "top_ranked": of_contexts("candidates"),
        }
        return {"default": {self.split: split}}


class IntentClassification(_AtHand, AbsTaskClassification):
    """Do few examples tell intents apart?"""

    kind = ("Classification", "t2c", "accuracy", "Intent classification")
    samples_per_label = SHOTS[-1]

    @staticmethod
    def read(source: CorpusPart) -> Columns:
        """Read utterances and their intents; the examples are of train."""
        problem = load_intents(source)
        names = sorted(set(problem.labels))
        return {
            "text": [dialogue.turns[0].content for dialogue in problem.dialogues],
            "label": [names.index(label) for label in problem.labels],
            "examples": len(problem.labels) - problem.config["utterances"],
        }

    def _dataset(self) -> DatasetDict:
        cut = self.columns["examples"]
        both = Dataset.from_dict({name: self.columns[name] for name in ("text", "label")})
        return DatasetDict(
            {"train": both.select(range(cut)), self.split: both.select(range(cut, len(both)))}
        )


_ALL = (DomainClustering, DomainRetrieval, ResponseSelection, IntentClassification)
TASKS: dict[str, type[_AtHand]] = {task.__name__: task for task in _ALL}  # the tasks, by name

OF_KIND = {
    "dialogues": ("DomainClustering", "DomainRetrieval", "ResponseSelection"),
    "utterances": ("IntentClassification",),
    "response-selection": ("ResponseSelection",),
}
"""Which of them suit a corpus of which kind."""


def dialogue_tasks(
    corpus: str,
    data_dir: str | Path | None = None,
    split: str = "test",
    *,
    tasks: Sequence[str] = (),
    limit: int | None = None,
    languages: Sequence[str] = ("eng-Latn",),
) -> list[AbsTask]:
    """Make the tasks of MTEB that a corpus, by name or a file, has the data for.

    Keys of `TASKS`, or all.

    They are named by corpus and task, and by the split if there is one that is not test; their
    revision is a digest of their data, so that MTEB never takes old results of other data for
    theirs. Of more dialogues, contexts or utterances than the limit a fixed random sample is taken.
    MTEB files results under ``languages``. An InputError says that the corpus is not at hand, lacks
    labels, of domains one for each dialogue, or does not suit a task.
    """
    source = CorpusPart(corpus, data_dir, split, limit)
    suitable = OF_KIND.get(source.kind, ())
    for task in tasks:
        if task not in TASKS:
            raise unknown_name("task", task, TASKS)
    chosen = list(dict.fromkeys(tasks or suitable))
    if not chosen or not set(chosen) <= set(suitable):
        raise InputError(
            f"tasks: got {' '.join(tasks) or 'none'} for corpus {corpus}, which holds "
            f"{source.kind}, expected "
            f"{' or '.join(suitable) or 'dialogues, utterances or responses to choose from'}; "
            "choose another task or "
            "corpus"
        )
    return [_task(TASKS[name], source, languages) for name in chosen]


def last_turns(turns: Sequence[Turn], words: int) -> tuple[Turn, ...]:
    """Keep the last turns of a context, at most ``words`` words.

    The first turn may be cut at its beginning.
    """
    kept: tuple[Turn, ...] = ()
    for turn in reversed(turns):
        text = _joined((turn, *kept))
        end = last_words(text, words)
        if end != text:
            content = end[: max(len(end) - len(_joined(kept)), 0)].strip()
            return (Turn(turn.role, content), *kept) if content else kept
        kept = (turn, *kept)
    return kept


def _task(task: type[_AtHand], source: CorpusPart, languages: Sequence[str]) -> AbsTask:
    columns, corpus, split = task.read(source), source.place, source.split
    part = () if source.is_own or split == "test" else (split,)
    name = "-".join((source.name.replace("/", "--"), task.__name__, *part))
    type_, category, main_score, subtype = task.kind
    metadata = TaskMetadata(
        name=name,
        description=f"{task.__doc__} ({corpus}, {split})",
        type=type_,
        category=category,
        main_score=main_score,
        task_subtypes=[subtype],
        dataset={"path": corpus, "revision": json_key(columns)[:12]},
        eval_splits=[split],
        eval_langs=list(languages),
        reference=get_corpus(corpus).source if corpus in CORPORA else None,
    )
    content = {"metadata": metadata, "columns": columns, "split": split, "__module__": __name__}
    made: type[AbsTask] = type(task.__name__, (task,), content)
    return made()


def _joined(turns: Sequence[Turn]) -> str:
    return " ".join(turn.content for turn in turns)


def _inputs(dialogues: Sequence[Dialogue]) -> Columns:
    return {
        "text": [_joined(dialogue.turns) for dialogue in dialogues],
        "conversation": [dialogue.to_messages() for dialogue in dialogues],
    }


def _with_ids(columns: Columns, ids: list[str]) -> Dataset:
    return Dataset.from_dict(
        {"id": ids, "text": columns["text"], "conversation": columns["conversation"]}
    )


def _numbered(texts: Sequence[str]) -> list[list[Any]]:
    """Tell equal candidates of a context apart, as pairs of a text and how often it came before."""
    return [[text, texts[:place].count(text)] for place, text in enumerate(texts)]
