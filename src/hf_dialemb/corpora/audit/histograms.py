"""A picture of a corpus: the lengths of its dialogues and turns, and its most frequent labels."""

from collections import Counter
from pathlib import Path
from typing import Any

from ...drawing import BLUE, GREEN, RED, check_drawing, new_figure, plain_text, save, shortened
from .statistics import Histogram, Statistics, most_frequent

MAX_BINS = 40  # bars of a histogram; one bar for each number where they suffice
MAX_LABELS = 20  # labels with a bar of their own; all others share one
SHOWN_PERCENT = 99  # least share of dialogues or turns that a histogram shows; the longest are left out
_FEWEST_BINS = 7  # least width of a histogram, so that a single bar does not fill the picture
_WIDTH, _HISTOGRAM_HEIGHT, _BAR_HEIGHT, _LABELS_MARGIN = 15.0, 4.4, 0.26, 1.2  # inches
_LONGEST_BAR = 1.25  # longest bar of the other labels, times the most frequent label
_GREY = "#b0b0b0"


def draw_histograms(statistics: Statistics, path: Path | str, title: str) -> None:
    """Draw a corpus's counts and write them as a PNG, whole or not at all.

    Above, histograms of turns per dialogue, words per turn and words per dialogue, up to their 99th percentile; below,
    the most frequent domains, dialogue acts, slots and intents, as far as the corpus has any.
    """
    check_drawing()
    kinds = [
        ("domains", "dialogues", statistics.domains),
        ("dialogue acts", "turns", statistics.dialogue_acts),
        ("slots", "turns", statistics.slots),
        ("intents", "turns", statistics.intents),
    ]
    kinds = [kind for kind in kinds if kind[2]]
    bars = max((min(len(labels), MAX_LABELS + 1) for _, _, labels in kinds), default=0)
    heights = [_HISTOGRAM_HEIGHT, bars * _BAR_HEIGHT + _LABELS_MARGIN] if kinds else [_HISTOGRAM_HEIGHT]
    figure = new_figure(_WIDTH, sum(heights))
    figure.suptitle(shortened(title, 100), fontsize=15, fontweight="bold", parse_math=False)
    rows = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights).ravel()
    left, middle, right = rows[0].subplots(1, 3)
    _draw_histogram(left, "turns per dialogue", "turns", "dialogues", statistics.turns_per_dialogue)
    _draw_histogram(middle, "words per turn", "words", "turns", statistics.words_per_turn)
    _draw_histogram(right, "words per dialogue", "words", "dialogues", statistics.words_per_dialogue)
    if kinds:
        for axes, kind in zip(rows[1].subplots(1, len(kinds), squeeze=False).ravel(), kinds, strict=True):
            _draw_labels(axes, *kind, bars, 28 if len(kinds) > 2 else 48)
    save(figure, path)


def bin_counts(histogram: Histogram) -> tuple[list[int], list[int], int]:
    """Sum a histogram into at most `MAX_BINS` bins of equal width that reach to its 99th percentile."""
    low, high = min(histogram), histogram.percentile(SHOWN_PERCENT)
    width = -(-(high - low + 1) // MAX_BINS)
    width += width > 1 and width % 2
    starts = list(range(low, high + 1, width))
    sums: Counter[int] = Counter()
    for value, count in histogram.items():
        sums[(value - low) // width] += count
    return starts, [sums[index] for index in range(len(starts))], width


def _draw_histogram(axes: Any, name: str, unit: str, counted: str, histogram: Histogram) -> None:  # noqa: ANN401
    starts, counts, width = bin_counts(histogram)
    axes.bar(
        [start - 0.5 for start in starts], counts, width, align="edge", color=BLUE, edgecolor="white", linewidth=0.4
    )
    left, right = starts[0] - 0.5, starts[-1] + width - 0.5
    margin = max(0.3 * width, (_FEWEST_BINS * width - (right - left)) / 2)
    axes.set_xlim(max(left - margin, -0.5), right + margin)
    mean, median = histogram.mean, histogram.median
    axes.axvline(mean, color=RED, linewidth=1.8, label=f"mean {mean:,.1f}")
    axes.axvline(median, color="black", linewidth=1.8, linestyle=(0, (4, 2)), label=f"median {median:,g}")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=2, frameon=False, fontsize=10)
    limit, largest = starts[-1] + width - 1, max(histogram)
    label = unit
    if largest > limit:
        share = 1 - sum(counts) / histogram.total()
        label += f"  (not shown: {share:.2%} above {limit:,}, up to {largest:,})"
    axes.set_ylabel(f"{counted} per bar of {width} {unit}" if width > 1 else counted, fontsize=11)
    axes.yaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    _finish(axes, name, label, 24)  # the legend lies between the title and the bars


def _draw_labels(axes: Any, name: str, counted: str, labels: Counter[str], bars: int, length: int) -> None:  # noqa: ANN401
    frequent = most_frequent(labels, MAX_LABELS)
    names = [shortened(label, length) for label in frequent]
    lengths: list[float] = [labels[label] for label in frequent]
    captions = [f"{labels[label]:,}" for label in frequent]
    rest = labels.total() - sum(labels[label] for label in frequent)
    if rest:
        # Hundreds of rare labels would make all bars but their own too short to compare.
        longest = _LONGEST_BAR * lengths[0]
        names.append(f"others ({len(labels) - len(frequent):,})")
        lengths.append(min(rest, longest))
        captions.append(f"{rest:,}" if rest <= longest else f"{rest:,} (cut)")
    drawn = axes.barh(range(len(names)), lengths, color=[GREEN] * len(frequent) + [_GREY] * bool(rest), height=0.75)
    axes.bar_label(drawn, captions, padding=3, fontsize=9)
    axes.set_ylim(bars - 0.4, -0.6)  # the same height of a bar in all charts; the most frequent label on top
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, 1.3 * max(lengths))  # room for the counts
    _finish(axes, f"{name} ({len(labels):,})", counted, 6)
    axes.xaxis.get_major_locator().set_params(nbins=4)
    plain_text(axes.get_yticklabels())


def _finish(axes: Any, title: str, label: str, pad: int) -> None:  # noqa: ANN401
    axes.set_title(title, fontsize=12, fontweight="bold", pad=pad)
    axes.set_xlabel(label, fontsize=11)
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(labelsize=10, length=3)
    axes.spines[["top", "right"]].set_visible(False)
