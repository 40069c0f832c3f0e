"""Checkpoints that bring code, which must not run, and weights that are damaged."""

import json
import os
import pickle
import random
from pathlib import Path

import cases
import torch
from healthy import COMMANDS, LONG
from safetensors.torch import load_file, save_file

CODE = "open({path!r}, 'w').close()\nclass Model:\n    pass\nConfig = Tokenizer = Model\n"
TEMPLATE = (
    "{{{{ cycler.__init__.__globals__.os.system('touch {path}') }}}}{{{{ "
    "''.__class__.__mro__[1].__subclasses__() }}}}"
)


class _Runs:
    def __reduce__(self):
        return os.system, (f"touch {Path('ran').absolute()}",)


def _auto_map(folder: Path) -> None:
    classes = {f"Auto{kind}": "evil.Model" for kind in ("Config", "Model", "ModelForCausalLM")}
    for name, given in (
        ("config.json", classes),
        ("tokenizer_config.json", {"AutoTokenizer": ["evil.Tokenizer"] * 2}),
    ):
        if (folder / name).is_file():
            record = json.loads((folder / name).read_text())
            (folder / name).write_text(
                json.dumps({**record, "auto_map": given, "model_type": "evil"})
            )


def _modules(folder: Path) -> None:
    types = [
        {"idx": at, "name": str(at), "path": "", "type": kind}
        for at, kind in enumerate(("evil.Model", "evil"))
    ]
    (folder / "modules.json").write_text(json.dumps(types))


def _pickles(folder: Path) -> None:
    for file in folder.glob("*.safetensors"):
        file.unlink()
    names = (
        "pytorch_model.bin",
        "model.pkl",
        "training_args.bin",
        "optimizer.pt",
        "rng_state.pth",
        "scheduler.pt",
    )
    for name in names:
        (folder / name).write_bytes(pickle.dumps(_Runs()))


def _template(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(TEMPLATE.format(path=Path("ran").absolute()))


BRINGS = {"auto_map": _auto_map, "modules": _modules, "pickles": _pickles, "template": _template}
CHANGES = {
    "NaN": lambda value: torch.full_like(value, torch.nan),
    "infinite": lambda value: torch.full_like(value, -torch.inf),
    "huge": lambda value: torch.full_like(value, 1e30),
    "longer": lambda value: torch.cat([value, value]),
    "flat": lambda value: value.reshape(-1)[:-1],
    "none": lambda value: value[:0],
    "whole numbers": lambda value: value.long(),
    "missing": None,
}


def draw(name: str, draw: random.Random) -> tuple[str, str] | None:
    """Chooses a model's folder for code, or one of its files of weights and what is wrong with a
    tensor."""
    files = [] if name in LONG else cases.files_of(name)
    folders = sorted(
        {str(file.parent) for file in files if file.name in ("config.json", "modules.json")}
    )
    tensors = [str(file) for file in files if file.suffix == ".safetensors"]
    if folders and draw.random() < 0.5:
        return draw.choice(folders), draw.choice([*BRINGS])
    return (
        (draw.choice(tensors), f"{draw.choice([*CHANGES])} {draw.random():.2f}")
        if tensors
        else None
    )


def words(name: str, place: str, fault: str) -> list[str]:
    """Does the damage."""
    if fault in BRINGS:
        for file in ("evil.py", "modeling_evil.py", "__init__.py"):
            Path(place, file).write_text(CODE.format(path=str(Path("ran").absolute())))
        BRINGS[fault](Path(place))
        return COMMANDS[name].split()
    change, at = fault.rsplit(" ", 1)
    tensors = load_file(place)
    chosen = sorted(tensors)[int(float(at) * 0.99 * len(tensors))]
    value = tensors.pop(chosen)
    if CHANGES[change] is not None:
        value = value.float() if change in ("NaN", "infinite", "huge") else value
        tensors[chosen] = CHANGES[change](value).contiguous()
    save_file(tensors, place, {"format": "pt"})
    return COMMANDS[name].split()
