"""Write a page: one HTML file that needs no other file and no network."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...storage.files import write_text_atomically


def write_page(
    path: Path,
    template: Path,
    record: Mapping[str, Any],
    scripts: Sequence[str],
    *,
    styles: Path | None = None,
    **values: object,
) -> None:
    """Write a page: one HTML file, whole or not at all, that needs no other file and no network.

    The template and the ``scripts`` lie in one folder; ``styles`` is another that it includes from.
    It gets ``data``, the record as JSON, ``scripts`` with their ``hashes``, and the values. By the
    hashes, a browser runs these scripts alone, whatever the record holds.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    loader = FileSystemLoader([template.parent, styles or template.parent])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    programs = [(template.parent / name).read_text(encoding="utf-8") for name in scripts]
    digests = [
        base64.b64encode(hashlib.sha256(program.encode()).digest()).decode() for program in programs
    ]
    data = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    page = environment.get_template(template.name).render(
        # Nothing in it ends the element, or begins a comment.
        data=Markup(
            re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", data)
        ),
        scripts=[Markup(program) for program in programs],
        hashes=[f"'sha256-{digest}'" for digest in digests],
        **values,
    )
    write_text_atomically(path, page.encode("utf-8", "replace").decode("utf-8"))
