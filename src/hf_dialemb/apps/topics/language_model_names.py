"""Let a language model name topics.

It is a model of a server that speaks OpenAI's protocol. The package ``openai`` reads the key from
OPENAI_API_KEY and the address from OPENAI_BASE_URL. No message shows the key.
"""

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from ...errors import InputError
from ...hashing import json_key
from ...storage.files import write_json_atomically
from ..flow.step_names import shortened

API = "api:"  # the beginning of a model's spec
LONGEST_NAME = 60  # characters
_KEY = "OPENAI_API_KEY"
_TIMEOUT = 20.0  # seconds for the server to answer, three times
_MOST_TOKENS = 40
_THOUGHT = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL | re.IGNORECASE)
_AROUND = " \t\"'`´“”‘’«»*_#-–—•.:;,"


def clean_name(answer: str) -> str:
    """Return the first line of an answer that has words, without quotes and marks around it.

    It is cut to `LONGEST_NAME` characters. An answer without words gives an empty text.
    """
    for line in _THOUGHT.sub("", answer).splitlines():
        printable = "".join(letter if letter.isprintable() else " " for letter in line)
        name = " ".join(printable.split()).strip(_AROUND).replace('"', "")
        if any(map(str.isalnum, name)):
            return shortened(name, LONGEST_NAME)
    return ""


def asked_names(prompts: Sequence[str], spec: str, cache: Path | None) -> tuple[list[str], str]:
    """Ask a language model for a name by each prompt.

    The folder ``cache`` keeps answers by model and prompt, so that nothing is asked twice. The
    first prompt that the server refuses is the last one.

    Returns:
        The names, empty ones for no answer, and the reason of these.
    """
    from tqdm.auto import tqdm

    names: list[str] = []
    reason = ""
    for prompt in tqdm(prompts, desc="name", unit="topic", file=sys.stderr, leave=False):
        try:
            name = _name(spec.removeprefix(API), prompt, cache)
        except InputError as error:
            reason = str(error)
            break
        if not name:
            reason = f"model '{spec}': got no name in an answer"
        names.append(name)
    return names + [""] * (len(prompts) - len(names)), reason


def quoted(text: str) -> str:
    """Return a JSON string in which everything that does not print is escaped.

    Line breaks beyond ASCII are escaped too.
    """
    letters = json.dumps(text, ensure_ascii=False)
    return "".join(
        letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in letters
    )


def check_writer(spec: str) -> None:
    """Refuse a language model that cannot be asked, without asking.

    An InputError says that the spec is wrong, or the package or key missing.
    """
    if spec.removeprefix(API) in ("", spec):
        raise InputError(f"model '{spec}': expected api:MODEL; name a model of the server")
    if find_spec("openai") is None:
        raise InputError(
            f"model '{spec}': the package openai is missing; pip install \"hf-dialemb[api]\""
        )
    if not os.environ.get(_KEY):
        raise InputError(f"model '{spec}': {_KEY} is not set; set it to the key of the server")


def _name(model: str, prompt: str, cache: Path | None) -> str:
    """Ask for a name, or read an earlier answer; an answer without a name is not kept."""
    key = json_key([model, os.environ.get("OPENAI_BASE_URL", ""), prompt])[:32]
    path = cache / f"{key}.json" if cache else None
    if path:
        with suppress(OSError, ValueError, LookupError, TypeError):  # missing or damaged
            return str(json.loads(path.read_text(encoding="utf-8"))["name"])
    name = clean_name(_answer(model, prompt))
    if path and name:
        write_json_atomically(path, {"model": model, "prompt": prompt, "name": name})
    return name


def _answer(model: str, prompt: str) -> str:
    """Return the model's answer; an InputError reports a refusal, a missing server or nonsense."""
    import openai

    try:
        with openai.OpenAI(timeout=_TIMEOUT) as client:
            answer = client.chat.completions.create(
                model=model,
                messages=[{"role": "user", "content": prompt}],
                temperature=0,
                max_tokens=_MOST_TOKENS,
            )
        return str(answer.choices[0].message.content or "")
    except (openai.OpenAIError, LookupError, TypeError, AttributeError, ValueError) as error:
        reason = " ".join(str(error).split()).replace(os.environ[_KEY], "***")[:200]
    # Not from the original error, which may hold the request and so the key.
    raise InputError(f"model '{API}{model}': got no answer ({reason}); check the key and address")
