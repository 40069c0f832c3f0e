"""The registered corpora: from a name to the module that reads it."""

from importlib import import_module

from ..errors import InputError, nearest
from ..hooks import Registry
from .corpus import Corpus

_NAMES = {
    "exchanges": ("camrest676", "gecor", "kvret", "sim_m", "woz2"),
    "multiwoz": ("multiwoz", "titan"),
    "sample": ("sample",),
    "star": ("star", "star_small"),
    "tables": ("muldogo", "self_dialogue"),
    "turns": ("dailydialog", "doc2dial", "dstc2", "sgd", "taskmaster4"),
    "ubuntu_irc": ("ubuntu_irc",),
    "utterances": ("banking77", "clinc150", "dialog2flow_evaluation", "snips"),
}
CORPORA = Registry(
    "corpora", {name: f"{__package__}.readers.{module}" for module, names in _NAMES.items() for name in names}
)
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
