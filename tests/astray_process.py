"""One of several processes; the weights of one are not finite. Each process that stops leaves a file."""

import sys
from pathlib import Path

import pytest
import torch
from accelerate import PartialState

from hf_dialemb.errors import InputError
from hf_dialemb.training.run import check_finite

state, model = PartialState(cpu=True), torch.nn.Linear(2, 2)
check_finite(model, [])
with torch.no_grad():
    model.weight[0, 0] = torch.nan if state.process_index == 1 else 0.0
with pytest.raises(InputError, match="weight holds numbers that are not finite"):
    check_finite(model, [])
Path(sys.argv[1], str(state.process_index)).touch()
