"""The machine that a program runs on: its name, and settings that make good use of it."""

import contextlib
import os
import platform
import re
from pathlib import Path

from ..errors import InputError


def describe_hardware(gpu: bool) -> str:
    """Name the GPUs, such as ``"1 x NVIDIA H100"``, or without ``gpu`` the processor."""
    if gpu:
        import torch

        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    info = Path("/proc/cpuinfo")  # on Linux only
    names = re.findall(
        r"^model name\s*: (.+)$", info.read_text("utf-8") if info.is_file() else "", re.MULTILINE
    )
    return f"{[*names, platform.processor() or platform.machine()][0]}, {os.cpu_count()} cores"


def multiplies_bfloat16() -> bool:
    """Return whether the processor multiplies bfloat16 itself, in a third of float32's time."""
    import torch

    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def bfloat16_where_faster() -> contextlib.AbstractContextManager[object]:
    """Return a context in which models compute in bfloat16, if the CPU multiplies that itself.

    It is for many texts whose vectors are not stored, as the vectors differ a little from those of
    float32.
    """
    import torch

    return (
        torch.autocast("cpu", torch.bfloat16) if multiplies_bfloat16() else contextlib.nullcontext()
    )


def checked_device(given: object) -> str:
    """Return the device, or the accelerator of this machine where none is given.

    Refuse one that is not there.
    """
    import torch

    there = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    known = ["cpu"] if there is None else ["cpu", there.type]
    device = str(given or known[-1])  # torch.device("cpu") too
    if device.partition(":")[0] not in known:
        raise InputError(
            f"device: got '{device}', but this machine has {' and '.join(known)}; leave it out"
        )
    return device
