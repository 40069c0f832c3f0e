"""The conversations in objects of any depth: every list is visited, and scalars are inherited.

A list of objects that have a text and a speaker is a conversation; so are a question beside its
answer, texts in turn, and a transcript in one text. Which fields are what, `evidence` decides for
each path of lists from a sample of the file.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from .columns import SIDES, name_rank
from .evidence import EARLIER, Layout, Record, flat_of, flattened, is_known, layout_of, value_at
from .inherited import fields_around, people_of, ranked_fields
from .joining import IDS, continued, on_path
from .json_values import is_map, opened, pair_of, plain
from .markup import has_markup
from .message_parts import Message, message_in
from .talks import Talk, folded, mail_of, texts_of, versions

_SAMPLE = 300  # objects of a path that show what their fields are
_DEEPEST = 14


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
        if isinstance(value, Mapping) and depth <= _DEEPEST:
            if path.endswith(("[]", "*")) and len(self.samples.setdefault(path, [])) < _SAMPLE:
                self.samples[path].append(plain(value))
            several = is_map(value)
            for name, inner in value.items():
                self._sample(inner, f"{path}.*" if several else f"{path}.{name}", depth + 1)
        elif isinstance(value, list) and depth <= _DEEPEST:
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
        if layout.role and not (inner.role or inner.flags or inner.channel):
            return False  # sentences of somebody's turn
        parts = [f"{path}.{text.replace('/', '.')}" for text in layout.text]
        if layout.role and any(at.startswith(part) for part in parts):
            return False
        around = _common([*layout.text[:1], *layout.role[:1]])
        below = f"{path}.{around.replace('/', '.')}" if around else path
        return not (at.startswith(below) and _alike(layout, inner))

    def find(self, record: Any) -> list[Talk]:
        """Return the conversations in a record of a file."""
        if "messages" in self._given:
            return self._named(opened(record))
        return self.talks(record, "[]", [], "")

    def _named(self, record: Any) -> list[Talk]:
        """Return the messages that lie where the user says."""
        items = record
        for step in self._given["messages"].split("/"):
            items = opened(items.get(step)) if isinstance(items, Mapping) else None
        if not isinstance(items, list):
            return []
        role, text, name, time = (
            [self._given.get(field, field)] for field in ("role", "content", "name", "time")
        )
        layout = Layout(role=role, text=text, name=[*name, *role], time=time)
        where = dict(flattened(record)).get(self._given.get("id", ""))
        context = {**record, **({} if where is None else {"id": where})}
        return [self.listed(items, "[]", [context], "", layout)]

    def talks(self, value: Any, path: str, context: list[Record], key: str) -> list[Talk]:
        """Return the conversations in a value."""
        value = opened(value)
        if len(path) > 400 or not isinstance(value, list | Mapping):
            return []
        if isinstance(value, Mapping):
            return self._in_object(value, path, context, key)
        return self._in_list(value, f"{path}[]", context, key)

    def _in_list(self, value: list[Any], path: str, context: list[Record], key: str) -> list[Talk]:
        items = [plain(item) if isinstance(item, Mapping) else item for item in map(opened, value)]
        objects = [item for item in items if isinstance(item, Mapping)]
        if objects and self.speaks(path, objects):
            return [self.listed(items, path, context, key, self.layout(path))]
        if objects and context and all(map(pair_of, objects)) and not any(map(_has_id, objects)):
            return [Talk(partial(self._exchanges, objects, path), path, fields_around(context))]
        lists = [item for item in items if isinstance(item, list)]
        if lists and not objects and all(map(_is_said_pair, lists)):
            return [self._of_pairs(lists, path, context, key)]
        several = [self.talks(item, path, context, "") for item in (items if objects else lists)]
        talks = [talk for inner in several for talk in inner]
        is_split = path.endswith("channels[]")  # a recording by channels
        if not context or len(talks) < 2 or not (is_split or lists == items):
            return talks
        if not all(talk.layout.text for talk in talks):
            return talks
        whole = [
            {**message, **({"channel": number} if is_split else {})}
            for number, inner in enumerate(several)
            for talk in versions(inner)
            for message in talk.messages
        ]
        return [Talk(lambda: whole, path, fields_around(context), key, talks[0].layout)]

    def _in_object(self, value: Record, path: str, context: list[Record], key: str) -> list[Talk]:
        inside = [*context, {**value, "": key} if key else value]
        sides = pair_of(value)
        others = [inner for name, inner in value.items() if name not in sides]
        if sides and not any(map(_has_lists, others)):
            around = fields_around(inside, is_pair=True)
            return [Talk(partial(self._sides, value, path), path, around)]
        several = is_map(value)
        if several and self.speaks(f"{path}.*", list(value.values())):
            items = [{"id": name, **plain(item)} for name, item in value.items()]
            return [self.listed(items, path, context, key, self.layout(f"{path}.*"))]
        talks: list[Talk] = []
        for name, inner in value.items():
            at = f"{path}.*" if several else f"{path}.{name}"
            is_id = several or re.search(r"[\d@]", str(name))
            talks += self.talks(inner, at, inside, str(name) if is_id else "")
        for talk in talks:
            if talk.layout.text and not talk.has_opening:
                first = list(self._opening(value, talk, path, inside))
                marked = [{**message, "markup": True} for message in talk.messages]
                is_markup = any(message.get("markup") for message in first)
                talk.messages = first + (marked if is_markup else talk.messages)
                talk.has_opening = bool(first)
        if not talks and isinstance(value.get("subject"), str) and (opening := mail_of(value)):
            layout = Layout(text=["description"])
            return [Talk(lambda: [opening], path, fields_around(inside), key, layout)]
        return talks or texts_of(value, path, inside)

    def _opening(
        self, value: Record, talk: Talk, path: str, context: list[Record]
    ) -> Iterator[Message]:
        """Yield a message that lies beside the list of the others, as a ticket's first mail."""
        layout = talk.layout
        if opening := mail_of(value):
            if folded(opening["content"]) != talk.first_text:
                yield {**opening, "role": "user" if layout.flags else "requester"}
            return
        for name, inner in value.items():
            inner = opened(inner)
            step = re.split(r"[.\[]", talk.path[len(path) + 1 :])[0]
            if not isinstance(inner, Mapping) or step == name:
                continue
            flat = dict(flattened(inner))
            texts = [flat[path] for path in layout.text if flat.get(path)]
            if texts and any(flat.get(path) for path in layout.role):
                times = {at: value[at] for at in layout.time if at in value}
                for message in message_in({**times, **flat}, layout, people_of(context)):
                    yield {**message, "markup": has_markup(str(texts[0]))}

    def listed(
        self,
        values: Sequence[Any],
        path: str,
        context: list[Record],
        key: str,
        layout: Layout,
        places: Mapping[int, str] | None = None,
    ) -> Talk:
        """Return the conversation of a list of messages; rows of a table have places."""
        name = path.rpartition(".")[2].strip("[]")
        around = fields_around(context, {name})
        home = id(context[-1]) if context else 0
        read = partial(self._listed, values, path, context, layout, places)
        return Talk(read, path, around, key, layout, home, values)

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
        last = next((node for node in nodes if node), None)
        threads = Counter(str(value_at(flat_of(item, layout), layout.thread)) for item in items)
        default = "user" if layout.is_flat and not layout.speaks else ""
        for item in on_path(items, layout, last):
            if "left_out" in item:
                yield dict(item)
                continue
            flat = flat_of(item, layout)
            replies = self.replies(path, layout, flat)
            beside = _beside(flat, layout, threads, bool(replies), places is not None)
            if places is not None:
                beside["place"] = places[id(item)]
            if layout.sides:
                yield from (message | beside for message in _sides_of(flat, layout))
                continue
            near = ((flat_of(reply, inner), inner) for inner, some in replies for reply in some)
            for record, fields in [(flat, layout), *near]:
                for message in message_in(record, fields, people, default):
                    yield message | beside

    def replies(self, at: str, outer: Layout, flat: Record) -> list[tuple[Layout, list[Record]]]:
        """Return lists of messages in a message, such as the answers to a post."""
        lists: list[tuple[Layout, list[Record]]] = []
        for name, inner in () if outer.is_flat else flat.items():
            path = f"{at}.{name.replace('/', '.')}[]"
            if isinstance(inner, list) and path in self.samples and not EARLIER.search(name):
                layout = self.layout(path)
                if layout.role and name not in outer.text and self.speaks(path):
                    lists.append((layout, inner))
        return lists

    def _of_pairs(self, lists: list[Any], path: str, context: list[Record], key: str) -> Talk:
        """Make messages of pairs: of a speaker and a text, or of a question and an answer."""
        firsts = [str(item[0]) for item in lists]
        are_names = not any(len(first) > 40 or first.rstrip()[-1:] in "?!," for first in firsts)
        again = len(set(firsts)) <= max(2, len(firsts) / 3)
        if are_names and (again or sum(map(is_known, firsts)) > len(firsts) / 2):
            items = [{"role": who, "content": text} for who, text in lists]
            layout = Layout(role=["role"], text=["content"], name=["role"])
            return self.listed(items, path, context, key, layout)
        items = [dict(zip(SIDES, item, strict=True)) for item in lists]
        return Talk(partial(self._exchanges, items, path), path, fields_around(context))

    def _exchanges(self, items: Sequence[Record], path: str) -> Iterator[Message]:
        for item in items:
            yield from self._sides(item, path)

    def _sides(self, value: Record, path: str) -> Iterator[Message]:
        """Yield what is asked and answered, after what was so before."""
        history = value.get("history")
        messages: list[Message] = [
            {"role": side, "content": str(text), "name": ""}
            for exchange in (history if isinstance(history, list) else [])
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
        if isinstance(value, str):
            yield {"role": side, "content": value, "name": "", "raw": [value]}
        elif talks := self.talks(value, path, [], ""):
            for talk in talks:
                yield from talk.messages
        elif isinstance(value, Mapping):
            layout = self.layout(path, [value])
            yield from message_in(flat_of(value, layout), layout, {}, side)


def _sides_of(row: Record, layout: Layout) -> Iterator[Message]:
    """Yield what each side says in a row."""
    spoken = [(side, row.get(at, "")) for side, at in zip(SIDES, layout.sides, strict=True)]
    for side, text in [pair for pair in spoken if pair[1].strip()] or spoken[:1]:
        message = {"role": side, "content": text, "name": "", "raw": [text]}
        if time := value_at(row, layout.time):
            message["time"] = time
        yield {**message, "markup": layout.is_markup}


def _beside(
    flat: Record, layout: Layout, threads: Mapping[str, int], has_replies: bool, is_grouped: bool
) -> Message:
    """Return what tells the conversations of a list apart."""
    thread = value_at(flat, layout.thread)
    group = None if is_grouped else value_at(flat, layout.group)
    if thread is not None and threads[str(thread)] > 1:
        group = thread
    if has_replies and group is None and not is_grouped:
        group = value_at(flat, IDS) or value_at(flat, layout.text)
    return {} if group is None else {"group": str(group).rpartition("/conversations/")[2]}


def _has_lists(value: Any) -> bool:
    """Return whether an object has lists of messages of both sides."""
    return isinstance(value, Mapping) and any(isinstance(value[at], list) for at in pair_of(value))


def _has_id(value: Record) -> bool:
    return any(name_rank(kind, str(at)) is not None for kind in ("id", "group") for at in value)


def _is_said_pair(item: list[Any]) -> bool:
    return len(item) == 2 and isinstance(item[1], str)


def _common(paths: Sequence[str]) -> str:
    """Return the objects in which several fields lie."""
    steps = [path.split("/")[:-1] for path in paths]
    shared = [names[0] for names in zip(*steps, strict=False) if len(set(names)) == 1]
    return "/".join(shared)


def _alike(outer: Layout, inner: Layout) -> bool:
    """Return whether inner messages have the fields of the outer ones, as replies have."""

    def ends(paths: Sequence[str]) -> set[str]:
        return {path.rpartition("/")[2] for path in paths}

    return bool(ends(outer.text) & ends(inner.text) and ends(outer.role) & ends(inner.role))
