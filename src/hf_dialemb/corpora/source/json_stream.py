"""JSON files read element by element: memory for one record, the standard library's speed, an end to every nesting.

Libraries that stream JSON take quadratic time on deep nesting (ijson), or many times the standard library's time.
"""

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import IO, Any, NoReturn

from ...errors import InputError

GET_AGAIN = "the file is damaged or incomplete: get it again"  # what to do about a file that cannot be parsed
_CHUNK = 1 << 18
_HALF = re.compile(r"\\u[dD]")  # how JSON may spell half a character
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_MARK = "\ufeff"
# What the decoder says where text may only have ended too early: in a string, or within the last few characters.
_UNTERMINATED, _LONGEST_WORD = "Unterminated string", 16
_FORMS = {"[": "a list", "{": "an object"}


class JsonStream:
    """One JSON file, read from its beginning: UTF-8 with or without a byte order mark; errors begin with its name."""

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.name = name
        self._stream = stream
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._ended = False
        self._records = 0
        self._more()
        self._at = len(_MARK) if self._text.startswith(_MARK) else 0

    def children(self, path: Sequence[str], bracket: str) -> Iterator[tuple[str | int, Any]]:
        """Reads the elements of a list or the members of an object."""
        if self._find(path, bracket):
            for key in self._keys(bracket):
                yield key, self._value()
                self._records += 1
            if not path and self._peek():
                self._refuse("something follows the end")

    def _find(self, path: Sequence[str], bracket: str) -> bool:
        """Goes to the container; what lies before it is read and forgotten."""
        opening = self._peek()
        expected = "{" if path else bracket
        if not opening:
            self._refuse("the file is empty")
        if opening != expected:
            if path or opening in _FORMS or opening in '"-tfnIN' or opening.isdigit():  # what JSON may begin with
                got = _FORMS.get(opening, "a single value")
                raise InputError(f"{self.name}: got {got}, expected {_FORMS[expected]}; {GET_AGAIN}")
            self._refuse(f"it begins with {opening!r}")
        for depth, wanted in enumerate(path, start=1):
            inner = bracket if depth == len(path) else "{"
            for key in self._keys("{"):
                if key == wanted and self._peek() == inner:
                    break
                self._skip()
            else:
                return False
        return True

    def _skip(self) -> None:
        opening = self._peek()
        if opening in _FORMS:
            for _ in self._keys(opening):
                self._value()
        else:
            self._value()

    def _keys(self, bracket: str) -> Iterator[str | int]:
        """Steps through a container: yields a position or key, and expects its value to be read before the next."""
        closing = "]" if bracket == "[" else "}"
        self._at += 1
        if self._peek() == closing:
            self._at += 1
            return
        for position in count():
            yield self._key() if bracket == "{" else position
            mark = self._peek()
            if mark not in (",", closing) or not mark:
                self._refuse(f"expected ',' or '{closing}'" if mark else "it ends too early")
            self._at += 1
            if mark == closing:
                return

    def _key(self) -> str:
        if self._peek() != '"':
            self._refuse("expected a key in quotes")
        key = self._value()
        if self._peek() != ":":
            self._refuse("expected ':' after a key")
        self._at += 1
        return str(key)

    def _value(self) -> Any:  # noqa: ANN401 - whatever the file holds
        self._peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                early = error.msg.startswith(_UNTERMINATED) or error.pos >= len(self._text) - _LONGEST_WORD
                if self._ended or not early:
                    self._refuse(error.msg)
            except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets
                self._refuse(str(error))
            else:
                if end < len(self._text) or self._ended:  # a number at the very end may go on
                    if _HALF.search(self._text, self._at, end):
                        check_encodable(value, self.name)
                    self._at = end
                    return value
            self._more()

    def _peek(self) -> str:
        """The next character that is no white space, or nothing at the end; stands on it afterwards."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._more()

    def _more(self) -> None:
        rest = self._text[self._at :]
        content = self._stream.read(max(_CHUNK, len(rest)))
        self._ended = not content
        try:
            self._text, self._at = rest + self._utf8.decode(content, final=self._ended), 0
        except UnicodeDecodeError as error:
            self._refuse(f"broken UTF-8: {error.reason}")

    def _refuse(self, reason: str) -> NoReturn:
        after = f" after {self._records:,} records" if self._records else ""
        raise InputError(f"{self.name}: broken JSON{after} ({reason}); {GET_AGAIN}") from None


def check_encodable(value: Any, name: str) -> None:  # noqa: ANN401
    """Refuses half characters, which JSON can spell as an escape; no tokenizer and no file can hold them."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        start = f"{name}: " if name else ""
        raise InputError(f"{start}got half a character (a lone surrogate), expected text; remove it") from None
