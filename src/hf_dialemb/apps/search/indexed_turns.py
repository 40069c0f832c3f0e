"""Turns in a LanceDB table, found by words and meaning.

LanceDB's own hybrid search joins ranks, or scores that it stretches to 0 to 1, and finds far less
on LoCoMo (dev; see docs/search.md). So LanceDB finds turns by words and by vectors, and both are
joined here as `TurnIndex` joins them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...dialogue import Turn
from ...metrics.vectors import unit
from .hits import Hits, best_rows
from .lance_tables import nearest_rows, quoted
from .turn_index import turn_hit
from .turn_scores import Scores, beside_meaning
from .word_index import words_of

CANDIDATES = 100
"""How many turns words and vectors name, each, if no more are wanted."""

SAMPLE = 1_000
"""How many turns tell how far cosines with a query spread."""


def find_turns(
    table: Any, query: str, vector: NDArray[np.float32], top: int, condition: str
) -> Hits:
    """Find the turns that answer a question, best first, of those that fulfil a condition."""
    candidates = _candidates(table, query, vector, max(CANDIDATES, top), condition)
    if not candidates:
        return Hits()
    rows = list(candidates.values())
    sample = _cosines(table.search().select(["vector"]).limit(SAMPLE).to_arrow(), vector)
    scores = (np.array([row["cosine"] for row in rows]) - sample.mean()) / max(sample.std(), 1e-9)
    places = {key: place for place, key in enumerate(candidates)}
    before = np.array([places.get((name, turn - 1), -1) for name, turn in candidates])
    by_words = np.array([row.get("_score", 0.0) for row in rows])
    speakers: defaultdict[str, list[int]] = defaultdict(list)
    times: defaultdict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        speakers[row["speaker"]].append(place)
        times[row["time"] or ""].append(place)
    scores += beside_meaning(query, by_words, before, speakers, times)
    best = best_rows(scores, top).tolist()
    return _hits(table, query, [{**rows[place], "score": float(scores[place])} for place in best])


def _candidates(
    table: Any, query: str, vector: NDArray[np.float32], count: int, condition: str
) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the rows nearest to a vector and to a query's words, by dialogue and turn."""
    searches = [nearest_rows(table, vector, count)]
    words = dict.fromkeys(words_of(query))
    if words:
        by_words = table.search(" ".join(words), query_type="fts", fts_columns="words")
        searches.append(by_words.limit(count))
    candidates: dict[tuple[str, int], dict[str, Any]] = {}
    for search in searches:
        if condition:
            search = search.where(condition, prefilter=True)
        part = search.to_arrow()
        cosines = _cosines(part, vector).tolist()
        for row, cosine in zip(part.drop_columns(["vector"]).to_pylist(), cosines, strict=True):
            candidates[row["id"], row["turn"]] = {**row, "cosine": cosine}
    return candidates


def _cosines(rows: pa.Table, vector: NDArray[np.float32]) -> Scores:
    vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(len(rows), len(vector))
    cosines: Scores = (unit(vectors) @ unit(vector[None])[0]).astype(np.float64)
    return cosines


def _hits(table: Any, query: str, rows: Sequence[Mapping[str, Any]]) -> Hits:
    """Make hits, with the turns before and after them."""
    conditions = (
        f"(id = {quoted([row['id']])} AND turn BETWEEN {row['turn'] - 1} AND {row['turn'] + 1})"
        for row in rows
    )
    turns: defaultdict[str, dict[int, Turn]] = defaultdict(dict)
    for row in table.search().where(" OR ".join(conditions)).to_list():
        turns[row["id"]][row["turn"]] = _turn(row)
    return Hits(
        turn_hit(
            query,
            turns[row["id"]],
            row["turn"],
            row=place,
            id=row["id"],
            score=row["score"],
            cosine=row["cosine"],
            domains=tuple(row["domains"]),
            topic=row["topic"] or "",
        )
        for place, row in enumerate(rows)
    )


def _turn(row: Mapping[str, Any]) -> Turn:
    return Turn(row["role"], row["text"], name=row["speaker"], time=row["time"] or "")
