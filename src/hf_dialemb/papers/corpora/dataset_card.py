"""The figures of a unified dataset beside those of the Dialog2Flow paper, and the card that shows them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...corpora.corpus import SPLITS, Corpus
from ...dialogue import action_name

FREQUENT = 100  # an action that occurs more often than this is frequent: the paper trains on those alone
_LEAST_SHARE = 0.001  # what the card lists; the statistics have all
_COUNTED_LABELS = ("domains", "acts", "main_acts", "original_acts", "slots", "intents")
_COUNTED_BESIDE = ("actions", "dialogues", "counts")
_LABELS = ("domains", "original_acts", "acts", "slots", "actions")  # of which a figure tells how many there are


class PaperRow(NamedTuple):
    """A dataset in table 1 of the Dialog2Flow paper, which rounds the utterances and counts acts by their own names."""

    name: str
    utterances: str
    domains: int
    original_acts: int
    slots: int


PAPER_TABLE = {
    "abcd": PaperRow("ABCD", "20.4K", 10, 0, 10),
    "bitod": PaperRow("BiTOD", "72.5K", 6, 13, 33),
    "disambiguation": PaperRow("Disambiguation", "114.3K", 8, 9, 28),
    "dstc2_clean": PaperRow("DSTC2-Clean", "25K", 1, 2, 8),
    "frames": PaperRow("FRAMES", "20K", 1, 21, 46),
    "gecor": PaperRow("GECOR", "2.5K", 1, 2, 10),
    "hdsa": PaperRow("HDSA-Dialog", "91.9K", 8, 6, 24),
    "ketod": PaperRow("KETOD", "107.7K", 20, 15, 182),
    "msdc": PaperRow("MS-DC", "71.9K", 3, 11, 56),
    "muldogo": PaperRow("MulDoGO", "74.8K", 6, 0, 63),
    "multiwoz": PaperRow("MultiWOZ2.1", "108.3K", 8, 9, 27),
    "multiwoz21": PaperRow("MultiWOZ2.1", "108.3K", 8, 9, 27),
    "multiwoz22": PaperRow("MultiWOZ2.2", "55.9K", 8, 2, 26),
    "sgd": PaperRow("SGD", "479.5K", 20, 15, 184),
    "sim_gen": PaperRow("SimJointGEN", "1.3M", 1, 16, 5),
    "sim_m": PaperRow("SimJointMovie", "7.2K", 1, 14, 5),
    "sim_r": PaperRow("SimJointRestaurant", "20K", 1, 15, 9),
    "taskmaster1": PaperRow("Taskmaster1", "30.7K", 6, 1, 59),
    "taskmaster2": PaperRow("Taskmaster2", "147K", 11, 1, 117),
    "taskmaster3": PaperRow("Taskmaster3", "589.7K", 1, 1, 21),
    "woz2": PaperRow("WOZ2.0", "4.4K", 1, 2, 10),
}
"""Table 1 of the paper, by the names that the corpora have here."""

PAPER_TOTALS = {**PaperRow("all twenty", "3.4M", 52, 44, 524)._asdict(), "acts": 18, "actions": 3982}
"""The paper's figures of all its datasets together (section 4 and appendix A)."""


class Tally:
    """What is counted of a corpus while it is written, or of several together.

    The first six `counters` are the paper's statistics: in how many labelled turns each label stands, turns of one word
    among them. The actions are those of the utterances, which are the labelled turns of two words and more. ``counts``
    are of ``turns``, ``labelled`` turns, ``utterances``, those with acts alone (``act_alone``), and of what was left
    out of train (``excluded_dialogues``, ``excluded_turns``).
    """

    def __init__(self) -> None:
        self.counters: dict[str, Counter[str]] = {kind: Counter() for kind in (*_COUNTED_LABELS, *_COUNTED_BESIDE)}

    @property
    def stats(self) -> dict[str, Any]:
        """The labels' counters in the paper's form."""
        acts = {kind: self.counters[kind] for kind in ("acts", "main_acts", "original_acts")}
        labels = {"dialog_acts": acts, "slots": self.counters["slots"], "intents": self.counters["intents"]}
        return {"domains": self.counters["domains"], "labels": labels}

    def take(self, split: str, turns: int, labelled: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Count a dialogue and return its utterances."""
        counts, utterances = self.counters["counts"], []
        self.counters["dialogues"][split] += 1
        counts.update(turns=turns, labelled=len(labelled))
        for turn in labelled:
            labels = {**turn["labels"], **turn["labels"].get("dialog_acts", {}), "domains": turn["domains"]}
            for kind in _COUNTED_LABELS:
                self.counters[kind].update(labels.get(kind, ()))
            acts, slots = labels.get("acts", ()), labels.get("slots", ())
            if len(turn["text"].split()) > 1:
                utterances.append(turn)
                counts.update(utterances=1, act_alone=bool(acts and not slots))
                if acts or slots:
                    self.counters["actions"][action_name(acts, slots)] += 1
        return utterances

    def add(self, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Add the counters of another tally."""
        for kind, counter in self.counters.items():
            counter.update(counters[kind])

    def figures(self) -> dict[str, Any]:
        """Return the counts of dialogues, turns and utterances, and of the distinct labels of each kind."""
        dialogues, counts = self.counters["dialogues"], self.counters["counts"]
        return {
            "dialogues": {split: dialogues[split] for split in SPLITS if dialogues[split]},
            **{kind: counts[kind] for kind in ("turns", "labelled", "utterances")},
            **{kind: len(self.counters[kind]) for kind in _LABELS},
            "frequent_actions": sum(count > FREQUENT for count in self.counters["actions"].values()),
            "act_alone": counts["act_alone"],
            "excluded": {kind: counts[f"excluded_{kind}"] for kind in ("dialogues", "turns")},
        }

    def shares(self) -> dict[str, dict[str, float]]:
        """Return the share of the labelled turns in which each act and each domain stands, the largest first."""
        labelled = self.counters["counts"]["labelled"]
        return {
            kind: {name: count / labelled for name, count in self.counters[kind].most_common()}
            for kind in ("acts", "domains")
        }


def statistics(tallies: Iterable[tuple[Corpus, Tally]]) -> dict[str, Any]:
    """Make the figures of a dataset."""
    total, of_paper = Tally(), Tally()
    corpora = {}
    for corpus, tally in tallies:
        row = PAPER_TABLE.get(corpus.name)
        for sums in (total, of_paper) if row else (total,):
            sums.add(tally.counters)
        stated = {field: getattr(corpus, field) for field in ("source", "licence", "terms", "extract")}
        corpora[corpus.name] = {**stated, **tally.figures(), "paper": row._asdict() if row else None}
    return {
        "corpora": corpora,
        "totals": {**total.figures(), "paper": None},
        "totals_of_paper": {**of_paper.figures(), "paper": PAPER_TOTALS},
        "shares": total.shares(),
    }


def dataset_card(stats: Mapping[str, Any]) -> str:
    """Render the card of a unified dataset."""
    import yaml

    front = yaml.safe_dump(_front_matter(stats), sort_keys=False, allow_unicode=True)
    left_out = [f"- {name}: {reason}" for name, reason in stats["left_out"].items()]
    parts = [
        f"---\n{front}---",
        _INTRODUCTION,
        "## Parts",
        f"Corpora under licences that count as '{stats['terms']}' or freer. Each part stays under its own licence.",
        _table(_PARTS, [_part(name, figures) for name, figures in stats["corpora"].items()]),
        *(["Not in it:", "\n".join(left_out)] if left_out else []),
        "## Figures",
        _FIGURES.format(frequent=FREQUENT),
        figures_table(stats),
        "Acts and domains by the share of the labelled turns in which they stand (the form of the paper's table A1):",
        *(_table((kind.capitalize(), "Share"), _largest(shares)) for kind, shares in stats["shares"].items()),
        _COLUMNS,
        "## What was cleaned",
        _CLEANED,
        excluded(stats),
        _CITATION,
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(stats: Mapping[str, Any]) -> dict[str, Any]:
    corpora = stats["corpora"]
    count = sum(stats["totals"]["dialogues"].values())
    sizes = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M"}
    configs = [("default", "*", list(stats["totals"]["dialogues"]))]
    configs += [(name, name, list(figures["dialogues"])) for name, figures in corpora.items()]
    return {
        "pretty_name": "Unified task-oriented dialogues",
        "license": "other",
        "license_name": "licences-of-the-parts",
        "task_categories": ["text-classification", "sentence-similarity"],
        "task_ids": ["intent-classification"],
        "tags": ["dialogue", "task-oriented-dialogue", "dialogue-acts", "slots"],
        "size_categories": [next((size for limit, size in sizes.items() if count < limit), "1M<n<10M")],
        "configs": [
            {
                "config_name": config,
                "data_files": [
                    {"split": "validation" if split == "dev" else split, "path": f"{split}/{files}.parquet"}
                    for split in splits
                ],
            }
            for config, files, splits in configs
        ],
    }


_PARTS = ("Corpus", "Licence", "Train", "Dev", "Test", "Turns", "Source")
_COUNTED = {
    "utterances": "Utterances",
    "domains": "Domains",
    "original_acts": "Acts by their own names",
    "acts": "Acts",
    "slots": "Slots",
    "actions": "Actions",
}
_MORE_COUNTED = {"labelled": "Labelled turns", "frequent_actions": "Frequent actions", "act_alone": "Acts alone"}


def _part(name: str, figures: Mapping[str, Any]) -> list[str]:
    note = f" ({figures['extract']})" if figures["extract"] else ""
    sizes = [f"{figures['dialogues'].get(split, 0):,}" for split in SPLITS]
    return [name + note, figures["licence"], *sizes, f"{figures['turns']:,}", figures["source"]]


def _counts(name: str, figures: Mapping[str, Any]) -> list[str]:
    quoted = figures["paper"] or {}
    return [name, *(f"{figures[field]:,}" + (f" / {quoted[field]}" if field in quoted else "") for field in _COUNTED)]


def _largest(shares: Mapping[str, float]) -> list[tuple[str, str]]:
    rows = [(name, f"{share:.2%}") for name, share in shares.items() if share >= _LEAST_SHARE]
    left = len(shares) - len(rows)
    return [*rows, (f"and {left:,} more", f"each below {_LEAST_SHARE:.2%}")] if left else rows


def figures_table(stats: Mapping[str, Any]) -> str:
    """Draw the figures of the corpora and of all together beside the paper's, and below what the paper has not."""
    totals = (("**those of the paper**", stats["totals_of_paper"]), ("**all**", stats["totals"]))
    rows = (*stats["corpora"].items(), *totals)
    more = [[name, *(f"{figures[field]:,}" for field in _MORE_COUNTED)] for name, figures in rows]
    beside = _table(("Corpus", *_COUNTED.values()), [_counts(*row) for row in rows])
    return f"{beside}\n\n{_table(('Corpus', *_MORE_COUNTED.values()), more)}"


def excluded(stats: Mapping[str, Any]) -> str:
    """Describe what was left out of train."""
    sets = ", ".join(stats["evaluation"])
    if not sets:
        return "Train was not compared with any evaluation set."
    corpora = stats["corpora"]
    lines = [
        f"- {name}: {figures['excluded']['dialogues']:,} dialogues, {figures['excluded']['turns']:,} turns"
        for name, figures in corpora.items()
        if figures["excluded"]["turns"]
    ]
    compared = (
        f"Train was compared with {sets}; dialogues that equal or nearly equal one of theirs, and turns that equal or "
        "nearly equal one of their single utterances, were left out (the turns of those dialogues are counted too)"
    )
    return "\n".join([f"{compared}:\n", *lines]) if lines else f"{compared}: none."


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_INTRODUCTION = """# Unified task-oriented dialogues

Dialogues of a user and a system from several published corpora in one form, as the Dialog2Flow paper unifies twenty:
dialogue acts under 18 names, slots, intents and domains cleaned alike, and an action for each turn, its acts and slots.

```python
from datasets import load_dataset

dialogues = load_dataset("path/to/this/folder")  # or one corpus: load_dataset("path/to/this/folder", "<corpus>")
```"""
_FIGURES = """An utterance is a turn with a label and at least two words; acts, slots and domains are counted before
that bound, as in the paper. An action is frequent if it occurs more than {frequent} times; "acts alone" are utterances
without slots. Actions are named here with acts and slots sorted; the paper keeps the order of the annotation, which
gives more of them. Behind a slash: the figure of the paper."""
_COLUMNS = """## Columns

- `id`, `corpus`: the dialogue's id, unique in its corpus, and the corpus.
- `domains`: what the dialogue is about.
- `messages`: the turns: `role`, `content`, `dialogue_acts` (normalised), `main_acts` (their families), `original_acts`
  (the corpus's own names), `slots` (`name`, `value`), `intents`, `action`.

`json/<corpus>/data.json` holds the same labels in the paper's form: labelled turns alone, and intents where they
change; `json/<corpus>/stats.json` counts them."""
_CLEANED = """Names of acts, slots, intents and domains are reduced to the noun lemmas of their words of two letters and
more, in lower case; "other", "not sure" and "switch frame" are no labels. Acts that only announce an intent give the
intent alone. No label stands twice in a turn. What was said is as the corpus has it."""
_CITATION = """## Citation

Cite the corpora that you use, and the paper whose form this is:

```bibtex
@inproceedings{burdisso-etal-2024-dialog2flow,
  title = {Dialog2Flow: Pre-training Soft-Contrastive Action-Driven Sentence Embeddings for Automatic Dialog Flow
           Extraction},
  author = {Burdisso, Sergio and Madikeri, Srikanth and Motlicek, Petr},
  booktitle = {Proceedings of the 2024 Conference on Empirical Methods in Natural Language Processing},
  year = {2024},
  publisher = {Association for Computational Linguistics}
}
```"""
