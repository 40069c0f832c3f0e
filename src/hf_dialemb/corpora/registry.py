"""The registered corpora: from a name to the module in ``readers`` that reads it."""

from importlib import import_module

from ..errors import InputError, nearest
from ..hooks import Registry
from .corpus import Corpus

# Corpora whose module has their name, those of which the reader never met the real files, and modules of several.
_NAMES = (
    "abcd banking77 clinc150 dailydialog dialog2flow_evaluation dialogstudio doc2dial ecommerce hdsa jddc2018 kvret "
    "muldogo multiwoz sample self_dialogue snips star star_small ubuntu_irc"
)
_UNMET = "amazonqa bitod dialogue_nli dstc7_ubuntu frames metalwoz msdc multiwoz22 spokenwoz"
_MODULES = {
    "camrest": "camrest676 gecor",
    "dialogue_cse": "ecommerce_dialogues ecommerce_retrieval ecommerce_sts jddc_dialogues jddc_retrieval jddc_sts",
    "dstc2": "dstc2 dstc2_babi",
    "few_shot_intent": "few_shot_atis few_shot_banking77 few_shot_clinc150 few_shot_snips hwu64",
    "multiwoz_extracts": "multiwoz20_single_domain multiwoz21_restaurant multiwoz22_text titan",
    "multiwoz_original": "disambiguation multiwoz21 multiwoz24",
    "sgd": "ketod sgd",
    "simulated": "sim_gen sim_m sim_r",
    "taskmaster": "taskmaster1 taskmaster2 taskmaster3 taskmaster4",
    "unmet.ubuntu_ranking": "ubuntu",
    "woz2": "dstc2_clean woz2",
}
CORPORA = Registry(
    "corpora",
    {
        **{name: f"{__package__}.readers.{name}" for name in _NAMES.split()},
        **{name: f"{__package__}.readers.unmet.{name}" for name in _UNMET.split()},
        **{name: f"{__package__}.readers.{module}" for module, names in _MODULES.items() for name in names.split()},
    },
)


def get_corpus(name: str) -> Corpus:
    """Looks a corpus up by its name in `CORPORA`; an InputError says that there is none."""
    if name not in CORPORA:
        raise unknown_corpus(name)
    module = import_module(CORPORA[name])
    found: Corpus = next(corpus for corpus in module.CORPORA if corpus.name == name)
    return found


def unknown_corpus(name: str) -> InputError:
    """Makes the error for a name that is not in `CORPORA`."""
    near = nearest(name, CORPORA)
    return InputError(f"corpus: got '{name}', which is neither a file nor a corpus.{near} See 'dialemb corpus list'")
