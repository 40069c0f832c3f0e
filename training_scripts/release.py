"""Publish the encoders that come with the package, and every trained model at hand.

    python training_scripts/release.py ORG [--runs runs] [--output runs/release] [--send]

Each goes to ``ORG/NAME`` as its verified export, with its card and the figures of all results files
that measured it. Without ``--send`` nothing is sent: the files are listed, and whatever stands in
the way. Given again, it goes on where it stopped: exports of the same weights are kept, and what is
on the Hub with the same content gets no commit.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from hf_dialemb.errors import InputError
from hf_dialemb.hub.card.card import write_card
from hf_dialemb.hub.card.card_record import make_record
from hf_dialemb.hub.card.figures import results_of, shipped_figures, write_published_results
from hf_dialemb.hub.export import export
from hf_dialemb.hub.published_folder import PublishedFolder
from hf_dialemb.hub.publishing import publish
from hf_dialemb.papers.ensemble.plan import GRANULARITIES
from hf_dialemb.storage.pretrained import shipped
from hf_dialemb.storage.run_folder import RunFolder


def trained(runs: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the folder of each finished training and ensemble below a folder."""
    for folder in sorted(path for path in runs.glob("*") if path.is_dir()):
        if (folder / GRANULARITIES).is_dir():
            yield folder.name, folder / GRANULARITIES
        elif RunFolder(folder).complete:
            yield folder.name, folder


def prepare(name: str, source: Path | None, folder: Path, repo_id: str, results: Path) -> None:
    """Write an export with its card and figures, unless it is there, made of the same weights."""
    if folder.exists() and (source is None or is_made_of(folder, source)):
        return
    shutil.rmtree(folder, ignore_errors=True)
    export(name if source is None else source, folder)
    if source is None:
        card = folder / PublishedFolder.CARD
        text = card.read_text(encoding="utf-8").replace(
            f'load_encoder("{name}")', f'load_encoder("{repo_id}")'
        )
        card.write_text(
            text.replace(f'str(hf_dialemb.weights("{name}"))', f'"{repo_id}"'), encoding="utf-8"
        )
        files = results_of([name], results)
        if files:
            write_published_results(shipped_figures(name, files), repo_id, folder)
        return
    names = [known["name"] for known in make_record(folder, source)["measured_as"]]
    write_card(folder, source, results_of(names, results), repo_id=repo_id)


def is_made_of(folder: Path, source: Path) -> bool:
    """Return whether an export has a card and the weights of a training."""
    published = PublishedFolder(folder)
    return (folder / PublishedFolder.CARD).is_file() and published.is_made_of(source)


def release(organisation: str, runs: Path, output: Path, results: Path, send: bool) -> list[str]:
    """Publish everything at hand, and return why some could not be."""
    problems = []
    sources: list[tuple[str, Path | None]] = [(name, None) for name in shipped()]
    for name, source in [*sources, *trained(runs)]:
        repo_id = f"{organisation}/{name}"
        print(f"== {repo_id}")
        try:
            prepare(name, source, output / name, repo_id, results)
            publish(output / name, repo_id, dry_run=not send)
        except (InputError, ConnectionError) as error:
            problems.append(f"{repo_id}: {error}")
    return problems


def main() -> int:
    """Publish, and list what could not be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("organisation", help="user or organisation on the Hub")
    parser.add_argument("--runs", type=Path, default="runs", help="folder of trainings")
    parser.add_argument("--output", type=Path, default="runs/release", help="folder of exports")
    parser.add_argument("--results", type=Path, default="docs/results", help="measured figures")
    parser.add_argument("--send", action="store_true", help="publish; otherwise only list")
    options = parser.parse_args()
    problems = release(
        options.organisation, options.runs, options.output, options.results, options.send
    )
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
