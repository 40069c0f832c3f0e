"""Evaluating models on a corpus: load, embed once per model, run the tasks, write results, table and picture."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..corpora.histograms import check_drawing
from ..models.dialogue import Dialogue
from ..models.errors import InputError
from ..models.files import check_writable, write_text_atomically
from .encoders import find_encoder, load_encoder
from .plots import scatter
from .results import Results, Row, describe_run, write_results
from .tables import markdown_table
from .tasks import Measurement, evaluate_embeddings
from .utterances import load_utterances, measure_utterances

TRAINING_REPORT = "training_report.json"
"""What training leaves in a checkpoint's folder; its time goes into the table."""

N_INIT = 10
"""Random starts of each k-means, as in the papers' time (see `hf_dialemb.metrics.purity.functional.cluster_purity`)."""


def evaluate_models(
    models: Sequence[str],
    corpus: str,
    data_dir: str | Path | None,
    split: str,
    *,
    seeds: Sequence[int] = range(10),
    output: Path | None = None,
    plot: Path | None = None,
    limit: int | None = None,
    command: str | None = None,
) -> Results:
    """Measures models on a corpus.

    Dialogues: those of one domain, as the dial2vec benchmark does. Utterances: by few examples of each label, as DSE
    and Dialog2Flow do (see `utterances`).

    The request is checked before the first model is loaded. The results file and its table are written anew after
    each model, so that an interrupted run keeps what it has measured.

    Args:
        models: Encoders, in the forms that `load_encoder` takes.
        corpus: A corpus's name, or a ``.jsonl`` file.
        data_dir: Where the corpus lies.
        split: Which part of it.
        seeds: Repeats of k-means and of drawing pairs.
        output: The results JSON to write; a Markdown table goes beside it, with the ending ``.md``.
        plot: The PNG to draw.
        limit: At most so many dialogues, a fixed random sample; None means all.
        command: What the results file shall call the run; the process's own command line by default.

    Returns:
        The figures of all models, with the time that each took for encoding.

    Raises:
        InputError: A model or the corpus is not found, has too few labels, or an output cannot be written.
    """
    started = time.perf_counter()
    _check_request(models, seeds, output, plot, limit)
    problem = _load(corpus, data_dir, split, limit)
    config = {"models": list(models), **problem.config}
    rows: list[Row] = []
    embeddings: dict[str, NDArray[np.float32]] = {}
    for model in _progress(models):
        vectors, measurements = _measure(model, problem, seeds)
        rows += [Row(model, config["corpus"], split, *measurement) for measurement in measurements]
        embeddings[model] = vectors
        results = Results(describe_run(command or _command_line(), config, seeds, started), tuple(rows))
        _write(results, output)
    if plot is not None:
        scatter(embeddings, problem.labels, plot, {model: _caption(rows, model) for model in models})
    return results


def _check_request(
    models: Sequence[str], seeds: Sequence[int], output: Path | None, plot: Path | None, limit: int | None
) -> None:
    if isinstance(models, str) or not models:
        raise InputError(f"models: got {models!r}, expected a list of at least one; name a model or 'tfidf'")
    twice = [model for model, count in Counter(models).items() if count > 1]
    if twice:
        raise InputError(f"models: got '{twice[0]}' more than once, expected each once; leave the others out")
    if not len(seeds):
        raise InputError("seeds: got none, expected at least one; pass for example 0 1 2")
    if limit is not None and limit < 2:
        raise InputError(f"limit: got {limit}, expected at least 2; leave it out to take all dialogues")
    for path in (output, plot):
        if path is not None:
            check_writable(path)
    if output is not None and output.suffix == ".md":
        raise InputError(f"output '{output}': got the ending of the table, expected a JSON file; name it .json")
    if plot is not None:
        check_drawing()
    for model in models:
        find_encoder(model)


class _Problem(NamedTuple):
    """What is measured: texts, their labels, what the results file says of them, and the tasks."""

    dialogues: Sequence[Dialogue]
    labels: Sequence[str]
    config: dict[str, Any]
    measure: Callable[[NDArray[np.float32], Sequence[int]], list[Measurement]]


def _load(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> _Problem:
    from ..corpora import CORPORA, get_corpus

    if corpus in CORPORA and get_corpus(corpus).kind == "utterances":
        found = load_utterances(corpus, data_dir, split, limit)

        def measure(vectors: NDArray[np.float32], seeds: Sequence[int]) -> list[Measurement]:
            return measure_utterances(vectors, found, seeds)

        return _Problem(found.dialogues, found.labels, found.config, measure)
    dialogues, config = _single_domain(corpus, data_dir, split, limit)
    labels = [dialogue.domains[0] for dialogue in dialogues]

    def measure_domains(vectors: NDArray[np.float32], seeds: Sequence[int]) -> list[Measurement]:
        return evaluate_embeddings(vectors, labels, seeds=seeds, n_init=N_INIT)

    return _Problem(dialogues, labels, {**config, "n_init": N_INIT}, measure_domains)


def _single_domain(
    corpus: str, data_dir: str | Path | None, split: str, limit: int | None
) -> tuple[list[Dialogue], dict[str, Any]]:
    """Returns the single-domain dialogues and what the results file says about them."""
    from ..corpora import load_dialogues, single_domain

    dialogues = single_domain(load_dialogues(corpus, data_dir, split))
    if not dialogues:
        raise InputError(
            f"corpus {corpus}, split {split}: no dialogue of it has exactly one domain label; "
            "give the dialogues a 'domains' list of one name"
        )
    if limit is not None and limit < len(dialogues):
        # Corpora are often sorted by domain: the first ones would be all alike.
        chosen = np.sort(np.random.default_rng(0).choice(len(dialogues), limit, replace=False))
        dialogues = [dialogues[row] for row in chosen]
    counts = Counter(dialogue.domains[0] for dialogue in dialogues)
    if len(counts) < 2 or max(counts.values()) < 2:
        raise InputError(
            f"corpus {corpus}, split {split}: got {len(dialogues)} dialogues with {len(counts)} distinct labels, "
            "expected at least two labels and two dialogues of one of them; add dialogues or raise the limit"
        )
    name = Path(corpus).name if str(corpus).endswith(".jsonl") else str(corpus)
    alone = sum(count == 1 for count in counts.values())
    described = {"corpus": name, "split": split, "limit": limit, "dialogues": len(dialogues)}
    return dialogues, {**described, "labels": len(counts), "labels_of_one_dialogue": alone}


def _measure(model: str, problem: _Problem, seeds: Sequence[int]) -> tuple[NDArray[np.float32], list[Measurement]]:
    encoder = load_encoder(model)
    started = time.perf_counter()
    vectors = encoder.encode(problem.dialogues)
    seconds = time.perf_counter() - started
    try:
        figures = problem.measure(vectors, seeds)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"model {model}: {error}") from error
    figures.append(Measurement("encoding", "seconds", "", round(seconds, 3), None, 1))
    report = Path(model) / TRAINING_REPORT
    if report.is_file():
        trained = json.loads(report.read_text(encoding="utf-8"))["seconds"]
        figures.append(Measurement("training", "seconds", "", round(trained, 1), None, 1))
    return vectors, figures


def _command_line() -> str:
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def _progress(models: Sequence[str]) -> Iterable[str]:
    from tqdm import tqdm

    return tqdm(models, desc="models", unit="model", file=sys.stderr)


def _write(results: Results, output: Path | None) -> None:
    if output is not None:
        write_results(results, output)
        write_text_atomically(output.with_suffix(".md"), markdown_table(results.results))


def _caption(rows: Sequence[Row], model: str) -> str:
    means = {row.metric: row.mean for row in rows if row.model == model}
    if "purity" in means:
        return f"purity {means['purity']:.1f}, MAP {means['map']:.1f}"
    return ", ".join(f"{row.metric} {row.setting} {row.mean:.1f}" for row in rows if row.model == model and row.n > 1)
