"""The command ``dialemb publish``: a model, a metric or a dataset to the Hub, in one commit."""

from __future__ import annotations

import argparse
from pathlib import Path

from .parser import Parser, add_command, named, say

_HELP = """The folder is one that dialemb export wrote, with a card (dialemb model card); with --repo-type space a
metric's name will do, with --repo-type dataset one that dialemb papers corpus unify wrote. The repository then holds
just that folder.

Before anything is sent, the folder is checked for pickles, secrets, paths on your machine, damaged or missing files. If
it stops, run it again and it goes on; it makes no commit if nothing has changed. Log in with 'hf auth login'.

example: dialemb publish published/dial2vec-minilm --repo-id org/dial2vec-minilm --verify
         dialemb publish published/dial2vec-minilm --repo-id org/dial2vec-minilm --dry-run"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command."""
    parser = add_command(commands, "publish", "Publish a model, a metric or a dataset on the Hub in one commit.", _HELP)
    parser.add_argument("path", type=Path, help="the folder")
    parser.add_argument("--repo-id", required=True, help="where to: org/name; created if absent")
    parser.add_argument("--repo-type", default="model", help="model, space or dataset (default: model)")
    parser.add_argument("--private", action="store_true", help="create a private repository")
    parser.add_argument("--revision", help="branch, created if absent (default: main)")
    parser.add_argument("--dry-run", action="store_true", help="only list the files and whatever stands in the way")
    parser.add_argument("--verify", action="store_true", help="download it afterwards and compare it with the folder")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..hub.publish.publishing import publish

    more = named(options, "repo_type", "private", "revision", "dry_run", "verify")
    publish(options.path, options.repo_id, report=say, **more)
