"""The registered corpora: from a name to the module in ``readers`` that reads it, one line each."""

from importlib import import_module

from ..models.errors import InputError, nearest
from .corpus import Corpus

CORPORA = {
    "abcd": "abcd",
    "amazonqa": "unmet.amazonqa",
    "banking77": "banking77",
    "bitod": "unmet.bitod",
    "camrest676": "camrest",
    "clinc150": "clinc150",
    "dailydialog": "dailydialog",
    "dialog2flow_evaluation": "dialog2flow_evaluation",
    "dialogstudio": "dialogstudio",
    "dialogue_nli": "unmet.dialogue_nli",
    "disambiguation": "multiwoz_original",
    "doc2dial": "doc2dial",
    "dstc2": "dstc2",
    "dstc2_babi": "dstc2",
    "dstc2_clean": "woz2",
    "dstc7_ubuntu": "unmet.dstc7_ubuntu",
    "ecommerce": "ecommerce",
    "ecommerce_dialogues": "dialogue_cse",
    "ecommerce_retrieval": "dialogue_cse",
    "ecommerce_sts": "dialogue_cse",
    "few_shot_atis": "few_shot_intent",
    "few_shot_banking77": "few_shot_intent",
    "few_shot_clinc150": "few_shot_intent",
    "few_shot_snips": "few_shot_intent",
    "frames": "unmet.frames",
    "gecor": "camrest",
    "hdsa": "hdsa",
    "hwu64": "few_shot_intent",
    "jddc2018": "jddc2018",
    "jddc_dialogues": "dialogue_cse",
    "jddc_retrieval": "dialogue_cse",
    "jddc_sts": "dialogue_cse",
    "ketod": "sgd",
    "kvret": "kvret",
    "metalwoz": "unmet.metalwoz",
    "msdc": "unmet.msdc",
    "muldogo": "muldogo",
    "multiwoz": "multiwoz",
    "multiwoz20_single_domain": "multiwoz_extracts",
    "multiwoz21": "multiwoz_original",
    "multiwoz21_restaurant": "multiwoz_extracts",
    "multiwoz22": "unmet.multiwoz22",
    "multiwoz22_text": "multiwoz_extracts",
    "multiwoz24": "multiwoz_original",
    "sample": "sample",
    "self_dialogue": "self_dialogue",
    "sgd": "sgd",
    "sim_gen": "simulated",
    "sim_m": "simulated",
    "sim_r": "simulated",
    "snips": "snips",
    "spokenwoz": "unmet.spokenwoz",
    "star": "star",
    "star_small": "star_small",
    "taskmaster1": "taskmaster",
    "taskmaster2": "taskmaster",
    "taskmaster3": "taskmaster",
    "taskmaster4": "taskmaster",
    "titan": "multiwoz_extracts",
    "ubuntu": "unmet.ubuntu_ranking",
    "ubuntu_irc": "ubuntu_irc",
    "woz2": "woz2",
}


def get_corpus(name: str) -> Corpus:
    """Looks a corpus up by its name in `CORPORA`; an InputError says that there is none."""
    if name not in CORPORA:
        raise unknown_corpus(name)
    module = import_module(f"{__package__}.readers.{CORPORA[name]}")
    found: Corpus = next(corpus for corpus in module.CORPORA if corpus.name == name)
    return found


def unknown_corpus(name: str) -> InputError:
    """Makes the error for a name that is not in `CORPORA`."""
    near = nearest(name, CORPORA)
    return InputError(f"corpus: got '{name}', which is neither a file nor a corpus.{near} See 'dialemb corpus list'")
