"""Items of other libraries as dialogues: texts, chat messages and objects that hold them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..data.loading import load_all
from ..dialogue import Dialogue, Turn
from ..errors import InputError


def read_items(items: Iterable[Any], field: str = "dialogues") -> list[Dialogue]:
    """Read items as `load_dialogues` does, and a text as a turn of the user.

    Errors name the ``field``.
    """
    if isinstance(items, str | Mapping | Dialogue):
        raise InputError(
            f"{field}: got one {type(items).__name__}, expected a list of dialogues; put it into a "
            "list"
        )
    read = []
    for place, item in enumerate(items):
        try:
            read.append(Dialogue((Turn("user", item),)) if isinstance(item, str) else item)
        except InputError as error:
            raise InputError(f"{field}[{place}]: {error}") from None
    try:
        return load_all(read)
    except InputError as error:
        raise InputError(re.sub(r"^dialogues", field, str(error))) from None
