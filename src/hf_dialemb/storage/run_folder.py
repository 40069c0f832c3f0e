"""A run or a model on disk: what lies in its folder, and under which names."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..errors import InputError, explained

BASELINE = "baseline"
"""The folder of the single ranker that an ensemble beside it is compared with."""


class _File:
    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, run: "RunFolder", owner: type) -> Path:
        return run.path / self.name


@dataclass(frozen=True)
class RunFolder:
    """The folder of a training, or of an ensemble of them; it need not be there yet."""

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    REMEDY: ClassVar[str] = "train again with this version (dialemb train --resume false)"

    # what decides the weights: `Settings.fingerprint`
    settings_file = _File("training_settings.json")
    # digests of the dialogues, which a resumed run must share
    data_file = _File("training_data.json")
    # digests of what was said, by which a model's figures are marked
    texts_file = _File("training_texts.json")
    report_file = _File("training_report.json")  # what the run did; there only when it is complete
    members_file = _File("members.json")  # what an ensemble was made of

    @property
    def complete(self) -> bool:
        """Whether the run went to its end."""
        return self.report_file.is_file()

    def settings(self) -> dict[str, Any]:
        """Read the settings; see `read_object`."""
        return read_object(self.settings_file, self.REMEDY)

    def report(self) -> dict[str, Any]:
        """Read the report; see `read_object`."""
        return read_object(self.report_file, self.REMEDY)

    def checkpoints(self) -> list[Path]:
        """List the folders of checkpoints that were begun, the earliest first."""
        by_step = {
            path.name.removeprefix("checkpoint-"): path for path in self.path.glob("checkpoint-*")
        }
        return [by_step[step] for step in sorted(filter(str.isdecimal, by_step), key=int)]

    def members(self) -> list[str]:
        """Name the runs that an ensemble was made of, relative to the folder that holds it.

        None for other runs.
        """
        if not self.members_file.is_file():
            return []
        remedy = (
            "give an ensemble that dialemb papers ensemble wrote, or let it assemble this one again"
        )
        with explained(self.members_file, remedy):
            return [
                str(member["run"])
                for member in json.loads(self.members_file.read_text(encoding="utf-8"))
            ]


def check_same(file: Path, now: Mapping[str, Any], what: str) -> None:
    """Refuse to go on in a folder with other settings or data than one of its files holds."""
    before = read_object(file, RunFolder.REMEDY) if file.exists() else {}
    for name, value in now.items():
        if name in before and before[name] != value:
            raise InputError(
                f"{file.parent} holds {what} with another {name} ({before[name]} there, {value} "
                "now); "
                "choose another --output_dir, or start over with --resume false"
            )


def read_object(path: Path, remedy: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: got text that is not JSON ({error}); {remedy}") from None
    if not isinstance(record, dict):
        raise InputError(f"{path}: got {type(record).__name__}, expected an object; {remedy}")
    return record


def write_sentence_files(
    folder: Path,
    modules: dict[str, str],
    transformer: dict[str, Any],
    prompts: dict[str, str] | None = None,
    similarity: str = "cosine",
    default_prompt: str | None = None,
) -> None:
    """Write the files of a sentence-transformers model, whose module types all versions know."""
    listed = [
        {
            "idx": index,
            "name": str(index),
            "path": path,
            "type": f"sentence_transformers.models.{name}",
        }
        for index, (path, name) in enumerate(modules.items())
    ]
    settings = {
        "prompts": prompts or {},
        "default_prompt_name": default_prompt,
        "similarity_fn_name": similarity,
    }
    write_record(folder / "modules.json", listed)
    write_record(folder / "sentence_bert_config.json", transformer)
    write_record(
        folder / "config_sentence_transformers.json",
        {"model_type": "SentenceTransformer", **settings},
    )


def write_files_of_our_own(folder: Path, config: Any) -> None:
    """Write those of a model whose own ``forward`` gives the vector of a text or of messages."""
    pooled = {"method": "forward", "method_output_name": "pooler_output"}
    settings: dict[str, Any] = {
        "max_seq_length": getattr(config, "longest_text", None) or config.max_context_tokens,
        "transformer_task": "feature-extraction",
        "modality_config": {"text": pooled, "message": {**pooled, "format": "flat"}},
        "module_output_name": "sentence_embedding",
        "unpad_inputs": False,
    }
    if config.kind != "utterances":  # the model cuts by itself, and counts no markers
        settings["processing_kwargs"] = {"text": {"truncation": False}}
    prompts = {"query": "", "document": "response"} if config.kind == "responses" else {}
    score = getattr(config, "score", "cosine")  # an ensemble's are cosines
    write_sentence_files(folder, {"": "Transformer"}, settings, prompts, score)


def write_record(path: Path, record: Any) -> None:
    """Write JSON as the Hub's own files are written.

    A published folder appears as a whole, so plainly.
    """
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
