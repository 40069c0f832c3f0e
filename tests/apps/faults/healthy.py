"""What the commands read when nothing is wrong, tiny models, runs and data.

And the words of each command.
"""

import argparse
import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np

COMMANDS = {
    "demo": "demo --output out/demo",
    "train": "train --config recipe.yaml --output_dir out/run",
    "train: resumed": "train --config recipe.yaml --output_dir out/begun",
    "evaluate": "evaluate --model dse --corpus calls.jsonl --task domains --seeds 1 --output "
    "out/results.json",
    "embed": "embed --model dse --input calls.jsonl --shard-size 3 --output out/vectors.parquet",
    "embed: sentence": "embed --model sentence --input calls.csv --output out/vectors.parquet",
    "embed: plain": "embed --model bert --input talk.txt --output out/vectors.parquet",
    "embed: shipped": "embed --model table --input calls.jsonl --output out/vectors.parquet",
    "search": "search --model dse --corpus calls.jsonl --vectors vectors.parquet --id #2 --output "
    "out/found.jsonl",
    "search: query": "search --model published/dse --corpus calls.jsonl --query hotel --output "
    "out/found.jsonl",
    "papers benchmark": "papers benchmark --suite mgt --model dse --data-dir data --limit 20 "
    "--seeds 1 --output out/b",
    "model card": "model card --model published/dse --run dse --results results.json --output "
    "out/card.md "
    "--record out/card.json --corpus-licence calls.jsonl=permissive:MIT",
    "corpus list": "corpus list --output out/list.json",
    "corpus check": "corpus check calls.jsonl",
    "corpus convert": "corpus convert calls.csv --output out/calls.jsonl",
    "corpus stats": "corpus stats --corpus calls.jsonl",
    "corpus show": "corpus show --corpus calls.jsonl --id #1",
    "papers corpus unify": "papers corpus unify sim_m --data-dir data --licence research --output "
    "out/unified",
    "corpus leakage": "corpus leakage --train sim_m/train --evaluation sim_m/dev --data-dir data "
    "--output out/o.json",
    "papers ensemble": "papers ensemble --config ranker.yaml --corpus calls.jsonl --dev "
    "other.jsonl --test calls.csv "
    "--output out/m",
    "export": "export --model dse --output out/published",
    "flow": "flow calls.jsonl --model dse --clusters 4 --output out/flow",
    "flow: vectors": "flow calls.jsonl --vectors vectors.npy --clusters 4 --output out/flow",
    "flow next": "flow next --flow flow --input other.jsonl --output out/next.jsonl",
    "flow compare": "flow compare --flow flow --input other.jsonl --output out/comparison",
    "papers convert": "papers convert bert/model.safetensors --vocab bert/vocab.txt --output "
    "out/plato",
    "topics": "topics calls.jsonl --model dse --output out/topics",
    "index": "index calls.jsonl --model dse --output out/calls.lance",
    "model distil": "model distil calls.jsonl --model bert --exclude none --dimensions 8 --passes "
    "1 --output out/table",
    "publish": "publish published/dse --repo-id org/dse --dry-run",
    "rank": "rank --model rankers/baseline --context other.jsonl --candidates responses.txt "
    "--output out/ranked.jsonl",
    "rank: ensemble": "rank --model rankers/multi-granularity --context other.jsonl --candidates "
    "responses.txt",
    "corpus candidates": "corpus candidates --corpus calls.jsonl --num-candidates 4 --output "
    "out/candidates.jsonl",
}
"""A line for each command, and more after a colon; what it names and `build` writes, it reads."""

if find_spec("hf_dialemb.papers") is None:
    COMMANDS = {name: line for name, line in COMMANDS.items() if not line.startswith("papers ")}

LONG = {"demo", "papers ensemble", "papers benchmark", "papers convert", "index"}
"""Minutes even where all is tiny, or threads that no fork survives.

These meet only faults told before any work.
"""

RECIPE = """method: dse
backbone: bert
corpus: calls.jsonl
exclude: [none]
max_tokens: 32
encoding_tokens: 32
min_words: 1
per_device_train_batch_size: 8
max_steps: 3
save_steps: 1
save_total_limit: 2
logging_steps: 1
learning_rate: 1.0e-3
use_cpu: true
disable_tqdm: true
output_dir: out/run
"""
CORPORA = Path(__file__).parents[2] / "corpora_files"


def registered() -> set[str]:
    """The commands of the command line, as they are typed."""
    from hf_dialemb.apps.cli import make_parser

    def leaves(parser: argparse.ArgumentParser, words: list[str]):
        nested = [
            action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
        ]
        if not nested:
            yield " ".join(words)
        for action in nested:
            for name, inner in action.choices.items():
                yield from leaves(inner, [*words, name])

    return set(leaves(make_parser(), []))


def build(run) -> None:
    """Writes everything into the working folder; ``run`` is the command line."""
    from checkpoints import save_bert
    from published_models import measure, publish, train_ensemble
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    from hf_dialemb.data import load_dialogues, write_jsonl
    from hf_dialemb.hashing import sha256

    def done(words: str) -> None:
        assert run(words.split()) == 0, words

    dialogues = load_dialogues("sample", None, "dev")[:18]
    write_jsonl(dialogues[:12], Path("calls.jsonl"))
    write_jsonl(dialogues[12:], Path("other.jsonl"))
    turns = [
        (dialogue.id, turn.role, turn.content)
        for dialogue in dialogues[:6]
        for turn in dialogue.turns
    ]
    rows = [",".join(f'"{cell}"' for cell in row) for row in [("id", "role", "content"), *turns]]
    Path("calls.csv").write_text("\n".join(rows) + "\n")
    Path("talk.txt").write_text("\n".join(f"{role}: {text}" for _, role, text in turns[:6]) + "\n")
    Path("responses.txt").write_text("\n".join(text for _, _, text in turns[:9]) + "\n")
    Path("recipe.yaml").write_text(RECIPE)
    Path("ranker.yaml").write_text("method: dual_encoder\ncorpus: calls.jsonl\nmax_steps: 2\n")
    shutil.copytree(CORPORA / "sim_m", Path("data") / "sim_m")
    Path("bert").mkdir()
    save_bert(dialogues, Path("bert"))
    inner = Transformer("bert")
    SentenceTransformer(
        modules=[inner, Pooling(inner.get_embedding_dimension())], device="cpu"
    ).save("sentence")
    done("train --config recipe.yaml --output_dir dse")
    shutil.copytree("dse", "out/begun")
    for gone in ("training_report.json", "model.safetensors"):
        (Path("out/begun") / gone).unlink()
    train_ensemble(dialogues, Path("rankers"))
    publish(Path("dse"), Path("published/dse"))
    measure(Path("results.json"), "dse", "bert")
    done(
        "model card --model published/dse --run dse --results results.json --corpus-licence "
        "calls.jsonl=permissive:MIT"
    )
    done("flow calls.jsonl --model dse --clusters 4 --output flow")
    done("embed --model dse --input calls.jsonl --output vectors.parquet")
    count = sum(len(dialogue.turns) for dialogue in dialogues[:12])
    np.save("vectors.npy", np.random.default_rng(0).random((count, 6)).astype(np.float32))
    done(COMMANDS["model distil"].replace("out/table", "weights/table"))
    files = [file for file in sorted(Path("weights/table").rglob("*")) if file.is_file()]
    digests = {file.relative_to("weights/table").as_posix(): sha256(file) for file in files}
    record = {"corpora": ["sgd/train"], "backbone": None, "backbone_sha256": None, "files": digests}
    Path("weights/table/weights.json").write_text(json.dumps(record))


def inputs(line: str) -> list[Path]:
    """What a command reads of what `build` wrote, relative to the working folder."""
    shared = [Path(path) for path in ("weights/table",) if " table " in line]
    if "recipe.yaml" in line:
        shared += [Path("bert"), Path("calls.jsonl")]
    if line.startswith(("flow next", "flow compare")):
        shared.append(Path("dse"))
    words = [word.split("=")[0].split("@")[0] for word in line.split()[1:]]
    named = [
        Path(word)
        for word in words
        if word == "out/begun" or (not word.startswith(("out/", "-", "#", "/")))
    ]
    return list(dict.fromkeys([*named, *shared]))
