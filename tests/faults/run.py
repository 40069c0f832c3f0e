"""Runs cases of faults: ``python tests/faults/run.py --cases 3000 --seed 0 --output docs/results/faults.json``."""

import argparse
import contextlib
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
sys.path.insert(0, str(Path(__file__).parents[1]))

import cases
from server import Server

FOUND: tuple[str, ...] = (
    'embed: plain | field | bert/tokenizer_config.json | ["model_max_length"] = -1',
    "train: resumed | file | out/begun/checkpoint-3/rng_state.pth | cut",
    "corpus unify | signal | SIGKILL | 0.958",
    "export | file | dse/tokenizer_config.json | removed",
    "export | weights | dse | template",
    "distil | servers | hub | redirect to none after 5",
    "embed: sentence | servers | hub | stream slowly after 5",
    "search: query | servers | hub | status 503 after 4",
    "merge | servers | hub | hang after 8",
    "publish | servers | hub | hang after 3",
    'distil | field | bert/tokenizer.json | ["model", "vocab", "m"] = true',
    "export | signal | SIGINT | 0.261",
    "publish | file | published/dse/tokenizer_config.json | deep",
    "train: resumed | rights | out/begun/training_args.bin | no rights",
    "train: resumed | file | out/begun/training_data.json | object",
    "train: resumed | file | out/begun/training_data.json | removed",
    "embed: sentence | weights | sentence/model.safetensors | huge 0.58",
    "flow | weights | dse/model.safetensors | huge 0.78",
    "train: resumed | file | out/begun/training_texts.json | nul",
    "train: resumed | rights | out/begun/tokenizer.json | no rights",
    'rank | field | rankers/baseline/config.json | ["marker_ids", 1] = -1',
    'rank | field | rankers/baseline/config.json | ["marker_ids"] = []',
    'flow compare | field | flow/flow.json | ["settings"] = 0',
    "flow compare | file | flow/centroids.safetensors | flipped",
    'embed: shipped | field | weights/table/weights.json | ["backbone"] = true',
    "train | weights | bert/model.safetensors | huge 0.24",
    'train | field | bert/config.json | ["num_attention_heads"] = -1',
    'search: query | field | published/dse/sentence_bert_config.json | ["max_seq_length"] = -1',
    "train | file | recipe.yaml | object",
    "export | signal | SIGINT | 0.219",
    "train: resumed | file | out/begun/training_settings.json | object",
    'rank | field | rankers/baseline/tokenizer.json | ["added_tokens", 1, "content"] = "x"',
    "train: resumed | signal | SIGINT | 0.384",
    "corpus unify | signal | SIGTERM | 0.335",
    'card | field | results.json | ["run", "versions"] = []',
    "export | signal | SIGINT | 0.263",
    "merge | servers | hub | bomb after 0",
    'distil | field | bert/tokenizer_config.json | ["pad_token"] = null',
    "publish | servers | hub | bomb after 7",
    'merge | field | dse/training_settings.json | ["corpus"] = 1e+308',
    "export | signal | SIGINT | 0.414",
    'flow compare | field | flow/flow.json | ["title"] = 1152921504606846976',
    'card | field | results.json | ["run", "versions"] = {}',
    'flow compare | field | flow/flow.json | ["settings", "model"] = 1152921504606846976',
    'flow next | field | flow/flow.json | ["settings", "model"] = true',
    'evaluate | field | dse/training_report.json | ["seconds"] = "x"',
    "merge | signal | SIGKILL | 0.727",
    "corpus unify | signal | SIGKILL | 0.551",
)
"""Cases that fell once; they are run every time."""

TIMED, ONCE = ("signal", "twice", "servers"), "once in four times: "
"""Kinds that hang on the moment. What falls once and then holds three times is told, and is no failure of a run."""

KNOWN = {
    'train* | field | recipe.yaml | [[]"backbone"] = "removed"': "trains the default backbone, which is larger",
    'train* | field | recipe.yaml | [[]"backbone"] = null': "the same: null leaves a setting at its default",
    'train* | field | recipe.yaml | [[]"max_steps"] = 1152921504606846976': "trains as long as it is told to",
}
"""Patterns of cases that fall, and why; they are left out."""


def main() -> int:
    """Runs what is asked for, prints what falls and the counts; 1 where something fell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="so many processes (default: 2)")
    parser.add_argument("--case", action="append", default=[], help="this case alone")
    parser.add_argument("--kind", default="", help="cases of this kind alone")
    parser.add_argument(
        "--output",
        type=lambda path: Path(path).absolute(),
        help="a file of figures; an interrupt ends with those so far",
    )
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background takes away
    started = time.time()
    with tempfile.TemporaryDirectory(prefix="faults") as root:
        server = Server(Path(root))
        chosen = options.case or [*FOUND, *cases.draw(options.cases, options.seed)]
        chosen = [case for case in chosen if options.kind in ("", case.split(" | ")[1])]
        chosen = [case for case in chosen if not any(fnmatchcase(case, pattern) for pattern in KNOWN)]
        print(f"{time.time() - started:.1f} s until the first case", flush=True)
        judged = shared_out(server, chosen, options.jobs)
    held = Counter(tuple(case.split(" | ")[:2]) for case, wrong in judged.items() if not wrong)
    fallen = {case: wrong for case, wrong in judged.items() if wrong}
    count = held.total() + len(fallen)
    counts = {}
    for (name, kind), number in sorted(held.items()):
        counts.setdefault(name, {})[kind] = number
    for name, found in counts.items():
        print(f"{name}: " + ", ".join(f"{kind} {number}" for kind, number in found.items()))
    print(f"{count:,} cases of seed {options.seed}: {held.total():,} held, {len(fallen):,} fell; "
          f"{time.time() - started:.0f} s")  # fmt: skip
    if options.output:
        record = {"seed": options.seed, "cases": count, "held": counts, "fell": fallen}
        record["table"] = table(
            Counter(kind for _, kind in held.elements()), Counter(case.split(" | ")[1] for case in fallen)
        )
        options.output.write_text(json.dumps(record, indent=1) + "\n")
    return int(any(not wrong.startswith(ONCE) for wrong in fallen.values()))


def shared_out(server: Server, chosen: list[str], jobs: int) -> dict[str, str]:
    """Judges cases in forks of this process; returns what is wrong in each, or nothing. An interrupt ends them."""
    root, children = server.made.parent, []
    for job in range(jobs):
        child = os.fork()
        if not child:
            server.work = root / f"work-{job}"
            (root / f"judged-{job}").write_text(json.dumps(judged(server, chosen[job::jobs])))
            os._exit(0)
        children.append(child)
    while children:
        try:
            os.waitpid(children[0], 0)
            children.pop(0)
        except KeyboardInterrupt:
            for child in children:
                os.kill(child, signal.SIGINT)
    return {
        case: wrong for job in range(jobs) for case, wrong in json.loads((root / f"judged-{job}").read_text()).items()
    }


def judged(server: Server, chosen: list[str]) -> dict[str, str]:
    """Judges cases one after another, until an interrupt."""
    found = {}
    with contextlib.suppress(KeyboardInterrupt):
        for case in chosen:
            try:
                found[case] = server.judge(case)
            except Exception as error:
                found[case] = f"the suite itself: {error!r}"
            if found[case] and case.split(" | ")[1] in TIMED and not any(server.judge(case) for _ in range(3)):
                found[case] = f"{ONCE}{found[case]}"
            if found[case]:
                print(f"FELL {case}\n     {found[case]}", flush=True)
    return found


def table(held: Counter, fell: Counter) -> list[str]:
    """The lines of a table of the kinds of faults."""
    rows = {kind: (held[kind] + fell[kind], fell[kind]) for kind in sorted(held | fell)}
    rows["all"] = (held.total() + fell.total(), fell.total())
    lines = [f"| {kind} | {cases:,} | {fallen:,} |" for kind, (cases, fallen) in rows.items()]
    return ["| Kind | Cases | Fell |", "| :-- | --: | --: |", *lines]


if __name__ == "__main__":
    sys.exit(main())
