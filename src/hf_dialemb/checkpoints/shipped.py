"""The encoders that come with the package, by name: tables of word vectors, and adapters over a backbone."""

import json
import shutil
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..hashing import json_key, sha256

FOLDER = Path(__file__).parents[1] / "weights"
RECORD = "weights.json"
"""The file in each folder with the training corpora, the digests of its files, and of its backbone's weights."""

_REINSTALL = "install hf_dialemb again"


def shipped() -> list[str]:
    """Return the names of the encoders that come with the package."""
    return sorted(map(attrgetter("parent.name"), FOLDER.glob(f"*/{RECORD}")))


def shipped_record(name: str) -> dict[str, Any]:
    """Read the record of an encoder that comes with the package."""
    try:
        record: dict[str, Any] = json.loads((FOLDER / name / RECORD).read_text(encoding="utf-8"))
        if not {"files", "backbone", "backbone_sha256"} <= record.keys():
            raise ValueError("a field is missing")
        if not isinstance(record["backbone"], str | None):
            raise ValueError("field backbone is no name")
        return {**record, "files": dict(record["files"])}
    except (OSError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{FOLDER / name / RECORD}: cannot be read ({error}); {_REINSTALL}") from None


def shipped_folder(name: str, find: Callable[[str], str]) -> Path:
    """Return the folder of an encoder; ``find`` resolves the name of its backbone (see `weights`)."""
    folder = FOLDER / name
    if name not in shipped():
        raise InputError(f"weights: got {name!r}, expected one of {', '.join(shipped())}; check the name")
    record = shipped_record(name)
    for file, digest in record["files"].items():
        if not (folder / file).is_file() or sha256(folder / file) != digest:
            raise InputError(f"{name}: the file {file} that came with the package is missing or damaged; {_REINSTALL}")
    return folder if record["backbone"] is None else _merged(name, folder, record, find)


def _merged(name: str, folder: Path, record: dict[str, Any], find: Callable[[str], str]) -> Path:
    """Add an adapter to its backbone, unless that was done before."""
    from huggingface_hub.constants import HF_HOME
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]

    made = Path(HF_HOME) / "hf_dialemb" / f"{name}-{json_key(record)[:16]}"
    if (made / "model.safetensors").is_file():
        return made
    backbone = weights_file(find(record["backbone"]))
    if sha256(backbone) != record["backbone_sha256"]:
        raise InputError(
            f"{name}: got other weights of {record['backbone']} than it was made for; fetch that model again"
        )
    new = made.with_name(f".{made.name}")  # one name for all, so that what a killed process left is replaced
    try:
        made.parent.mkdir(parents=True, exist_ok=True)
        with WeakFileLock(f"{new}.lock"):
            if not (made / "model.safetensors").is_file():  # by another process, meanwhile
                shutil.rmtree(new, ignore_errors=True)
                shutil.copytree(folder, new, ignore=shutil.ignore_patterns("adapter_*", RECORD))
                try:
                    _add(backbone, folder / "adapter_model.safetensors", new / "model.safetensors")
                    new.replace(made)
                finally:
                    shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        raise InputError(
            f"{name}: its weights cannot be written to {made.parent} ({error.strerror or error}); free space, or set "
            "HF_HOME to a folder that can be written"
        ) from None
    return made


def weights_file(model: str) -> Path:
    """Return the weights file of a folder or of a Hub id."""
    from huggingface_hub import hf_hub_download

    folder = Path(model)
    return folder / "model.safetensors" if folder.is_dir() else Path(hf_hub_download(model, "model.safetensors"))


def _add(backbone: Path, adapter: Path, output: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors, added = load_file(backbone), load_file(adapter)
    before, after = "base_model.model.", ".lora_A.weight"
    for key in [key for key in added if key.endswith(after)]:
        layer = key.removeprefix(before).removesuffix(after)
        up, down = added[f"{before}{layer}.lora_B.weight"].float(), added[key].float()
        tensors[f"{layer}.weight"] = tensors[f"{layer}.weight"] + up @ down
    save_file(tensors, output, metadata={"format": "pt"})
