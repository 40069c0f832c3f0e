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
from ...methods.sessions import spoken
from ...metrics.vectors import unit
from .hits import Hits, TurnHit, best_rows
from .lance_tables import nearest_rows, quoted
from .turn_index import SPEAKER, TIME, WORDS, WORDS_AFTER, WORDS_BEFORE, asked_speaker, asked_time
from .word_index import shared, words_of

CANDIDATES = 100
"""How many turns words and vectors name, each, if no more are wanted."""

SAMPLE = 1_000
"""How many turns tell how far cosines with a query spread."""


def find_turns(
    table: Any, query: str, vector: NDArray[np.float32], top: int, condition: str
) -> Hits:
    """Find the turns that answer a question, best first, of those that fulfil a condition, if there
    is one.
    """
    count = max(CANDIDATES, top)
    asked = [nearest_rows(table, vector, count)]
    if words := dict.fromkeys(words_of(query)):
        asked.append(
            table.search(" ".join(words), query_type="fts", fts_columns="words").limit(count)
        )
    parts = [
        (ask.where(condition, prefilter=True) if condition else ask).to_arrow() for ask in asked
    ]
    average = _cosines(table.search().select(["vector"]).limit(SAMPLE).to_arrow(), vector)
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for part in parts:
        for row, cosine in zip(
            part.drop_columns(["vector"]).to_pylist(), _cosines(part, vector), strict=True
        ):
            rows[row["id"], row["turn"]] = {**row, "cosine": float(cosine)}
    candidates = list(rows.values())
    speaker, time = asked_speaker(query, {row["speaker"] for row in candidates}), asked_time(query)
    scores = (np.array([row["cosine"] for row in candidates]) - average.mean()) / max(
        float(average.std()), 1e-9
    )
    for place, row in enumerate(candidates):
        for at, weight in ((0, 1.0), (-1, WORDS_BEFORE), (1, WORDS_AFTER)):
            scores[place] += (
                WORDS * weight * rows.get((row["id"], row["turn"] + at), {}).get("_score", 0.0)
            )
        scores[place] += SPEAKER * bool(speaker and row["speaker"] == speaker)
        scores[place] += TIME * bool(time and time.match(row["time"] or ""))
    best = best_rows(scores, top).tolist()
    return _hits(
        table, query, [{**candidates[place], "score": float(scores[place])} for place in best]
    )


def _cosines(rows: pa.Table, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(len(rows), len(vector))
    result: NDArray[np.float32] = unit(vectors) @ unit(vector[None])[0]
    return result


def _hits(table: Any, query: str, rows: Sequence[Mapping[str, Any]]) -> Hits:
    """Make hits, with the turns before and after them."""
    places = (
        f"(id = {quoted([row['id']])} AND turn IN ({row['turn'] - 1}, {row['turn'] + 1}))"
        for row in rows
    )
    asked = (
        table.search().where(" OR ".join(places)).select(["id", "turn", "role", "speaker", "text"])
    )
    neighbours = {
        (row["id"], row["turn"]): _named(row) for row in (asked.to_list() if rows else ())
    }
    hits = []
    for place, row in enumerate(rows):
        known: dict[str, Any] = {
            name: row[name] or "" for name in ("role", "turn", "time", "topic", "speaker")
        }
        before, after = (neighbours.get((row["id"], row["turn"] + at), "") for at in (-1, 1))
        words = shared(query, spoken(Turn(row["role"], row["text"], name=row["speaker"])))
        known |= {
            "turn": row["turn"],
            "cosine": row["cosine"],
            "words": words,
            "before": before,
            "after": after,
        }
        hits.append(
            TurnHit(place, row["id"], row["score"], tuple(row["domains"]), row["text"], **known)
        )
    return Hits(hits)


def _named(row: Mapping[str, Any]) -> str:
    return f"{row['speaker'] or row['role']}: {row['text']}"
