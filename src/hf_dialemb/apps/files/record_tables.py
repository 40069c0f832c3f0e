"""The conversations in objects of any depth: every list is visited, and scalars are inherited.

A list of objects that have a text and a speaker is a conversation; so are a question beside its
answer, texts in turn, and a transcript in one text. Which fields are what, `evidence` decides for
each path of lists from a sample of the file.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from .columns import SIDES, name_rank
from .evidence import (
    EARLIER,
    Layout,
    flat_of,
    is_known,
    is_transcript,
    layout_of,
    value_at,
    words_of,
)
from .joining import IDS, continued, on_path
from .json_values import Record, flattened, opened, pair_of, plain
from .markup import has_markup, plain_text
from .message_parts import Message, called, message_in
from .talks import Talk, address_of, fields_around, folded, people_of, ranked_fields, versions
from .transcripts import draft_of_text

_SAMPLE = 300  # objects of a path that show what their fields are
_DEEPEST = 14
_PAIRS = Layout(role=["role"], text=["content"], name=["role"])
_NOT_SAID = re.compile(
    r"(tags?|labels?|topics?|domains?|services?|urls?|ids?|models?|keywords?|categories|roles|"
    r"speakers|users|participants|languages?|personality|persona\w*|candidates)"
)


class Conversations:
    """Finds the conversations in the records of a file, after a look at some of them."""

    def __init__(self, records: Iterable[Any], given: Mapping[str, str]) -> None:
        self._given = given
        self.samples: dict[str, list[Record]] = {}  # of objects, by path
        self._layouts: dict[str, Layout] = {}
        self._speaks: dict[str, bool] = {}
        for record in records:
            self._sample(record, "[]", 0)

    def _sample(self, value: Any, path: str, depth: int) -> None:
        value = opened(value)
        if depth > _DEEPEST:
            return
        if isinstance(value, Mapping):
            if path.endswith("[]") and len(self.samples.setdefault(path, [])) < _SAMPLE:
                self.samples[path].append(plain(value))
            for name, inner in value.items():
                self._sample(inner, f"{path}.{name}", depth + 1)
        elif isinstance(value, list):
            for inner in value:
                self._sample(inner, f"{path}[]", depth + 1)

    def layout(self, path: str, items: Sequence[Any] = ()) -> Layout:
        """Return the fields of the objects at a path."""
        if path not in self._layouts:
            sample = self.samples.get(path) or [plain(item) for item in items[:_SAMPLE]]
            self._layouts[path] = layout_of(sample)
        return self._layouts[path]

    def speaks(self, path: str, items: Sequence[Any] = ()) -> bool:
        """Return whether the objects at a path are messages, not records that hold messages."""
        if path not in self._speaks:
            layout = self.layout(path, items)
            self._speaks[path] = False
            inner = (at for at in self.samples if at.startswith(f"{path}."))
            self._speaks[path] = layout.speaks and not any(
                self._divides(layout, path, at) for at in inner
            )
        return self._speaks[path]

    def _divides(self, layout: Layout, path: str, at: str) -> bool:
        """Return whether the messages at an inner path make records of the outer objects."""
        if not self.speaks(at):
            return False
        inner = self.layout(at)
        texts = tuple(f"{path}.{text.replace('/', '.')}" for text in layout.text)
        is_sentence = not (inner.role or inner.flags or inner.channel)
        if layout.role and (is_sentence or at.startswith(texts)):
            return False
        steps = [path.split("/")[:-1] for path in (*layout.text[:1], *layout.role[:1])]
        shared = [
            first for first, *others in zip(*steps, strict=False) if [first] * len(others) == others
        ]
        is_reply = _alike(layout.text, inner.text) and _alike(layout.role, inner.role)
        return not (is_reply and at.startswith(".".join([path, *shared])))

    def find(self, record: Any) -> list[Talk]:
        """Return the conversations in a record of a file."""
        if "messages" not in self._given:
            return versions(self.talks(record, "[]", []))
        record = plain(opened(record))
        flat = dict(flattened(record))
        items = opened(flat.get(self._given["messages"]))
        role, text, time, name = (
            [self._given.get(field, field)] for field in ("role", "content", "time", "name")
        )
        layout = Layout(role=role, text=text, time=time, name=[*name, *role])
        where = flat.get(self._given.get("id", ""))
        context = {**record, **({} if where is None else {"id": where})}
        return [self.listed(items, "[]", [context], layout)] if isinstance(items, list) else []

    def talks(self, value: Any, path: str, context: list[Record]) -> list[Talk]:
        """Return the conversations in a value."""
        value = opened(value)
        if isinstance(value, Mapping) and len(context) <= _DEEPEST:
            return self._in_object(value, path, [*context, value])
        if isinstance(value, list) and path.count("[]") <= _DEEPEST:
            items = [
                plain(item) if isinstance(item, Mapping) else item for item in map(opened, value)
            ]
            return self._in_list(items, f"{path}[]", context)
        return []

    def _in_list(self, items: list[Any], path: str, context: list[Record]) -> list[Talk]:
        objects = [item for item in items if isinstance(item, Mapping)]
        lists = [item for item in items if isinstance(item, list)]
        if objects and self.speaks(path, objects):
            return [self.listed(items, path, context, self.layout(path))]
        are_texts = [len(item) == 2 and isinstance(item[1], str) for item in lists]
        if lists and not objects and all(are_texts):
            keys = ("role", "content") if _are_names([str(who) for who, _ in lists]) else SIDES
            objects = [dict(zip(keys, item, strict=True)) for item in lists]
            if keys != SIDES:
                return [self.listed(objects, path, context, _PAIRS)]
        several = [self.talks(item, path, context) for item in (objects or lists)]
        talks = [*chain(*several)]
        are_sides = all(map(pair_of, objects)) and not any(map(_has_id, objects))
        is_recording = path.endswith("channels[]")
        if len(talks) < 2 or not context or not (is_recording or are_sides):
            return talks
        whole = [
            {**message, **({"channel": number} if is_recording else {})}
            for number, inner in enumerate(several)
            for talk in versions(inner)
            for message in talk.messages
        ]
        return [Talk(lambda: whole, path, fields_around(context), talks[0].layout)]

    def _in_object(self, value: Record, path: str, inside: list[Record]) -> list[Talk]:
        sides = pair_of(value)
        others = [inner for name, inner in value.items() if name not in sides]
        if sides and not any(map(_has_lists, others)):
            spoken = {*chain(*map(pair_of, inside))}
            return [Talk(partial(self._sides, value, path), path, fields_around(inside, spoken))]
        talks: list[Talk] = []
        for name, inner in value.items():
            talks += self.talks(inner, f"{path}.{name}", inside)
        for talk in talks:
            if talk.layout.text and not talk.has_opening:
                first = list(self._opening(value, talk, path, inside))
                if any(message.get("markup") for message in first):
                    talk.messages = [{**message, "markup": True} for message in talk.messages]
                talk.messages = first + talk.messages
                talk.has_opening = bool(first)
        if not talks and isinstance(value.get("subject"), str) and (opening := _mail_of(value)):
            layout = Layout(text=["description"])
            return [Talk(lambda: [opening], path, fields_around(inside), layout)]
        return talks or _texts_of(value, path, inside)

    def _opening(
        self, value: Record, talk: Talk, path: str, context: list[Record]
    ) -> Iterator[Message]:
        """Yield a message that lies beside the list of the others, as a ticket's first mail."""
        layout = talk.layout
        if opening := _mail_of(value):
            if folded(opening["content"]) not in talk.texts[:1]:
                yield {**opening, "role": "user" if layout.flags else "requester"}
            return
        step = re.split(r"[.\[]", talk.path[len(path) + 1 :])[0]
        times = {at: value[at] for at in layout.time if at in value}
        for name, inner in plain(value).items():
            flat = dict(flattened(inner)) if isinstance(inner, Mapping) and name != step else {}
            text = value_at(flat, layout.text)
            if text and value_at(flat, layout.role):
                for message in message_in({**times, **flat}, layout, people_of(context)):
                    yield {**message, "markup": has_markup(str(text))}

    def listed(
        self,
        values: Sequence[Any],
        path: str,
        context: list[Record],
        layout: Layout,
        places: Mapping[int, str] | None = None,
    ) -> Talk:
        """Return the conversation of a list of messages; rows of a table have places."""
        name = path.rpartition(".")[2].strip("[]")
        home = id(context[-1]) if context else 0
        read = partial(self._listed, values, path, context, layout, places)
        return Talk(read, path, fields_around(context, {name}), layout, home, values)

    def _listed(
        self,
        values: Sequence[Any],
        path: str,
        context: list[Record],
        layout: Layout,
        places: Mapping[int, str] | None,
    ) -> Iterator[Message]:
        items = [item for item in values if isinstance(item, Mapping)]
        if len(items) < len(values):
            yield {"left_out": "a message that is no object", "raw": values}
        people = people_of(context, items)
        nodes = [at.get("current_node", at.get("currentId")) for at in context]
        threads = Counter(
            str(value_at(flat_of(item, layout), layout.thread)) for item in items if layout.thread
        )
        default = "user" if layout.is_flat and not layout.speaks else ""
        sides = [
            (replace(layout, text=[at], kinds=()), side)
            for side, at in zip(SIDES, layout.sides, strict=False)
        ] or [(layout, default)]
        for item in on_path(items, layout, next(filter(None, nodes), None)):
            if "left_out" in item:
                yield dict(item)
                continue
            flat = flat_of(item, layout)
            replies = [] if layout.is_flat else self.replies(path, layout, flat)
            thread = value_at(flat, layout.thread)
            group = value_at(flat, layout.group) if places is None else None
            if thread is not None and threads[str(thread)] > 1:
                group = thread
            elif replies and group is None and places is None:
                group = value_at(flat, (*IDS, *layout.text))
            beside = {} if places is None else {"place": places[id(item)]}
            if group is not None:
                beside["group"] = str(address_of(group))
            filled = [(flat, *side) for side in sides if value_at(flat, side[0].text) is not None]
            read = filled or [(flat, *sides[0])]
            for inner, some in replies:
                read += [(flat_of(reply, inner), inner, "") for reply in some]
            for record, fields, role in read:
                for message in message_in(record, fields, people, role):
                    yield message | beside

    def replies(self, at: str, outer: Layout, flat: Record) -> list[tuple[Layout, list[Record]]]:
        """Return lists of messages in a message, such as the answers to a post."""
        lists: list[tuple[Layout, list[Record]]] = []
        for name, inner in flat.items():
            path = f"{at}.{name.replace('/', '.')}[]"
            if isinstance(inner, list) and path in self.samples and not EARLIER.search(name):
                layout = self.layout(path)
                if layout.role and name not in outer.text and self.speaks(path):
                    lists.append((layout, inner))
        return lists

    def _sides(self, value: Record, path: str) -> Iterator[Message]:
        """Yield what is asked and answered, after what was so before."""
        messages: list[Message] = []
        if isinstance(value.get("history"), list):
            messages = [
                _said(side, str(text))
                for exchange in value["history"]
                for text, side in zip(exchange, SIDES, strict=False)
            ]
        time = ranked_fields(dict(flattened(value)), "time")
        beside = {"time": time[0][1]} if time else {}
        for name, side in zip(pair_of(value), SIDES, strict=True):
            inner = opened(value[name])
            if name == "input" and isinstance(value.get("instruction"), str):
                inner = "\n".join(filter(None, (value["instruction"], inner)))
            latest = self._under(inner, side, f"{path}.{name}")
            messages = continued(messages, [beside | message for message in latest])
        yield from messages

    def _under(self, value: Any, side: str, path: str) -> Iterator[Message]:
        """Yield what is said in a side of a pair."""
        talks = self.talks(value, path, [])
        for talk in talks:
            yield from talk.messages
        if isinstance(value, str):
            yield _said(side, value)
        elif isinstance(value, Mapping) and not talks:
            layout = self.layout(path, [value])
            yield from message_in(flat_of(value, layout), layout, {}, side)


def _said(role: str, text: str, name: str = "") -> Message:
    return {"role": role, "content": text, "name": name, "raw": [text]}


def _mail_of(value: Record) -> Message:
    """Return the description of a ticket as the first message of who opened it."""
    text = value.get("description_text") or value.get("description")
    is_ticket = isinstance(value.get("subject"), str) or "requester_id" in value
    if not is_ticket or not isinstance(text, str):
        return {}
    mail = _said("requester", text, called(str(value.get("requester_name") or "")))
    return {**mail, "time": value.get("created_at"), "markup": has_markup(text)}


def _texts_of(value: Record, path: str, inside: list[Record]) -> list[Talk]:
    """Return texts in turn, or a transcript in one text, of an object that has nothing better."""
    talks = []
    for name, inner in value.items():
        around = fields_around(inside, {name})
        if isinstance(inner, str) and is_transcript(inner):
            talks.append(Talk(partial(_transcribed, inner), f"{path}.{name}", around))
        if not isinstance(inner, list) or _NOT_SAID.fullmatch(str(name).lower()):
            continue
        is_long = sum(map(words_of, inner)) > 1.5 * len(inner)
        is_said = is_long or name_rank("content", str(name)) is not None
        if is_said and len(inner) > 1 and all(isinstance(text, str) for text in inner):
            read = partial(_in_turn, inner, value.get("speakers"))
            return [Talk(read, f"{path}.{name}", around)]
    for first in talks[:1]:
        first.more = talks[1:]
    return talks[:1]


def _in_turn(texts: list[str], speakers: Any) -> Iterator[Message]:
    """Yield texts that speakers say in turn, if they are not listed."""
    is_listed = isinstance(speakers, list) and len(speakers) == len(texts)
    for number, text in enumerate(texts):
        who = str(speakers[number]) if is_listed else ("first", "second")[number % 2]
        yield _said(who, text, called(who) if is_listed else "")


def _transcribed(text: str) -> Iterator[Message]:
    for message in draft_of_text("", plain_text(text) if "<" in text else text).messages:
        inner = {field: value for field, value in message.items() if field != "place"}
        yield {**inner, "raw": [text]}


def _has_lists(value: Any) -> bool:
    """Return whether an object has lists of messages of both sides."""
    return isinstance(value, Mapping) and any(isinstance(value[at], list) for at in pair_of(value))


def _has_id(value: Record) -> bool:
    return any(name_rank(kind, str(at)) is not None for kind in ("id", "group") for at in value)


def _are_names(firsts: list[str]) -> bool:
    """Return whether the first texts of pairs are of speakers, not questions."""
    if any(len(first) > 40 or first.rstrip()[-1:] in "?!," for first in firsts):
        return False
    again = len(set(firsts)) <= max(2, len(firsts) / 3)
    return again or sum(map(is_known, firsts)) > len(firsts) / 2


def _alike(outer: Sequence[str], inner: Sequence[str]) -> bool:
    """Return whether fields of inner messages are named as those of outer ones, as in replies."""
    ends = [{path.rpartition("/")[2] for path in paths} for paths in (outer, inner)]
    return bool(ends[0] & ends[1])
