"""Convert checkpoints of PLATO's full size (132,377,089 random parameters) in each form that its
programs save.

Each conversion runs in a process of its own, so that its peak memory is its own; a further process
loads the result. Every key must have been placed or dropped on purpose, and rows of two tensors are
compared with what was written.

    python benchmarks/conversion.py
    python benchmarks/conversion.py --folder /tmp/plato --output conversion.json

Exit code 1: a key was not placed, or a conversion took 4 GiB or more.
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from hardware import describe_machine
from processes import answer_of

WORDS, WIDTH, INNER, LAYERS = 30522, 768, 3072, 12
PARAMETERS = 132_377_089
MOST_GIB = 4.0
ROOT = "Model/UnifiedTransformer_0"

CONVERT = """
import json, re, sys, time
from pathlib import Path
start = time.perf_counter()
from hf_dialemb.papers.convert import convert
imported = time.perf_counter()
source, vocabulary, output = map(Path, sys.argv[1:])
lines = []
convert(source, output, vocabulary=vocabulary, report=lines.append)
last = lines[-1]
done = time.perf_counter()
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps({"imports": imported - start, "conversion": done - imported, "peak_gib": peak / 2**20, "sum": last}))
"""

LOAD = """
import json, re, sys, time
from pathlib import Path
import hf_dialemb
from transformers import AutoModel
start = time.perf_counter()
model = AutoModel.from_pretrained(sys.argv[1])
loaded = time.perf_counter()
assert all(value.isfinite().all() for value in model.state_dict().values())
encoder = model.encoder
rows = encoder.embeddings.word_embeddings.weight[1234], encoder.encoder.layer[-1].attention.self.value.weight[5]
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps({"loading": loaded - start, "peak_gib": peak / 2**20, "rows": [row.tolist() for row in rows]}))
"""


def parameters() -> Iterator[tuple[str, str, tuple[int, ...], bool]]:
    """Yield each parameter's name in torch and in paddle, its shape in torch, and whether paddle's
    is transposed.
    """
    tables = {"token": WORDS, "pos": 512, "type": 2, "turn": 16}
    for number, (name, rows) in enumerate(tables.items()):
        yield (
            f"embedder.{name}_embedding.weight",
            f"/Embedder_0/Embedding_{number}.w_0",
            (rows, WIDTH),
            False,
        )
    yield "embed_layer_norm.weight", "/LayerNorm_0.w_0", (WIDTH,), False
    yield "embed_layer_norm.bias", "/LayerNorm_0.b_0", (WIDTH,), False
    for number in range(LAYERS):
        linear = {
            "attn.linear_qkv": ("MultiheadAttention_0/FC_0", (3 * WIDTH, WIDTH)),
            "attn.linear_out": ("MultiheadAttention_0/FC_1", (WIDTH, WIDTH)),
            "ff.linear_hidden.0": ("FeedForward_0/FC_0", (INNER, WIDTH)),
            "ff.linear_out": ("FeedForward_0/FC_1", (WIDTH, INNER)),
        }
        block = f"/TransformerBlock_{number}"
        for name, (theirs, shape) in linear.items():
            yield f"layers.{number}.{name}.weight", f"{block}/{theirs}.w_0", shape, True
            yield f"layers.{number}.{name}.bias", f"{block}/{theirs}.b_0", shape[:1], False
        for name, theirs in (("attn_norm", "LayerNorm_0"), ("ff_norm", "LayerNorm_1")):
            yield f"layers.{number}.{name}.weight", f"{block}/{theirs}.w_0", (WIDTH,), False
            yield f"layers.{number}.{name}.bias", f"{block}/{theirs}.b_0", (WIDTH,), False
    yield "mask_embed", ".mask_embed", (1, 1, WIDTH), False
    yield "latent_embeddings", ".latent_embeddings", (20, WIDTH), False
    yield "post_network.weight", ".post_network/FC_0.w_0", (20, WIDTH), True
    yield "discriminator.0.weight", ".discriminator/FC_0.w_0", (1, WIDTH), True
    yield "discriminator.0.bias", ".discriminator/FC_0.b_0", (1,), False
    yield "bow_predictor.weight", ".bow_predictor/FC_0.w_0", (WORDS, WIDTH), True


def values() -> Iterator[tuple[str, str, np.ndarray, bool]]:
    """Draw the parameters, the same every time."""
    generator = np.random.default_rng(0)
    for ours, theirs, shape, turned in parameters():
        yield (
            ours,
            ROOT + theirs,
            generator.standard_normal(shape, dtype=np.float32) * np.float32(0.02),
            turned,
        )


def write_torch(path: Path) -> None:
    """Write ``PLATO.pt``."""
    import torch

    torch.save({name: torch.from_numpy(array) for name, _, array, _ in values()}, path)


def write_pickle(path: Path) -> None:
    """Write names and arrays as a pickle."""
    arrays = {
        name: np.ascontiguousarray(array.T) if turned else array
        for _, name, array, turned in values()
    }
    with path.open("wb") as stream:
        pickle.dump(arrays, stream, protocol=4)


def write_paddle(path: Path) -> None:
    """Write the binary form of paddle 1.6."""

    def varint(value: int) -> bytes:
        return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + varint(value // 128)

    with path.open("wb") as stream:
        stream.write(bytes(256) + b"TNUM" + struct.pack("<Q", sum(1 for _ in parameters())))
        for _, name, array, turned in values():
            array = array.T if turned else array
            message = b"\x08\x05" + b"".join(b"\x10" + varint(size) for size in array.shape)
            stream.write(
                b"NAME" + struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", 0)
            )
            stream.write(struct.pack("<i", len(message)) + message + array.astype("<f4").tobytes())


FORMS = {
    "paddle 1.6 (PLATO.pdparams)": ("PLATO.pdparams", write_paddle),
    "pickle of arrays (PLATO.np)": ("PLATO.np", write_pickle),
    "torch (PLATO.pt)": ("PLATO.pt", write_torch),
}


def written_rows() -> list[list[float]]:
    """Return a row of the token table, and a row of the last layer's projection to values, as
    written.
    """
    places = {
        "embedder.token_embedding.weight": 1234,
        f"layers.{LAYERS - 1}.attn.linear_qkv.weight": 2 * WIDTH + 5,
    }
    return [array[places[name]].tolist() for name, _, array, _ in values() if name in places]


def measure(folder: Path) -> list[dict[str, object]]:
    """Convert every form, one after the other."""
    vocabulary = folder / "vocab.txt"
    special = [
        "[PAD]",
        *(f"[unused{index}]" for index in range(99)),
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    ]
    words = [*special, *(f"word{index}" for index in range(WORDS - len(special)))]
    vocabulary.write_text("\n".join(words), encoding="utf-8")
    expected, rows = written_rows(), []
    for form, (name, write) in FORMS.items():
        source, output = folder / name, folder / f"{name}.converted"
        write(source)
        start = time.perf_counter()
        converted = answer_of("-c", CONVERT, source, vocabulary, output)
        loaded = answer_of("-c", LOAD, output)
        counts = {
            what: int(number)
            for number, what in re.findall(r"(\d+) (?:keys )?(\w+)", str(converted["sum"]))
        }
        rows.append(
            {
                "form": form,
                "mib": source.stat().st_size / 2**20,
                "seconds": time.perf_counter() - start,
                "conversion_seconds": converted["conversion"],
                "conversion_peak_gib": converted["peak_gib"],
                "loading_seconds": loaded["loading"],
                "loading_peak_gib": loaded["peak_gib"],
                "values_as_written": loaded["rows"] == expected,
                **counts,
            }
        )
        source.unlink()
        for file in output.iterdir():
            file.unlink()
        output.rmdir()
    vocabulary.unlink()
    return rows


def main() -> int:
    """Measure, print the table and the verdict, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the checkpoints are written, about 1.1 GB (default: temporary)",
    )
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    count = sum(int(np.prod(shape)) for _, _, shape, _ in parameters())
    print(f"{count:,} parameters; PLATO has {PARAMETERS:,}")
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        rows = measure(Path(temporary))
    table = [
        f"{'form':<30} {'keys':>5} {'dropped':>8} {'missing':>8} {'convert s':>10} {'peak GiB':>9} "
        f"{'load s':>7}"
    ]
    table += [
        f"{row['form']:<30} {row['used']:>5} {row['dropped']:>8} {row['missing']:>8} "
        f"{row['conversion_seconds']:>10.1f} {row['conversion_peak_gib']:>9.2f} "
        f"{row['loading_seconds']:>7.2f}"
        for row in rows
    ]
    print("\n".join(table))
    if options.output:
        record = {"machine": describe_machine(), "parameters": count, "forms": rows, "table": table}
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    whole = all(
        row["missing"] == row["unexpected"] == 0 and row["values_as_written"] for row in rows
    )
    small = all(row["conversion_peak_gib"] < MOST_GIB for row in rows)
    print(
        f"every key placed: {'yes' if whole else 'NO'}; below {MOST_GIB:g} GiB: "
        f"{'yes' if small else 'NO'}"
    )
    return 0 if whole and small else 1


if __name__ == "__main__":
    sys.exit(main())
