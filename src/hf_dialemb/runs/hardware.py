"""What machine a program runs on, in one line for reports."""

import os
import platform
from pathlib import Path


def describe_hardware(gpu: bool) -> str:
    """Names the machine."""
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
