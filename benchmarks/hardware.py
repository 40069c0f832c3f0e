"""Describes the machine that a benchmark runs on; used by the other programs of this folder."""

import os
import platform
import re
from pathlib import Path

_EXTENSIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")


def describe_machine() -> dict[str, object]:
    """Return the processor's name, what it can do for bfloat16, its usable cores and the memory."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.is_file() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^flags\s*:\s*(.+)$", text, re.MULTILINE)
    known = set(flags.group(1).split()) if flags else set()
    return {
        "processor": model.group(1) if model else platform.processor() or "unknown",
        "extensions": {name: name in known for name in _EXTENSIONS},
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": round(read_memory("MemTotal") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def read_memory(name: str) -> int:
    """Return an entry of /proc/meminfo, such as ``MemAvailable``, in bytes.

    0 where there is no such file.
    """
    meminfo = Path("/proc/meminfo")
    text = meminfo.read_text() if meminfo.is_file() else ""
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0
