"""How an encoder comes to lie in the package: the smallest files of it, with their digests, and its card."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ..evaluation.results.learnt import learnt_sets
from ..models.backbones import resolve_backbone
from ..models.errors import InputError
from ..models.shipped import FOLDER, RECORD, sha256, weights_file
from ..runs.files import write_json_atomically
from ..runs.folder import RunFolder
from .card.shipped_card import shipped_card
from .export import load_checkpoint, write_checkpoint
from .forms.adapter import FOLDER as ADAPTER
from .published_folder import PublishedFolder, appearing_whole


def ship(run: Path, name: str, results: Sequence[Path], output: Path = FOLDER) -> Path:
    """Writes the folder of an encoder that comes with the package, into the folder of all of them.

    ``run`` is what `hf_dialemb.merge` wrote with a rank, or `hf_dialemb.apps.distil.distil`; an InputError refuses one
    that has no small form. Results files are for the card.
    """
    with appearing_whole(output / name) as folder:
        backbone = None
        if (run / ADAPTER).is_dir():
            backbone = str(RunFolder(run).settings()["backbone"])
            write_checkpoint(*load_checkpoint(str(run)), folder)
            for unused in (PublishedFolder.WEIGHTS, "training_args.bin"):
                (folder / unused).unlink(missing_ok=True)
            for adapter in (run / ADAPTER).glob("adapter_*"):
                shutil.copy(adapter, folder)
        elif (run / PublishedFolder.STATIC).is_dir():
            shutil.copytree(run / PublishedFolder.STATIC, folder / PublishedFolder.STATIC)
            for file in (PublishedFolder.MODULES, PublishedFolder.SENTENCE_CONFIG):
                shutil.copy(run / file, folder)
        else:
            raise InputError(f"{run}: got a run without an adapter or a table; merge with --rank")
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        (folder / PublishedFolder.CARD).write_text(shipped_card(run, name, results), encoding="utf-8")
        record = {
            "corpora": ["/".join(each) for each in sorted(learnt_sets(RunFolder(run).settings()))],
            "backbone": backbone,
            "backbone_sha256": None if backbone is None else sha256(weights_file(resolve_backbone(backbone))),
            "files": {file.relative_to(folder).as_posix(): sha256(file) for file in files},
        }
        write_json_atomically(folder / RECORD, record)
        if (output / name).exists():
            shutil.rmtree(output / name)
    return output / name
