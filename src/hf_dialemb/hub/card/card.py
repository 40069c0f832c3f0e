"""Render the card of a published model from its record and results files.

The card needs the data and licences of the training. Figures are optional, and stand beside those
of the model that this one began as.
"""

import html
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCardData
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ...data import CORPORA, get_corpus
from ...data.corpus_names import is_own
from ...errors import explained
from ...evaluation.results.result_tables import mark_notes
from ...methods import get_method
from ...metrics.space import cited
from ...storage.files import check_writable, write_json_atomically, write_text_atomically
from ...training.arguments import make_settings
from ..published_folder import PublishedFolder, check_repo_id
from .card_record import ENSEMBLE, corpora_of, make_record, matches
from .figures import Measured, command_of, evaluation_results, measured, write_published_results

_FOLDER = Path(__file__).parent
_HUB_DATASETS = "https://huggingface.co/datasets/"
_WIDGETS: dict[str, Any] = {
    "sentence-similarity": [
        {
            "source_sentence": "I need a cheap hotel in the north.",
            "sentences": [
                "Is there an inexpensive place to stay?",
                "My card was stolen!",
                "For how many nights?",
            ],
        }
    ],
    "feature-extraction": [{"text": "I need a cheap hotel in the north."}],
}
_UNSTATED = {"terms": "not stated", "licence": "not stated"}
_TASKS = {
    "utterances": "sentence-similarity",
    "dialogues": "feature-extraction",
    "responses": "text-ranking",
}
"""Kinds of models, as the Hub names their tasks."""


def write_card(
    folder: str | Path,
    run: str | Path,
    results: Sequence[str | Path] = (),
    *,
    repo_id: str | None = None,
    licences: Mapping[str, str] | None = None,
    output: str | Path | None = None,
    record: str | Path | None = None,
) -> list[Path]:
    """Write the card of a published folder, and return the files written.

    The folder is one that `export` wrote, ``run`` what it was exported from; results are files with
    figures of the model and of its backbone. ``repo_id`` is the place of publication, by default
    ``org/`` and the folder's name, and ``licences`` say ``TERMS:LICENCE`` of each corpus that the
    catalogue does not know. The card is ``output``, by default ``README.md`` of the folder, with
    the figures in ``results/``. ``record`` keeps the card's sources; with neither results nor an
    output, it is written alone. An InputError says that a source is missing or of another model, a
    licence is unknown, or a file cannot be written.
    """
    folder, run, files = Path(folder), Path(run), [Path(file) for file in results]
    for target in (output, record):
        if target:
            check_writable(Path(target), *files)
    with explained(
        f"{folder}, {run} and the results", "write them again, by export, train, benchmark"
    ):
        made = make_record(folder, run, licences)
        wanted = files or output or not record
        card = render_record(made, files, repo_id) if wanted else ""
    written: list[Path] = []
    if card:
        written.append(Path(output) if output else folder / PublishedFolder.CARD)
        if not output and files:
            written += write_published_results(
                measured(made, files), files, _repository(made, repo_id), folder
            )
        write_text_atomically(written[0], card)
    if record:
        write_json_atomically(Path(record), made)
        written.append(Path(record))
    return written


def render_record(
    record: Mapping[str, Any], results: Sequence[Path], repo_id: str | None = None
) -> str:
    """Return the card of a model by its record; its folders are not needed."""
    repo_id = _repository(record, repo_id)
    corpora = [_corpus(name, split, record) for name, split in corpora_of(record)]
    research = list(
        dict.fromkeys(corpus["name"] for corpus in corpora if corpus["terms"] == "research")
    )
    method = get_method(record["model"]["method"])
    figures = measured(record, results)
    citation = cited(method.paper) if method.paper else ""
    environment = Environment(  # in which an unknown name is an error
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        md=escaped,
        fenced=fenced,
        command=command_of,
        tally=lambda figures: Counter(figure.verdict for figure in figures),
    )
    text = environment.get_template("model_card.md.jinja").render(
        record=record,
        model=record["model"],
        repo_id=repo_id,
        method=method,
        paper_url=next(iter(re.findall(r"url = \{(.+?)\}", citation)), ""),
        is_ensemble=record["model"]["method"] == ENSEMBLE,
        measured=figures,
        mark_notes="\n\n".join(filter(None, mark_notes(figures.rows))),
        corpora=corpora,
        research=research,
        unstated=_unstated(corpora),
        recipe=recipe(record["training"]),
        differing=differing(record["training"]),
        citations=[*filter(None, [citation]), cited("hf_dialemb")],
    )
    front = _front_matter(record, figures, corpora, bool(research), repo_id)
    return f"---\n{front.to_yaml(line_break=chr(10))}\n---\n\n{text}"


def _repository(record: Mapping[str, Any], repo_id: str | None) -> str:
    repo_id = repo_id or f"org/{record['name']}"
    check_repo_id(repo_id)
    return repo_id


def recipe(training: Sequence[Mapping[str, Any]]) -> str:
    """Return the settings that trainings share and that differ from the defaults, as YAML for
    ``dialemb train``.
    """
    several = [_chosen(run["settings"]) for run in training]
    shared = {
        name: value
        for name, value in several[0].items()
        if all(run.get(name) == value for run in several)
    }
    return yaml.safe_dump(shared, sort_keys=False, allow_unicode=True, width=10**9)


def _chosen(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without those that have their default, except method, backbone and corpora."""
    defaults, shown = (
        make_settings({"method": settings["method"]}).fingerprint(),
        ("method", "backbone", "corpus"),
    )
    return {
        name: value
        for name, value in settings.items()
        if value is not None and (name in shown or value != defaults.get(name))
    }


def differing(training: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings in which several trainings differ."""
    names = dict.fromkeys(name for run in training for name in run["settings"])
    others = [
        name
        for name in names
        if len({json.dumps(run["settings"].get(name)) for run in training}) > 1
    ]
    return {
        run["name"]: {
            name: run["settings"][name] for name in others if run["settings"].get(name) is not None
        }
        for run in (training if others else ())
    }


def _corpus(name: str, split: str, record: Mapping[str, Any]) -> dict[str, str]:
    if name in CORPORA:
        known = get_corpus(name)
        stated = {
            field: getattr(known, field) for field in ("licence", "terms", "source", "extract")
        }
        return {"name": name, "split": split, **stated}
    given = next(
        (licence for key, licence in record["licences"].items() if matches(key, name)), _UNSTATED
    )
    source = f"{_HUB_DATASETS}{name}" if _is_hub_id(name) and not is_own(name) else ""
    return {"name": name, "split": split, "source": source, "extract": "", **given}


def _unstated(corpora: Sequence[Mapping[str, str]]) -> list[str]:
    return [corpus["name"] for corpus in corpora if corpus["terms"] == _UNSTATED["terms"]]


def _front_matter(
    record: Mapping[str, Any],
    figures: Measured,
    corpora: Sequence[Mapping[str, str]],
    research: bool,
    repo_id: str,
) -> ModelCardData:
    model, reference = record["model"], (record["reference"] or "").partition("@")[0]
    task = _TASKS[model["kind"]]
    sources = [corpus["source"] for corpus in corpora if corpus["source"].startswith(_HUB_DATASETS)]
    tags = [
        "sentence-transformers",
        task,
        "transformers",
        "dialogue",
        "hf_dialemb",
        model["method"].replace("_", "-"),
    ]
    tags += ["custom_code"] if model["kind"] != "utterances" else []
    tags += ["onnx"] if model["onnx"] else []
    base = (
        reference if reference and model["method"] != ENSEMBLE and _is_hub_id(reference) else None
    )
    optional: dict[str, Any] = {
        "base_model": base,
        "base_model_relation": base and "finetune",
        "widget": _WIDGETS.get(task),
        "datasets": list(dict.fromkeys(source.removeprefix(_HUB_DATASETS) for source in sources)),
        "metrics": sorted({row.metric for row in figures.rows if not row.learnt}),
        "eval_results": evaluation_results(figures.rows),
    }
    return ModelCardData(
        license="other" if research else None if _unstated(corpora) else "apache-2.0",
        license_name="research-only" if research else None,
        library_name="sentence-transformers",
        pipeline_tag=task,
        tags=tags,
        model_name=repo_id.rpartition("/")[2],
        **{name: value for name, value in optional.items() if value},
    )


def _is_hub_id(name: str) -> bool:
    return bool(re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name))


def escaped(text: object) -> str:
    """Return a text as one line of Markdown, in a table or outside."""
    line = html.escape(" ".join(str(text).split()), quote=False)
    return re.sub(r"([\\`*\[\]|~$#])|(?<!\w)(_)|(_)(?!\w)", lambda match: f"\\{match[0]}", line)


def fenced(text: str, language: str = "") -> str:
    """Return a code block that its text cannot close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
