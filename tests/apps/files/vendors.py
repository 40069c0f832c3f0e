"""Invented files of many systems, one a line of ``files/desks.jsonl`` and ``files/calls.jsonl``,
and what they hold."""

import json
from pathlib import Path

from hf_dialemb.apps.files.findings import Notes
from hf_dialemb.apps.files.form import drafts_of
from hf_dialemb.apps.files.forms import conversations_of, record_forms


def examples(family):
    lines = (
        Path(__file__)
        .with_name("files")
        .joinpath(f"{family}.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    return [json.loads(line) for line in lines]


def drafts_in(value):
    """Return the drafts of a JSON value, the names of the forms of its records, and the notes."""
    notes, drafts, names = Notes(), [], []
    for record in conversations_of(value, record_forms()):
        form = next(form for form in record_forms() if form.has(record))
        names.append(form.name)
        drafts += drafts_of(form, [("file", record)], notes)
    return drafts, names, [problem.message.split(" (")[0] for problem in notes.problems("file")]


def said(drafts):
    return {
        str(draft.id): [[message["role"], message["content"]] for message in draft.messages]
        for draft in drafts
    }
