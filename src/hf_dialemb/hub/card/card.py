"""Render the card of a published model from its record and results files.

The card needs the data and licences of the training. Figures are optional, and stand beside those
of the model that this one began as.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCard, ModelCardData

from ...data import CORPORA, get_corpus
from ...data.corpus_names import is_own
from ...errors import explained
from ...evaluation.results.result_tables import mark_notes
from ...methods import get_method
from ...metrics.space import cited
from ...storage.files import write_json_atomically, write_text_atomically
from ...training.arguments import make_settings
from ..published_folder import PublishedFolder, check_repo_id
from .card_record import ENSEMBLE, corpora_of, escaped, make_record, matches
from .figures import Figure, headline, measured, model_index, write_published_results

_TEMPLATE = Path(__file__).with_name("model_card.md")
_HUB_DATASETS = "https://huggingface.co/datasets/"
_NOT_STATED = "not stated"
_TASKS = {
    "utterances": "sentence-similarity",
    "dialogues": "feature-extraction",
    "responses": "text-ranking",
}
"""The Hub's name of the task of each kind of models."""


_WIDGET = {
    "source_sentence": "I need a cheap hotel in the north.",
    "sentences": ["Is there an inexpensive place to stay?", "My card was stolen!"],
}
"""What the Hub's page of an encoder of utterances compares."""


def write_card(
    folder: str | Path,
    run: str | Path,
    results: Sequence[str | Path] = (),
    *,
    repo_id: str | None = None,
    licences: Mapping[str, str] | None = None,
    record: str | Path | None = None,
) -> list[Path]:
    """Write the card of a published folder, and return the files written.

    All figures go into ``results/figures.md`` and ``.eval_results/`` beside it.

    Args:
        folder: The folder, which `export` wrote.
        run: What it was exported from.
        results: Files with figures of the model and of its backbone.
        repo_id: The place of publication; by default ``org/`` and the folder's name.
        licences: ``TERMS:LICENCE`` of each corpus that the catalogue does not know.
        record: A file for the card's sources, by which it can be rendered again.

    Raises:
        InputError: A source is missing or of another model, a licence is unknown, or a file cannot
            be written.
    """
    folder = Path(folder)
    run = Path(run)
    files = [Path(file) for file in results]
    with explained(
        f"{folder}, {run} and the results", "write them again, by export, train, benchmark"
    ):
        made = make_record(folder, run, licences)
        figures = measured(made, files)
        card = render_card(made, figures, repo_id)
    written = [folder / PublishedFolder.CARD]
    write_text_atomically(written[0], card)
    if figures:
        written += write_published_results(figures, _repository(made, repo_id), folder)
    if record:
        write_json_atomically(Path(record), made)
        written.append(Path(record))
    return written


def render_card(
    record: Mapping[str, Any], figures: Sequence[Figure], repo_id: str | None = None
) -> str:
    """Return the card of a model by its record and figures; its folders are not needed."""
    repo_id = _repository(record, repo_id)
    model = record["model"]
    method = get_method(model["method"])
    corpora = [_corpus(name, split, record) for name, split in corpora_of(record)]
    names = {
        terms: list(dict.fromkeys(item["name"] for item in corpora if item["terms"] == terms))
        for terms in ("research", _NOT_STATED)
    }
    shown = headline(figures)
    card = ModelCard.from_template(
        _card_data(record, shown, corpora, repo_id),
        template_path=str(_TEMPLATE),
        name=repo_id.rpartition("/")[2],
        repo_id=repo_id,
        model=model,
        method=method,
        is_ensemble=model["method"] == ENSEMBLE,
        reference=record["reference"],
        members=record["members"],
        corpora=[corpus["line"] for corpus in corpora],
        research=names["research"],
        unstated=names[_NOT_STATED],
        training=record["training"],
        recipe=recipe(record["training"]),
        figures=figures,
        verdicts=Counter(figure.verdict for figure in figures),
        shown=shown,
        notes=mark_notes(figure.row for figure in shown),
        citations=[cited(key) for key in (method.paper, "hf_dialemb") if key],
    )
    return f"{str(card).rstrip()}\n"


def _repository(record: Mapping[str, Any], repo_id: str | None) -> str:
    repo_id = repo_id or f"org/{record['name']}"
    check_repo_id(repo_id)
    return repo_id


def recipe(training: Sequence[Mapping[str, Any]]) -> str:
    """Return the settings that trainings share and that are no defaults, as YAML."""
    first, *others = [run["settings"] for run in training]
    get_method(first["method"])  # refuses a file, which a folder may not have imported
    defaults = make_settings({"method": first["method"]}).fingerprint()
    shared = {}
    for name, value in first.items():
        chosen = name in ("method", "backbone", "corpus") or value != defaults.get(name)
        if value is not None and chosen and all(run.get(name) == value for run in others):
            shared[name] = value
    return yaml.safe_dump(shared, sort_keys=False, allow_unicode=True, width=10**9).rstrip()


def _corpus(name: str, split: str, record: Mapping[str, Any]) -> dict[str, str]:
    """Return a corpus with its licence, its terms, its source, and its line in the card."""
    facts = {"terms": _NOT_STATED, "licence": _NOT_STATED, "source": "", "language": ""}
    if name in CORPORA:
        facts |= {field: getattr(get_corpus(name), field) for field in facts}
    else:
        given = (given for key, given in record["licences"].items() if matches(key, name))
        facts |= next(given, {})
        if _is_hub_id(name) and not is_own(name):
            facts["source"] = f"{_HUB_DATASETS}{name}"
    label = escaped(f"{name} {split}".strip())
    if facts["source"]:
        label = f"[{label}]({facts['source']})"
    return {**facts, "name": name, "line": f"- {label}: {escaped(facts['licence'])}"}


def _card_data(
    record: Mapping[str, Any],
    shown: Sequence[Figure],
    corpora: Sequence[Mapping[str, str]],
    repo_id: str,
) -> ModelCardData:
    model = record["model"]
    reference = record["reference"]
    terms = {corpus["terms"] for corpus in corpora}
    sources = [corpus["source"] for corpus in corpora if corpus["source"].startswith(_HUB_DATASETS)]
    tags = ["sentence-transformers", "transformers", "dialogue", "hf_dialemb"]
    tags.append(model["method"].replace("_", "-"))
    if model["kind"] != "utterances":
        tags.append("custom_code")
    optional: dict[str, Any] = {
        "datasets": list(dict.fromkeys(source.removeprefix(_HUB_DATASETS) for source in sources)),
        "eval_results": model_index(shown),
        "language": sorted(filter(None, {corpus["language"] for corpus in corpora})),
    }
    if "research" in terms:
        optional["license"] = "other"
        optional["license_name"] = "research-only"
    elif _NOT_STATED not in terms:
        optional["license"] = "apache-2.0"
        optional["license_link"] = "https://www.apache.org/licenses/LICENSE-2.0"
    if model["kind"] == "utterances":
        optional["widget"] = [_WIDGET]
    if reference and _is_hub_id(reference) and model["method"] != ENSEMBLE:
        optional["base_model"] = reference
        optional["base_model_relation"] = "finetune"
    return ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag=_TASKS[model["kind"]],
        tags=tags,
        model_name=repo_id.rpartition("/")[2],
        **{name: value for name, value in optional.items() if value},
    )


def _is_hub_id(name: str) -> bool:
    return bool(re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name))
