"""What machine a program runs on, in one line for reports, and how it is used."""

import contextlib
import os
import platform
import re
from pathlib import Path

SPINS = 4000  # how often a thread that waits looks for work before it sleeps, some tens of microseconds in all


def describe_hardware(gpu: bool) -> str:
    """Name the machine."""
    if gpu:
        import torch

        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    info = Path("/proc/cpuinfo")  # of Linux
    names = re.findall(r"^model name\s*: (.+)$", info.read_text("utf-8") if info.is_file() else "", re.MULTILINE)
    return f"{[*names, platform.processor() or platform.machine()][0]}, {os.cpu_count()} cores"


def let_waiting_threads_sleep() -> None:
    """Let threads that wait for one another soon sleep: spinning takes shared cores from who works.

    Threads that sleep at once wake late: a step of many short products then takes up to half as long again on an idle
    machine. Some `SPINS` cost it a twentieth, and keep two fifths of its rate beside another process. It is for the
    start of a program: torch reads it when it is imported. Results stay bit for bit.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))
        os.environ.setdefault("KMP_BLOCKTIME", "0")


def multiplies_bfloat16() -> bool:
    """Return whether the processor has products of bfloat16, which take a third of the time of single precision."""
    import torch

    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def quick_reading() -> contextlib.AbstractContextManager[object]:
    """Let encoders read in bfloat16 where that is quicker: for many texts whose vectors are not kept."""
    import torch

    return torch.autocast("cpu", torch.bfloat16) if multiplies_bfloat16() else contextlib.nullcontext()
