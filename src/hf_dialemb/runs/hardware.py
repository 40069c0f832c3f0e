"""What machine a program runs on, in one line for reports, and how it is used."""

import contextlib
import os
import platform
from pathlib import Path

SPINS = 4000  # how often a thread that waits looks for work before it sleeps, some tens of microseconds in all


def describe_hardware(gpu: bool) -> str:
    """Name the machine."""
    if gpu:
        import torch

        count = torch.cuda.device_count()
        return f"{count} x {torch.cuda.get_device_name()}"
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass  # not Linux
    return f"{model}, {os.cpu_count()} cores"


def let_waiting_threads_sleep() -> None:
    """Let threads that wait for one another soon sleep: spinning takes shared cores from who works.

    Threads that sleep at once wake late: a step of many short products then takes up to half as long again on an idle
    machine. Some `SPINS` look for work cost it a twentieth, and keep two fifths of its rate beside another process. It
    is for the start of a program, as torch's threads read it when torch is imported; results stay bit for bit.
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
