"""Train methods for three steps by plain gradient descent, and print the mean losses of each over
all processes.

Alone, the process learns from the whole batch; of several, each learns from its part, and the model
is sharded layer by layer as Trainer's default wrapping does it. The arguments are a JSON list of
jobs, each a method, the folder of its backbone and its settings, and a folder for outputs.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import TrainingArguments

from hf_dialemb.data import load_dialogues
from hf_dialemb.data.labels import unified_dialogue
from hf_dialemb.methods import get_method
from hf_dialemb.training.data import Collator, make_examples
from hf_dialemb.training.settings import RunArguments

PROCESSES = int(os.environ.get("WORLD_SIZE", "1"))


def losses(
    name: str, backbone: str, settings: dict[str, object], arguments: TrainingArguments
) -> list[float]:
    """Return the mean loss of each step of a method's training."""
    method = get_method(name)
    dialogues = load_dialogues("sample", None, "dev")[:16]
    dialogues = (
        [unified_dialogue(dialogue) for dialogue in dialogues] if method.labelled else dialogues
    )
    torch.manual_seed(0)
    model, tokenizer = method.model_class.build(
        None if method.from_scratch else backbone, dialogues, 0.0, **settings
    )
    examples = make_examples(
        method, dialogues, model.config, arguments, RunArguments(method=name), lambda line: None
    )
    rows = range(8)
    if PROCESSES > 1:
        mesh = init_device_mesh("cpu", (PROCESSES,))
        rows = rows[dist.get_rank() :: PROCESSES]
        for module in model.modules():
            if type(module).__name__ in set(model._no_split_modules or ()):
                fully_shard(module, mesh=mesh)
        fully_shard(model, mesh=mesh)
    batch = Collator(method, tokenizer, model.config)([examples.example(0, row) for row in rows])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    model.train()
    values = []
    for _ in range(3):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        value = loss.detach().clone()
        if PROCESSES > 1:
            dist.all_reduce(value)
        values.append(value.item() / PROCESSES)
    return values


torch.set_num_threads(1)
given = TrainingArguments(sys.argv[2], report_to="none", use_cpu=True)
measured = [losses(*job, given) for job in json.loads(sys.argv[1])]
if int(os.environ.get("RANK", "0")) == 0:
    sys.stdout.write(f"{json.dumps(measured)}\n")
if PROCESSES > 1:
    dist.destroy_process_group()
