"""A run on disk: the one place that knows what lies in its folder, and under which names."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..errors import InputError

BASELINE, GRANULARITIES, CHECKPOINTS, SEEDS = "baseline", "multi-granularity", "checkpoints", "seeds"
"""The systems of multi-granularity training, and their folders: one ranker, and three ensembles."""


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

    settings_file = _File("training_settings.json")  # what decides the weights: `Settings.fingerprint`
    data_file = _File("training_data.json")  # digests of the dialogues, which a resumed run must share
    texts_file = _File("training_texts.json")  # digests of what was said, by which a model's figures are marked
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
        by_step = {path.name.removeprefix("checkpoint-"): path for path in self.path.glob("checkpoint-*")}
        return [by_step[step] for step in sorted(filter(str.isdecimal, by_step), key=int)]

    def members(self) -> list[str]:
        """Name the runs that an ensemble was made of, relative to the folder that holds it; none for other runs."""
        if not self.members_file.is_file():
            return []
        remedy = "give an ensemble that dialemb papers ensemble wrote, or let it assemble this one again"
        try:
            return [str(member["run"]) for member in json.loads(self.members_file.read_text(encoding="utf-8"))]
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise InputError(f"{self.members_file}: cannot be read ({error}); {remedy}") from None


def check_same(file: Path, now: Mapping[str, Any], what: str) -> None:
    """Refuse to go on in the folder of a file with other settings, or on other data, than the file holds."""
    before = read_object(file, RunFolder.REMEDY) if file.exists() else {}
    for name, value in now.items():
        if name in before and before[name] != value:
            raise InputError(
                f"{file.parent} holds {what} with another {name} ({before[name]} there, {value} now); "
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


def field_of(record: Mapping[str, Any], name: str, place: str, remedy: str) -> Any:  # noqa: ANN401 - what JSON can hold
    """Take a field that must be there."""
    if record.get(name) is None:
        raise InputError(f"{place}: field {name}: got nothing, expected a value; {remedy}")
    return record[name]
