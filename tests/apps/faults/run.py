"""Runs cases of faults.

``python tests/faults/run.py --cases 600 --seed 0 --output docs/results/faults.json``.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parents[2]))

import cases
from server import Server

FOUND: tuple[str, ...] = (
    'embed: plain | field | bert/tokenizer_config.json | ["model_max_length"] = -1',
    "train: resumed | file | out/begun/checkpoint-3/rng_state.pth | cut",
    "papers corpus unify | signal | SIGKILL | 0.958",
    "export | file | dse/tokenizer_config.json | removed",
    "export | weights | dse | template",
    'model distil | field | bert/tokenizer.json | ["model", "vocab", "m"] = true',
    "export | signal | SIGINT | 0.261",
    "publish | file | published/dse/tokenizer_config.json | deep",
    "train: resumed | rights | out/begun/training_args.bin | no rights",
    "train: resumed | file | out/begun/training_data.json | object",
    "train: resumed | file | out/begun/training_data.json | removed",
    "embed: sentence | weights | sentence/model.safetensors | huge 0.58",
    "flow | weights | dse/model.safetensors | huge 0.78",
    "train: resumed | file | out/begun/training_texts.json | nul",
    "train: resumed | rights | out/begun/tokenizer.json | no rights",
    'rank | field | rankers/baseline/config.json | ["architectures"] = 1e+308',
    'rank | field | rankers/baseline/config.json | ["marker_ids", 1] = -1',
    'rank | field | rankers/baseline/config.json | ["marker_ids"] = []',
    'flow compare | field | flow/flow.json | ["settings"] = 0',
    "flow compare | file | flow/centroids.safetensors | flipped",
    'embed: shipped | field | weights/table/weights.json | ["backbone"] = true',
    "train | weights | bert/model.safetensors | huge 0.24",
    'train | field | bert/config.json | ["num_attention_heads"] = -1',
    'search: query | field | published/dse/sentence_bert_config.json | ["max_seq_length"] = -1',
    "train | file | recipe.yaml | object",
    "train: resumed | file | out/begun/training_settings.json | object",
    'rank | field | rankers/baseline/tokenizer.json | ["added_tokens", 1, "content"] = "x"',
    "train: resumed | signal | SIGINT | 0.384",
    'model card | field | results.json | ["run", "versions"] = []',
    'model distil | field | bert/tokenizer_config.json | ["pad_token"] = null',
    'flow compare | field | flow/flow.json | ["title"] = 1152921504606846976',
    'model card | field | results.json | ["run", "versions"] = {}',
    'flow compare | field | flow/flow.json | ["settings", "model"] = 1152921504606846976',
    'flow next | field | flow/flow.json | ["settings", "model"] = true',
    'evaluate | field | dse/training_report.json | ["seconds"] = "x"',
)
"""Cases that fell once; they are run every time."""

ONCE = "once in four times: "
"""A signal hangs on the moment.

What falls once and then holds three times is no failure of a run.
"""

KNOWN = {
    'train* | field | recipe.yaml | [[]"backbone"] = "removed"': "trains the default backbone, "
    "which is larger",
    'train* | field | recipe.yaml | [[]"backbone"] = null': "the same: null is the default",
    'train* | field | recipe.yaml | [[]"max_steps"] = 1152921504606846976': "trains as long as it "
    "is asked to",
}
"""Patterns of cases that fall, and why; they are left out."""


def main() -> int:
    """Runs the cases, prints those that fall and the counts; 1 where a case fell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", action="append", default=[], help="this case alone")
    parser.add_argument("--kind", default="", help="cases of this kind alone")
    parser.add_argument(
        "--output", type=Path, help="a file of figures; an interrupt ends with those so far"
    )
    options = parser.parse_args()
    output = options.output and options.output.absolute()
    # which a shell's background takes away
    signal.signal(signal.SIGINT, signal.default_int_handler)
    started, judged = time.time(), {}
    with tempfile.TemporaryDirectory(prefix="faults") as root:
        server = Server(Path(root))
        known = [case for case in FOUND if case.partition(" | ")[0] in cases.COMMANDS]
        chosen = options.case or [*known, *cases.draw(options.cases, options.seed)]
        chosen = [case for case in chosen if options.kind in ("", case.split(" | ")[1])]
        chosen = [
            case for case in chosen if not any(fnmatchcase(case, pattern) for pattern in KNOWN)
        ]
        print(f"{time.time() - started:.1f} s until the first case", flush=True)
        try:
            for case in chosen:
                judged[case] = verdict(server, case)
                if judged[case]:
                    print(f"FELL {case}\n     {judged[case]}", flush=True)
        except KeyboardInterrupt:
            print("interrupted")
    fallen = {case: wrong for case, wrong in judged.items() if wrong}
    held = Counter(tuple(case.split(" | ")[:2]) for case in judged if case not in fallen)
    print(
        f"{len(judged):,} cases of seed {options.seed}: {held.total():,} held, {len(fallen):,} "
        "fell; "
        f"{time.time() - started:.0f} s"
    )
    if output:
        counts: dict[str, dict[str, int]] = {}
        for (name, kind), number in sorted(held.items()):
            counts.setdefault(name, {})[kind] = number
        record = {
            "seed": options.seed,
            "cases": len(judged),
            "held": counts,
            "fell": fallen,
            "table": table(judged),
        }
        output.write_text(json.dumps(record, indent=1) + "\n")
    return int(any(not wrong.startswith(ONCE) for wrong in fallen.values()))


def verdict(server: Server, case: str) -> str:
    """What is wrong in a case, or nothing."""
    try:
        wrong = server.judge(case)
    except Exception as error:
        return f"the suite itself: {error!r}"
    if wrong and " | signal | " in case and not any(server.judge(case) for _ in range(3)):
        return f"{ONCE}{wrong}"
    return wrong


def table(judged: dict[str, str]) -> list[str]:
    """The lines of a table of the kinds of faults."""
    kinds = Counter(case.split(" | ")[1] for case in judged)
    fell = Counter(case.split(" | ")[1] for case, wrong in judged.items() if wrong)
    rows = [(kind, count, fell[kind]) for kind, count in sorted(kinds.items())]
    rows.append(("all", kinds.total(), fell.total()))
    lines = [f"| {kind} | {count:,} | {fallen:,} |" for kind, count, fallen in rows]
    return ["| Kind | Cases | Fell |", "| :-- | --: | --: |", *lines]


if __name__ == "__main__":
    sys.exit(main())
