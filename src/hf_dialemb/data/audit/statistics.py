"""Counts of a corpus, made in one pass without keeping its dialogues, and a picture of them."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import accumulate
from math import ceil
from pathlib import Path
from typing import Any, Self

from ...dialogue import ROLES, Dialogue, Turn, plain
from ...drawing import (
    BLUE,
    GREEN,
    RED,
    check_drawing,
    new_figure,
    plain_text,
    save,
    shortened,
    visible,
)

LABELS = {"domains": "dialogues", "dialogue_acts": "turns", "slots": "turns", "intents": "turns"}
"""The kinds of labels, and what carries them."""

MAX_BINS = (
    40  # a bar of a histogram covers one number if this many bars suffice, and several otherwise
)
MAX_LABELS = 20  # labels with a bar of their own; all others share one
SHOWN_PERCENT = 99  # histograms end at this percentile of the dialogues or turns
_FEWEST_BINS = (
    7  # a histogram is at least this many bars wide, so that a single bar does not fill it
)
_WIDTH, _HISTOGRAM_HEIGHT, _BAR_HEIGHT, _LABELS_MARGIN = 15.0, 4.4, 0.26, 1.2  # inches
_MOST_OTHERS = 1.25  # the bar of all other labels is cut at this multiple of the longest one


class Histogram(Counter[int]):
    """The frequencies of whole numbers."""

    @property
    def sum(self) -> int:
        """The sum of the numbers."""
        return sum(value * count for value, count in self.items())

    @property
    def mean(self) -> float | None:
        """The arithmetic mean; None without numbers."""
        return self.sum / self.total() if self else None

    @property
    def median(self) -> float | None:
        """The middle number, or the mean of the two in the middle; None without numbers."""
        total = self.total()
        return (self._ranked((total - 1) // 2) + self._ranked(total // 2)) / 2 if self else None

    def percentile(self, percent: int) -> int:
        """Return the smallest number that ``percent`` % of the numbers do not exceed."""
        return self._ranked((self.total() * percent + 99) // 100 - 1)

    def to_json(self) -> dict[str, Any]:
        """Return ``mean``, ``median``, ``min``, ``max`` and ``histogram``, the counts by ascending
        number.
        """
        histogram = {str(value): self[value] for value in sorted(self)}
        least, most = min(self, default=None), max(self, default=None)
        return {
            "mean": self.mean,
            "median": self.median,
            "min": least,
            "max": most,
            "histogram": histogram,
        }

    def _ranked(self, rank: int) -> int:
        """Return the number at a rank, counted from 0, in ascending order."""
        values = sorted(self)
        return values[bisect_right(list(accumulate(map(self.__getitem__, values))), rank)]


class Statistics:
    """Counts of the dialogues that were added; their order does not matter.

    White space separates words. Texts that differ only in case and white space count as the same.
    Memory grows with the number of different labels, and by eight bytes per turn.
    """

    def __init__(self) -> None:
        self.turns_per_dialogue, self.words_per_dialogue, self.words_per_turn = (
            Histogram(),
            Histogram(),
            Histogram(),
        )
        # of dialogues with one domain
        self.single_domain_turns, self.single_domain_words = (Histogram(), Histogram())
        self.turns_by_role: Counter[str] = Counter()
        self.labels: dict[str, Counter[str]] = {name: Counter() for name in LABELS}
        self.one_speaker_dialogues = self.labelled_turns = 0
        self._dialogue_hashes, self._utterance_hashes = array("Q"), array("Q")

    @classmethod
    def of(cls, dialogues: Iterable[Dialogue]) -> Self:
        """Count dialogues."""
        statistics = cls()
        for dialogue in dialogues:
            statistics.add(dialogue)
        return statistics

    def counting(self, dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
        """Yield dialogues, and count them on the way."""
        for dialogue in dialogues:
            self.add(dialogue)
            yield dialogue

    def add(self, dialogue: Dialogue) -> None:
        """Count one more dialogue."""
        words = sum(map(self._add_turn, dialogue.turns))
        self._dialogue_hashes.frombytes(content_hash(dialogue))
        self.turns_per_dialogue[len(dialogue.turns)] += 1
        self.words_per_dialogue[words] += 1
        self.one_speaker_dialogues += len(dialogue.roles) == 1
        self.labels["domains"].update(set(dialogue.domains))
        if len(dialogue.domains) == 1:
            self.single_domain_turns[len(dialogue.turns)] += 1
            self.single_domain_words[words] += 1

    def _add_turn(self, turn: Turn) -> int:
        """Count a turn; return the number of its words."""
        words = len(turn.content.split())
        self.words_per_turn[words] += 1
        self.turns_by_role[turn.role] += 1
        self.labels["dialogue_acts"].update(set(turn.dialogue_acts))
        self.labels["slots"].update({name for name, _ in turn.slots})
        self.labels["intents"].update(set(turn.intents))
        self.labelled_turns += bool(turn.dialogue_acts or turn.slots or turn.intents)
        self._utterance_hashes.frombytes(blake2b(_encoded(turn.content), digest_size=8).digest())
        return words

    @property
    def dialogues(self) -> int:
        """The number of dialogues."""
        return self.turns_per_dialogue.total()

    @property
    def turns(self) -> int:
        """The number of turns."""
        return self.words_per_turn.total()

    @property
    def duplicate_dialogues(self) -> int:
        """The number of dialogues that repeat an earlier one.

        The same roles say the same things in the same order.
        """
        return _count_repeats(self._dialogue_hashes)

    @property
    def duplicate_utterances(self) -> int:
        """The number of turns that repeat the text of an earlier one, whoever speaks."""
        return _count_repeats(self._utterance_hashes)

    def to_json(self) -> dict[str, Any]:
        """Return all counts as a JSON object.

        Labels by descending count, and null for a mean of nothing.
        """
        lengths = ("turns_per_dialogue", "words_per_turn", "words_per_dialogue")
        counts = {
            "dialogues": self.dialogues,
            "turns": self.turns,
            "words": self.words_per_turn.sum,
        }
        repeated = {"dialogue": self.duplicate_dialogues, "utterance": self.duplicate_utterances}
        totals = {"dialogue": max(1, self.dialogues), "utterance": max(1, self.turns)}
        return {
            **counts,
            **{name: getattr(self, name).to_json() for name in lengths},
            "turns_by_role": {
                role: self.turns_by_role[role] for role in ROLES if role in self.turns_by_role
            },
            "one_speaker_dialogues": self.one_speaker_dialogues,
            "single_domain": {
                "dialogues": self.single_domain_turns.total(),
                "mean_turns": self.single_domain_turns.mean,
                "mean_words": self.single_domain_words.mean,
            },
            **{
                name: {"distinct": len(labels), "counts": dict(most_frequent(labels, len(labels)))}
                for name, labels in self.labels.items()
            },
            "labelled_turns": self.labelled_turns,
            "duplicates": {
                **{f"{name}s": count for name, count in repeated.items()},
                **{f"{name}_share": count / totals[name] for name, count in repeated.items()},
            },
        }

    def to_table(self) -> str:
        """Return a plain table with one count per line; see `describe`."""
        roles = sorted(
            self.turns_by_role, key=lambda role: (-self.turns_by_role[role], ROLES.index(role))
        )
        rows = [
            ("dialogues", f"{self.dialogues:,}"),
            ("turns", f"{self.turns:,}"),
            *_mean_rows(self.turns_per_dialogue, self.words_per_dialogue, ""),
            ("single-domain dialogues", f"{self.single_domain_turns.total():,}"),
            *_mean_rows(self.single_domain_turns, self.single_domain_words, "  "),
            ("speakers", f"{len(roles):,}"),
            *((f"  {role}", f"{self.turns_by_role[role]:,} turns") for role in roles),
        ]
        for name, labels in self.labels.items():
            title, unit = (
                ("labels", "") if name == "domains" else (name.replace("_", " "), " turns")
            )
            if labels or name == "domains":
                rows.append((title, f"{len(labels):,}"))
                rows += [
                    (f"  {visible(label)}", f"{count:,}{unit}")
                    for label, count in most_frequent(labels, 10)
                ]
        dialogues, utterances = self.duplicate_dialogues, self.duplicate_utterances
        if dialogues or utterances:
            rows.append(
                ("duplicate dialogues", f"{dialogues:,} ({dialogues / self.dialogues:.1%})")
            )
            rows.append(("duplicate utterances", f"{utterances:,} ({utterances / self.turns:.1%})"))
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def describe(dialogues: Iterable[Dialogue]) -> str:
    """Count a corpus, which may be a stream, and return a plain table with one count per line.

    The table lists the ten most frequent labels: domains by dialogues; acts, slots and intents by
    turns. White space separates words.
    """
    return Statistics.of(dialogues).to_table()


def most_frequent(labels: Counter[str], limit: int) -> list[tuple[str, int]]:
    """Return the most frequent labels and their counts; ties in alphabetical order."""
    return sorted(labels.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


def content_hash(dialogue: Dialogue) -> bytes:
    """Return 8 bytes, which are the same for dialogues whose turns differ only in case and white
    space.
    """
    whole = blake2b(digest_size=8)
    for turn in dialogue.turns:
        whole.update(turn.role.encode() + b"\t" + _encoded(turn.content) + b"\n")
    return whole.digest()


def draw_histograms(statistics: Statistics, path: Path | str, title: str) -> None:
    """Draw a corpus's counts and write the picture atomically.

    The upper row has histograms of turns per dialogue, words per turn and words per dialogue, up to
    their 99th percentile. The lower row has the most frequent domains, dialogue acts, slots and
    intents, if the corpus has any.
    """
    check_drawing()
    kinds = [(name, labels) for name, labels in statistics.labels.items() if labels]
    bars = max((min(len(labels), MAX_LABELS + 1) for _, labels in kinds), default=0)
    heights = (
        [_HISTOGRAM_HEIGHT, bars * _BAR_HEIGHT + _LABELS_MARGIN] if kinds else [_HISTOGRAM_HEIGHT]
    )
    figure = new_figure(_WIDTH, sum(heights))
    figure.suptitle(shortened(title, 100), fontsize=15, fontweight="bold", parse_math=False)
    panels = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights).ravel()
    left, middle, right = panels[0].subplots(1, 3)
    _draw_histogram(left, "turns per dialogue", statistics.turns_per_dialogue)
    _draw_histogram(middle, "words per turn", statistics.words_per_turn)
    _draw_histogram(right, "words per dialogue", statistics.words_per_dialogue)
    if kinds:
        for axes, (name, labels) in zip(
            panels[1].subplots(1, len(kinds), squeeze=False).ravel(), kinds, strict=True
        ):
            _draw_labels(axes, labels, 28 if len(kinds) > 2 else 48)
            # bars are as high in every chart; the most frequent label is on top
            axes.set_ylim(bars - 0.4, -0.6)
            _style(axes, f"{name.replace('_', ' ')} ({len(labels):,})", LABELS[name], 6)
            axes.xaxis.get_major_locator().set_params(nbins=4)
            plain_text(axes.get_yticklabels())
    save(figure, path)


def bin_counts(histogram: Histogram) -> tuple[list[int], list[int], int]:
    """Sum a histogram into at most `MAX_BINS` bins of equal width that reach its 99th percentile.

    Return the first number of each bin, the counts, and the width.
    """
    low, high = min(histogram), histogram.percentile(SHOWN_PERCENT)
    width = ceil((high - low + 1) / MAX_BINS)
    # even, as two speakers who alternate make more dialogues of even length
    width += width > 1 and width % 2
    starts = list(range(low, high + 1, width))
    sums: Counter[int] = Counter()
    for value, count in histogram.items():
        sums[(value - low) // width] += count
    return starts, [sums[index] for index in range(len(starts))], width


def _draw_histogram(axes: Any, name: str, histogram: Histogram) -> None:
    unit, _, item = name.partition(" per ")  # such as words of a turn
    starts, counts, width = bin_counts(histogram)
    edges = [start - 0.5 for start in starts]
    axes.bar(edges, counts, width, align="edge", color=BLUE, edgecolor="white", linewidth=0.4)
    left, right = edges[0], edges[-1] + width
    margin = max(0.3 * width, (_FEWEST_BINS * width - (right - left)) / 2)
    axes.set_xlim(max(left - margin, -0.5), right + margin)
    axes.axvline(histogram.mean, color=RED, linewidth=1.8, label=f"mean {histogram.mean:,.1f}")
    median = f"median {histogram.median:,g}"
    axes.axvline(
        histogram.median, color="black", linewidth=1.8, linestyle=(0, (4, 2)), label=median
    )
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=2, frameon=False, fontsize=10)
    limit, largest, label = starts[-1] + width - 1, max(histogram), unit
    if largest > limit:
        share = 1 - sum(counts) / histogram.total()
        label += f"  (not shown: {share:.2%} above {limit:,}, up to {largest:,})"
    axes.set_ylabel(f"{item}s per bar of {width} {unit}" if width > 1 else f"{item}s", fontsize=11)
    axes.yaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    _style(axes, name, label, 24)  # the legend lies between the title and the bars


def _draw_labels(axes: Any, labels: Counter[str], most_letters: int) -> None:
    frequent = most_frequent(labels, MAX_LABELS)
    bars = [
        (shortened(label, most_letters), float(count), f"{count:,}", GREEN)
        for label, count in frequent
    ]
    if rest := labels.total() - sum(count for _, count in frequent):
        # Hundreds of rare labels would make all bars but their own too short to compare.
        length = min(rest, _MOST_OTHERS * frequent[0][1])
        caption = f"{rest:,} (cut)" if rest > length else f"{rest:,}"
        bars.append((f"others ({len(labels) - len(frequent):,})", length, caption, "#b0b0b0"))
    names, lengths, captions, colours = zip(*bars, strict=True)
    drawn = axes.barh(range(len(names)), lengths, color=colours, height=0.75)
    axes.bar_label(drawn, captions, padding=3, fontsize=9)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, 1.3 * max(lengths))  # room for the counts


def _style(axes: Any, title: str, label: str, pad: int) -> None:
    axes.set_title(title, fontsize=12, fontweight="bold", pad=pad)
    axes.set_xlabel(label, fontsize=11)
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(labelsize=10, length=3)
    axes.spines[["top", "right"]].set_visible(False)


def _encoded(text: str) -> bytes:
    return plain(text).encode("utf-8", "surrogatepass")  # JSON can hold a lone surrogate


def _count_repeats(hashes: "array[int]") -> int:
    """Count the hashes that repeat an earlier one.

    Sorting an array takes a tenth of a set's memory.
    """
    import numpy as np

    return len(hashes) - len(np.unique(np.array(hashes, dtype=np.uint64)))


def _mean_rows(turns: Histogram, words: Histogram, indent: str) -> list[tuple[str, str]]:
    if not turns:
        return []
    return [
        (f"{indent}mean turns", f"{turns.mean:.1f}"),
        (f"{indent}mean words", f"{words.mean:.1f}"),
    ]
