"""The processes behind ``dial2vec_step.py``, which starts them; not meant to be run by hand.

``prepare FOLDER OPTIONS`` writes the initial model and one batch into the folder. ``work FOLDER
SIDE`` loads them, then answers each line on standard input with one of JSON on standard output:
``compare`` runs forward and backward without dropout, ``step`` runs and times one training step.
"""

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from official_dial2vec import OfficialDial2Vec, features
from processes import peak_bytes
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoTokenizer, BertConfig, BertModel
from transformers.utils.logging import disable_progress_bar

from hf_dialemb import load_dialogues
from hf_dialemb.methods.dial2vec import Dial2VecConfig, Dial2VecExamples, Dial2VecModel, collate
from hf_dialemb.methods.layout import Truncation
from hf_dialemb.storage.pretrained import resolve_backbone

# The paper's input (section 4.4): the last turns, numbered downwards, positions counted afresh in
# each turn, the first 512 tokens kept.
LAYOUT: dict[str, Any] = {
    "wrapped": False,
    "end_of_utterance": "[unused1]",
    "position_layout": "utterance",
    "turn_order": "descending",
    "max_tokens": 512,
    "whole_turns": False,
}
OBJECTIVE: dict[str, Any] = {
    "window": 10,
    "loss_temperature": 0.2,
    "num_negatives": 9,
    "loss_scale": "official",
}


def prepare(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Write a model with random weights and one batch of real dialogues; return what is in them."""
    torch.manual_seed(0)
    size = {
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "intermediate_size": 256,
    }
    backbone = BertModel(BertConfig(initializer_range=0.01, **(size if options["small"] else {})))
    # Words must outweigh what all tokens share: else every cosine is near 1 and the comparison
    # would see no difference.
    torch.nn.init.normal_(backbone.get_input_embeddings().weight, std=0.1)
    backbone.save_pretrained(folder / "backbone")
    tokenizer = AutoTokenizer.from_pretrained(
        resolve_backbone("sentence-transformers/all-MiniLM-L6-v2")
    )
    tokenizer.save_pretrained(folder / "backbone")
    model, tokenizer = Dial2VecModel.from_backbone(
        str(folder / "backbone"),
        max_turns=15,
        num_turn_embeddings=16,
        frozen_layers=backbone.config.num_hidden_layers // 2,
        **LAYOUT,
        **OBJECTIVE,
    )
    for table in (model.turn_embeddings, model.role_embeddings):
        # zeros would hide a difference in turns or roles
        torch.nn.init.normal_(table.weight, std=0.02)
    model.save_pretrained(folder / "model")

    corpus = "sample" if options["small"] else "sgd/train"
    dialogues = [
        dialogue
        for dialogue in load_dialogues(corpus)
        if len(dialogue.turns) >= 5 and len(dialogue.roles) == 2
    ]
    examples = Dial2VecExamples(dialogues, model.config, 0)
    chosen = np.random.default_rng(0).permutation(len(examples))[: options["dialogues"]]
    truncation = Truncation()
    batch = collate(
        [examples.example(0, int(index)) for index in chosen], tokenizer, model.config, truncation
    )
    torch.save(batch, folder / "batch.pt")
    lengths = batch["attention_mask"].sum(-1).double()
    return {
        "corpus": corpus,
        "sequences": lengths.numel(),
        "mean_length": float(lengths.mean()),
        "maximal_length": int(lengths.max()),
        "truncated": truncation.truncated,
        "torch": torch.__version__,
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


class Worker:
    """One side of the comparison: its model, its optimiser, its copy of the batch.

    Args:
        folder: What `prepare` wrote.
        side: ``program`` (official, ours), ``dropout`` and ``precision`` (float32, bfloat16).
    """

    def __init__(self, folder: Path, side: dict[str, Any]) -> None:
        torch.manual_seed(0)
        self.side = side
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        config = Dial2VecConfig.from_pretrained(folder / "model")
        encoder: Any = config.encoder_config
        encoder.hidden_dropout_prob = encoder.attention_probs_dropout_prob = side["dropout"]
        batch = torch.load(folder / "batch.pt")
        self.model: torch.nn.Module
        if side["program"] == "official":
            official = OfficialDial2Vec(
                encoder,
                config.num_turn_embeddings,
                config.frozen_layers,
                config.window,
                config.loss_temperature,
            )
            # ours also stores what no training step uses
            stored = load_file(folder / "model" / "model.safetensors")
            official.load_state_dict(
                {name: stored[name] for name in official.state_dict()}, strict=True
            )
            self.model = official
            batch = features(batch)
        else:
            ours = Dial2VecModel.from_pretrained(
                folder / "model", config=config, attn_implementation="sdpa"
            )
            ours.freeze_lower_layers()
            self.model = ours
        self.model.to(self.device)
        self.batch = {name: tensor.to(self.device) for name, tensor in batch.items()}
        learning = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(learning, lr=1e-5)

    def parts(self) -> Iterator[tuple[dict[str, Tensor], float]]:
        """Yield the batch, or its dialogues one by one, with their shares."""
        dialogues = len(self.batch["input_ids"])
        step = 1 if self.side["program"] == "official" else dialogues
        for start in range(0, dialogues, step):
            part = {name: tensor[start : start + step] for name, tensor in self.batch.items()}
            yield part, len(part["input_ids"]) / dialogues

    def forward_backward(self) -> tuple[float, Tensor]:
        """Compute the gradients; return the loss and the cosines (B, N, 2)."""
        total = 0.0
        cosines = []
        reduced = self.side["precision"] == "bfloat16"
        for part, share in self.parts():
            with torch.autocast(self.device.type, torch.bfloat16) if reduced else nullcontext():
                if self.side["program"] == "official":
                    loss, similarities = self.model(**part)
                else:
                    output = self.model(**part)
                    loss = output.loss
                    similarities = output.similarities
            (loss * share).backward()
            total += float(loss.detach()) * share
            cosines.append(similarities.detach().float().cpu())
        return total, torch.cat(cosines)

    def compare(self) -> dict[str, Any]:
        """Run without dropout; the loss is multiplied by N, which undoes the program's division."""
        self.model.train(False)
        loss, cosines = self.forward_backward()
        squares = [
            (p.grad.double() ** 2).sum().item()
            for p in self.model.parameters()
            if p.grad is not None
        ]
        self.optimizer.zero_grad(set_to_none=True)
        samples = cosines.shape[1]
        return {
            "loss": loss * samples,
            "gradient_norm": math.sqrt(sum(squares)) * samples,
            "cosines": cosines.tolist(),
        }

    def step(self) -> dict[str, Any]:
        """Run one training step.

        Return its seconds and the highest memory of this process so far.
        """
        self.model.train(True)
        self.synchronize()
        start = time.perf_counter()
        loss, _ = self.forward_backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.synchronize()
        return {
            "seconds": time.perf_counter() - start,
            "loss": loss,
            "peak_bytes": self.peak_bytes(),
        }

    def synchronize(self) -> None:
        """Wait for the accelerator."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def peak_bytes(self) -> int:
        """Return the peak of the accelerator's memory, or of the process's on the CPU."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return peak_bytes()


def main() -> None:
    """Prepare, or serve requests until standard input ends."""
    # whatever a library prints must not disturb the answers
    answers = sys.stdout
    sys.stdout = sys.stderr
    disable_progress_bar()
    with suppress(OSError):
        # when memory runs out, let it be this process that ends
        Path("/proc/self/oom_score_adj").write_text("1000")
    action = sys.argv[1]
    folder = Path(sys.argv[2])
    argument = json.loads(sys.argv[3])
    if action == "prepare":
        print(json.dumps(prepare(folder, argument)), file=answers)
        return
    worker = Worker(folder, argument)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        answer = {"compare": worker.compare, "step": worker.step}[line.strip()]()
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
