"""The card of a published model, rendered from files: nothing in it is written by hand.

It needs the data and licences of the training; figures stand beside those of what the model began as, and
without any it says that there are none.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCardData
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils._validators import validate_repo_id
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ...corpora import CORPORA, get_corpus
from ...corpora.own.reading import is_own
from ...errors import InputError
from ...evaluation.results.tables import mark_notes
from ...methods import get_method
from ...training.arguments import make_settings
from .figures import Measured, command_of, count, evaluation_results, measured
from .record import ENSEMBLE, corpora_of, matches

_HERE = Path(__file__).parent
_HUB_DATASETS = "https://huggingface.co/datasets/"
# What the Hub files a kind of model under.
_TASKS = {"utterances": "sentence-similarity", "dialogues": "feature-extraction", "responses": "text-ranking"}


def render_record(record: Mapping[str, Any], results: Sequence[Path], repo_id: str | None = None) -> str:
    """Renders the card of a model whose folders are elsewhere."""
    repo_id = repository(record, repo_id)
    corpora = [_corpus(name, split, record) for name, split in corpora_of(record)]
    research = any(corpus["terms"] == "research" for corpus in corpora)
    method = get_method(record["model"]["method"])
    found = figures_of(record, results)
    citation = cited(method.paper) if method.paper else ""
    environment = Environment(  # in which an unknown name is an error
        loader=FileSystemLoader(_HERE), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters.update(md=escaped, fenced=fenced, command=command_of, verdicts=count)
    text = environment.get_template("model_card.md.jinja").render(
        record=record,
        model=record["model"],
        repo_id=repo_id,
        name=repo_id.rpartition("/")[2],
        method={"title": method.title or method.name, "what": method.what},
        paper_url=next(iter(re.findall(r"url = \{(.+?)\}", citation)), ""),
        reference=record["reference"],
        is_ensemble=record["model"]["method"] == ENSEMBLE,
        measured=found,
        mark_notes="\n\n".join(filter(None, mark_notes(figure.row for figure in found.figures))),
        corpora=corpora,
        research=research,
        stated_none=list(dict.fromkeys(corpus["name"] for corpus in corpora if corpus["terms"] == "research")),
        recipe=recipe(record["training"]),
        differing=differing(record["training"]),
        citations=[*filter(None, [citation]), cited("hf_dialemb")],
    )  # fmt: skip
    front = _front_matter(record, found, corpora, research, repo_id)
    return f"---\n{front.to_yaml(line_break=chr(10))}\n---\n\n{text}"


def figures_of(record: Mapping[str, Any], results: Sequence[Path]) -> Measured:
    """Finds the figures of a card; takes and raises what `render_record` does."""
    return measured(record, results, get_method(record["model"]["method"]).suite or "")


def repository(record: Mapping[str, Any], repo_id: str | None = None) -> str:
    """Says where a model is to be published; takes and raises what `render_record` does."""
    repo_id = repo_id or f"org/{record['name']}"
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise InputError(f"--repo-id: got {repo_id!r}, expected org/name ({' '.join(str(error).split())})") from None
    return repo_id


def cited(key: str) -> str:
    """Finds an entry of ``citations.bib``."""
    if key.lstrip().startswith("@"):
        return key.strip()
    entries = (_HERE / "citations.bib").read_text(encoding="utf-8").split("\n\n")
    entry = next(entry for entry in entries if entry.partition("{")[2].startswith(f"{key},"))
    return entry.strip().replace("VERSION", metadata.version("hf-dialemb"))


def recipe(training: Sequence[Mapping[str, Any]]) -> str:
    """Writes the settings that trainings share and that are not the defaults, as YAML for ``dialemb train``."""
    several = [_chosen(each["settings"]) for each in training]
    shared = {name: value for name, value in several[0].items() if all(each.get(name) == value for each in several)}
    return yaml.safe_dump(shared, sort_keys=False, allow_unicode=True, width=10**9)


def differing(training: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Finds the settings in which several trainings differ."""
    names = dict.fromkeys(name for each in training for name in each["settings"])
    others = [name for name in names if len({json.dumps(each["settings"].get(name)) for each in training}) > 1]
    if not others:
        return {}
    return {
        each["name"]: {name: each["settings"][name] for name in others if each["settings"].get(name) is not None}
        for each in training
    }


def _chosen(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out what has its default, but for method, backbone and corpora."""
    defaults = make_settings({"method": settings["method"]}).fingerprint()
    shown = ("method", "backbone", "corpus")
    return {
        name: value
        for name, value in settings.items()
        if value is not None and (name in shown or name not in defaults or value != defaults[name])
    }


def _corpus(name: str, split: str, record: Mapping[str, Any]) -> dict[str, str]:
    if name in CORPORA:
        known = get_corpus(name)
        stated = {field: getattr(known, field) for field in ("licence", "terms", "source", "extract")}
        return {"name": name, "split": split, **stated}
    given = next((each for key, each in record["licences"].items() if matches(key, name)), None)
    if given is None:
        raise InputError(
            f"training_settings.json: field corpus: got '{name}', whose licence the catalogue (dialemb corpus list) "
            "does not know, expected one; say it with dialemb model card --corpus-licence 'NAME=TERMS:LICENCE'"
        )
    source = f"{_HUB_DATASETS}{name}" if _is_hub_id(name) and not is_own(name) else ""
    return {"name": name, "split": split, "source": source, "extract": "", **given}


def _front_matter(
    record: Mapping[str, Any], found: Measured, corpora: Sequence[Mapping[str, str]], research: bool, repo_id: str
) -> ModelCardData:
    model, reference = record["model"], record["reference"]
    task = _TASKS[model["kind"]]
    sources = [corpus["source"] for corpus in corpora if corpus["source"].startswith(_HUB_DATASETS)]
    datasets = [source.removeprefix(_HUB_DATASETS) for source in sources]
    base = reference if reference is not None and model["method"] != ENSEMBLE and _is_hub_id(reference) else None
    tags = ["sentence-transformers", task, "transformers", "dialogue", "hf_dialemb", model["method"].replace("_", "-")]
    tags += ["custom_code"] if model["kind"] != "utterances" else []
    tags += ["onnx"] if model["onnx"] else []
    optional: dict[str, Any] = {
        "base_model": base,
        "datasets": list(dict.fromkeys(datasets)),
        "metrics": sorted({figure.row.metric for figure in found.figures if not figure.row.learnt}),
        "eval_results": evaluation_results(found.figures),
    }
    return ModelCardData(
        license="other" if research else "apache-2.0",
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
    """Escapes a text for Markdown, in a table or out of it, as one line."""
    line = html.escape(" ".join(str(text).split()), quote=False)
    return re.sub(r"([\\`*\[\]|~$#])|(?<!\w)(_)|(_)(?!\w)", lambda found: f"\\{found[0]}", line)


def fenced(text: str, language: str = "") -> str:
    """Puts a text into a code block that it cannot close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
