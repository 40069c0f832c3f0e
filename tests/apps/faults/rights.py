"""Files and folders without rights, for a child that has given up what lets the superuser pass."""

import ctypes
import os
import random
import tempfile
from pathlib import Path

import cases
from healthy import COMMANDS, LONG

MODES = {"no rights": 0o000, "not to be written": 0o555, "not to be entered": 0o444}


def draw(name: str, draw: random.Random) -> tuple[str, str] | None:
    """Chooses a file or folder that is read or written, and which rights are missing."""
    if name in LONG:
        return None
    files = cases.files_of(name)
    places = [*files, *{parent for file in files for parent in file.parents}]
    place = draw.choice([*map(str, sorted(places)), *["out", "cache", "temporary"] * 3])
    return place, draw.choice([*MODES])


def words(name: str, place: str, fault: str) -> list[str]:
    """Takes the rights away."""
    if place in ("cache", "temporary"):
        Path(place).mkdir()
    Path(place).chmod(MODES[fault])
    return COMMANDS[name].split()


def inside(place: str, fault: str) -> None:
    """Gives up all capabilities: rights count for the superuser too."""
    from huggingface_hub import constants

    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if os.geteuid() == 0 and ctypes.CDLL(None).capset(header, nothing) != 0:
        raise OSError("the capabilities stay")
    if place == "temporary":
        tempfile.tempdir = os.environ["TMPDIR"] = str(Path(place).absolute())
    if place == "cache":
        os.environ["HF_HOME"] = constants.HF_HOME = str(Path(place).absolute())
