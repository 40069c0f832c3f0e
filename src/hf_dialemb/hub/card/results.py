"""The results that go to the Hub beside a card: the model's figures, and those that it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...evaluation.results.rows import Results, write_results
from ...models.errors import InputError
from ..published_folder import PublishedFolder
from .figures import Measured, command_of, without_place
from .record import without_places


def write_published_results(measured: Measured, sources: Sequence[Path], name: str, folder: Path) -> list[Path]:
    """Writes what a card was rendered from, so that whoever reads the card can look it up."""
    place = folder / PublishedFolder.RESULTS
    for source in sources:
        if source.resolve().parent == place.resolve():
            raise InputError(
                f"--results {source}: lies where the card's figures are written and would be replaced; move it "
                "elsewhere"
            )
    for old in place.glob("*.json"):
        old.unlink()
    place.mkdir(exist_ok=True)
    written: list[Path] = []
    for file, run, figures in measured.runs:
        own = [replace(figure.row, model=name) for figure in figures]
        others = [figure.reference for figure in figures if figure.reference is not None]
        rows = (*own, *(replace(row, model=without_place(row.model)) for row in others))
        names = (file, *(f"{file.removesuffix('.json')}-{number}.json" for number in range(2, 1000)))
        path = next(place / name for name in names if place / name not in written)
        write_results(Results(_public(run), rows), path)
        written.append(path)
    return written


def _public(run: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out of a run's description where it lay on a machine, and what it says of other models."""
    config = {key: value for key, value in run["config"].items() if key not in ("models", "weights", "cells")}
    return {**without_places(dict(run)), "config": without_places(config), "command": command_of(run)}
