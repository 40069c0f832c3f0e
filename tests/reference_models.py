"""Plain programs for what the package does faster.

Contrastive losses, and PLATO's own forward pass.
"""

import math
import struct
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def dse(queries: Tensor, responses: Tensor, temperature: float, form: str) -> float:
    """DSE's loss of M pairs of unit vectors.

    Equations 1 to 3, or its program's form, or NT-Xent.
    """
    rows = [*queries, *responses]
    count, total = len(rows), 0.0
    for i in range(count):
        partner = (i + count // 2) % count
        e = [math.exp(float(rows[i] @ row) / temperature) for row in rows]
        negatives = [j for j in range(count) if j not in (i, partner)]
        mean = sum(e[j] for j in negatives) / len(negatives)
        if form == "plain":
            denominator = e[partner] + sum(e[j] for j in negatives)
        elif form == "hard":
            denominator = e[partner] + sum(e[j] / mean * e[j] for j in negatives)
        else:
            denominator = sum(
                math.exp(e[j] / mean * float(rows[i] @ rows[j]) / temperature)
                for j in range(count)
                if j != i
            )
        total -= math.log(e[partner] / denominator)
    return total / count


def dialog2flow(
    anchors: Tensor, positives: Tensor, targets: list[list[float]], temperature: float
) -> float:
    """Dialog2Flow's loss of N pairs of unit vectors.

    Equation 5 with the targets of 1 or 4, in both directions.
    """
    total, count = 0.0, len(anchors)
    for a, b in ((anchors, positives), (positives, anchors)):
        for i in range(count):
            z = sum(math.exp(float(a[i] @ row) / temperature) for row in b)
            for j in range(count):
                total -= targets[i][j] * math.log(math.exp(float(a[i] @ b[j]) / temperature) / z)
    return total / (2 * count)


def soft_targets(labels: Tensor, temperature: float) -> list[list[float]]:
    """Equation 4, of N unit vectors of labels."""
    e = [[math.exp(float(first @ other) / temperature) for other in labels] for first in labels]
    return [[value / sum(row) for value in row] for row in e]


def unit(rows: int, width: int, seed: int) -> Tensor:
    """Random unit vectors in float64."""
    vectors = torch.randn(
        rows, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )
    return torch.nn.functional.normalize(vectors)


HEAD = 64
PADDLE = "Model/UnifiedTransformer_0"


def random_state(
    words: int, layers: int = 2, width: int = 128, inner: int = 256
) -> dict[str, torch.Tensor]:
    """The state dictionary of the port to torch, drawn at random."""
    tables = {"token": words, "pos": 512, "type": 2, "turn": 16}
    shapes = {
        **{f"embedder.{name}_embedding.weight": (rows, width) for name, rows in tables.items()},
        "embed_layer_norm.weight": (width,),
        "embed_layer_norm.bias": (width,),
        "mask_embed": (1, 1, width),
        "latent_embeddings": (20, width),
        "post_network.weight": (20, width),
        "discriminator.0.weight": (1, width),
        "discriminator.0.bias": (1,),
        "bow_predictor.weight": (words, width),
    }
    for number in range(layers):
        block = {
            "attn.linear_qkv": (3 * width, width),
            "attn.linear_out": (width, width),
            "ff.linear_hidden.0": (inner, width),
            "ff.linear_out": (width, inner),
        }
        for name, shape in block.items():
            shapes[f"layers.{number}.{name}.weight"] = shape
            shapes[f"layers.{number}.{name}.bias"] = shape[:1]
        for name in ("attn_norm", "ff_norm"):
            shapes[f"layers.{number}.{name}.weight"] = shapes[f"layers.{number}.{name}.bias"] = (
                width,
            )
    generator = torch.Generator().manual_seed(4)
    return {name: torch.randn(shape, generator=generator) * 0.2 for name, shape in shapes.items()}


def paddle_arrays(state: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """The same parameters under paddle's names: fully connected weights lie the other way round."""
    table = {"token": "0", "pos": "1", "type": "2", "turn": "3"}
    part = {"weight": "w_0", "bias": "b_0"}
    arrays = {f"{PADDLE}.sequence_mask": np.tri(512, dtype=np.float32)}
    for name, value in state.items():
        words, array = name.split("."), value.numpy()
        if words[0] == "embedder":
            arrays[f"{PADDLE}/Embedder_0/Embedding_{table[words[1].split('_')[0]]}.w_0"] = array
        elif words[0] == "embed_layer_norm":
            arrays[f"{PADDLE}/LayerNorm_0.{part[words[1]]}"] = array
        elif words[0] == "layers":
            block = f"{PADDLE}/TransformerBlock_{words[1]}"
            module = {
                "attn.linear_qkv": "MultiheadAttention_0/FC_0",
                "attn.linear_out": "MultiheadAttention_0/FC_1",
                "ff.linear_hidden.0": "FeedForward_0/FC_0",
                "ff.linear_out": "FeedForward_0/FC_1",
                "attn_norm": "LayerNorm_0",
                "ff_norm": "LayerNorm_1",
            }[".".join(words[2:-1])]
            arrays[f"{block}/{module}.{part[words[-1]]}"] = array.T.copy()
        elif len(words) == 1:
            arrays[f"{PADDLE}.{name}"] = array
        else:
            arrays[f"{PADDLE}.{words[0]}/FC_0.{part[words[-1]]}"] = array.T.copy()
    return arrays


def write_paddle(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Writes what `fluid.save_dygraph` of paddle 1.6 writes."""

    def varint(value: int) -> bytes:
        return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + varint(value // 128)

    with path.open("wb") as stream:
        stream.write(bytes(256) + b"TNUM" + struct.pack("<Q", len(arrays)))
        for name, array in arrays.items():
            message = b"\x08\x05" + b"".join(b"\x10" + varint(size) for size in array.shape)
            stream.write(
                b"NAME" + struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", 0)
            )
            stream.write(struct.pack("<i", len(message)) + message + array.astype("<f4").tobytes())


def forward(state: dict[str, torch.Tensor], ids, mask, positions, types, turns) -> torch.Tensor:
    """The last layer's vectors, (B, L, D).

    Post-norm blocks, a fused projection, masked weights set to zero.
    """
    width = state["embed_layer_norm.weight"].shape[0]
    count = len({name.split(".")[1] for name in state if name.startswith("layers.")})

    def norm(values, name):
        return torch.nn.functional.layer_norm(
            values, (width,), state[f"{name}.weight"], state[f"{name}.bias"], 1e-6
        )

    def linear(values, name):
        return values @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    table = {
        name: state[f"embedder.{name}_embedding.weight"]
        for name in ("token", "pos", "type", "turn")
    }
    hidden = (
        table["token"][ids] + table["pos"][positions] + table["type"][types] + table["turn"][turns]
    )
    hidden = norm(hidden, "embed_layer_norm")
    closed = (mask.unsqueeze(1) * mask.unsqueeze(2) == 0).unsqueeze(1)  # (B, 1, L, L)
    for number in range(count):
        name = f"layers.{number}"
        query, key, value = (
            part.unflatten(-1, (-1, HEAD)).transpose(1, 2)
            for part in linear(hidden, f"{name}.attn.linear_qkv").split(width, dim=-1)
        )
        scores = (query @ key.transpose(2, 3) * HEAD**-0.5).masked_fill(closed, -1e10)
        attended = (scores.softmax(-1).masked_fill(closed, 0) @ value).transpose(1, 2).flatten(2)
        hidden = norm(hidden + linear(attended, f"{name}.attn.linear_out"), f"{name}.attn_norm")
        inner = linear(hidden, f"{name}.ff.linear_hidden.0")
        inner = 0.5 * inner * (1 + torch.erf(inner / 2**0.5))
        hidden = norm(hidden + linear(inner, f"{name}.ff.linear_out"), f"{name}.ff_norm")
    return hidden


def embed(state: dict[str, torch.Tensor], dialogue, words) -> np.ndarray:
    """dial2vec's embedding: the last 15 turns, 512 tokens of them, the sum of the speakers' means.

    PLATO's state has the user as type 1 and the assistant as 0; ``words`` gives a text's WordPiece
    ids.
    """
    kept = dialogue.turns[-15:]
    rows = []
    for index, turn in enumerate(kept):
        kind = {"user": 1, "assistant": 0}[turn.role]
        tokens = [*words(turn.content), 2]  # [unused1] ends an utterance
        rows += [(token, place, kind, len(kept) - index) for place, token in enumerate(tokens)]
    rows = rows[:512] + [(0, 0, 0, 0)] * (512 - len(rows))
    ids, positions, types, turns = torch.tensor(rows).T.unsqueeze(1)
    mask = (turns > 0).float()
    hidden = forward(state, ids, mask, positions, types, turns)[0]
    speakers = [(mask * (types == kind))[0] for kind in (0, 1)]
    return sum((hidden * item[:, None]).sum(0) / (item.sum() + 1e-6) for item in speakers).numpy()
