"""The registered corpora: from a name to the module that reads it."""

from importlib import import_module

from ..errors import InputError, nearest
from ..hooks import Registry
from .corpus import CATALOGUE, Corpus

CORPORA = Registry("corpora", {name: f"{__package__}.readers.{stated['module']}" for name, stated in CATALOGUE.items()})
"""From the name of a corpus to the module that reads it; entry points add to it."""


def get_corpus(name: str) -> Corpus:
    """Look up a corpus in `CORPORA`; raise `InputError` if it is unknown."""
    if name not in CORPORA:
        raise unknown_corpus(name)
    corpora: tuple[Corpus, ...] = import_module(CORPORA[name]).CORPORA
    return next(corpus for corpus in corpora if corpus.name == name)


def unknown_corpus(name: str) -> InputError:
    """Make the error for a name that is not in `CORPORA`."""
    near = nearest(name, CORPORA)
    return InputError(f"corpus: got '{name}', which is neither a file nor a corpus.{near} See 'dialemb corpus list'")
