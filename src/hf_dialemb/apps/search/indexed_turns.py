"""Turns in a LanceDB table, found by words and meaning.

LanceDB's own hybrid search joins ranks, or scores that it stretches to 0 to 1, and finds far less
on LoCoMo (dev; see docs/search.md). So LanceDB finds turns by words and by vectors, and both are
joined here as `TurnIndex` joins them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...dialogue import Turn
from ...metrics.vectors import unit
from .hits import Hits, TurnHit, best_rows
from .lance_tables import nearest_rows, quoted
from .turn_index import (
    SPEAKER,
    TIME,
    WORDS,
    WORDS_AFTER,
    WORDS_BEFORE,
    asked_speaker,
    asked_time,
    named,
    turn_hit,
)
from .word_index import words_of

CANDIDATES = 100
"""How many turns words and vectors name, each, if no more are wanted."""

SAMPLE = 1_000
"""How many turns tell how far cosines with a query spread."""

_OF_SHARES = {0: 1.0, -1: WORDS_BEFORE, 1: WORDS_AFTER}


def find_turns(
    table: Any, query: str, vector: NDArray[np.float32], top: int, condition: str
) -> Hits:
    """Find the turns that answer a question, best first, of those that fulfil a condition."""
    count = max(CANDIDATES, top)
    asked = [nearest_rows(table, vector, count)]
    if words := dict.fromkeys(words_of(query)):
        by_words = table.search(" ".join(words), query_type="fts", fts_columns="words")
        asked.append(by_words.limit(count))
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for search in asked:
        part = (search.where(condition, prefilter=True) if condition else search).to_arrow()
        cosines = _cosines(part, vector)
        for row, cosine in zip(part.drop_columns(["vector"]).to_pylist(), cosines, strict=True):
            rows[row["id"], row["turn"]] = {**row, "cosine": float(cosine)}
    sample = _cosines(table.search().select(["vector"]).limit(SAMPLE).to_arrow(), vector)
    spread = max(float(sample.std()), 1e-9)
    speaker = asked_speaker(query, {row["speaker"] for row in rows.values()})
    time = asked_time(query)
    for (name, turn), row in rows.items():
        row["score"] = (row["cosine"] - float(sample.mean())) / spread
        for at, share in _OF_SHARES.items():
            row["score"] += WORDS * share * rows.get((name, turn + at), {}).get("_score", 0.0)
        row["score"] += SPEAKER * bool(speaker and row["speaker"] == speaker)
        row["score"] += TIME * bool(time and time.match(row["time"] or ""))
    candidates = list(rows.values())
    best = best_rows(np.array([row["score"] for row in candidates]), top)
    return _hits(table, query, [candidates[place] for place in best])


def _cosines(rows: pa.Table, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(len(rows), len(vector))
    result: NDArray[np.float32] = unit(vectors) @ unit(vector[None])[0]
    return result


def _hits(table: Any, query: str, rows: Sequence[Mapping[str, Any]]) -> Hits:
    """Make hits, with the turns before and after them."""
    if not rows:
        return Hits()
    places = (
        f"(id = {quoted([row['id']])} AND turn IN ({row['turn'] - 1}, {row['turn'] + 1}))"
        for row in rows
    )
    asked = table.search().where(" OR ".join(places))
    beside = {(row["id"], row["turn"]): named(_turn(row)) for row in asked.to_list()}
    return Hits(_hit(place, row, query, beside) for place, row in enumerate(rows))


def _hit(
    place: int, row: Mapping[str, Any], query: str, beside: Mapping[tuple[str, int], str]
) -> TurnHit:
    return turn_hit(
        _turn(row),
        query,
        row=place,
        id=row["id"],
        score=row["score"],
        cosine=row["cosine"],
        domains=tuple(row["domains"]),
        turn=row["turn"],
        topic=row["topic"] or "",
        before=beside.get((row["id"], row["turn"] - 1), ""),
        after=beside.get((row["id"], row["turn"] + 1), ""),
    )


def _turn(row: Mapping[str, Any]) -> Turn:
    return Turn(row["role"], row["text"], name=row["speaker"], time=row["time"] or "")
