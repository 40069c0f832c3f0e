"""Corpora that only the papers' tables use, and datasets made of several corpora."""

_NAMES = {
    "dialogstudio": ("dialogstudio",),
    "dialogue_cse": (
        *("ecommerce", "ecommerce_dialogues", "ecommerce_retrieval", "ecommerce_sts"),
        *("jddc2018", "jddc_dialogues", "jddc_retrieval", "jddc_sts"),
    ),
    "few_shot_intent": ("few_shot_atis", "few_shot_banking77", "few_shot_clinc150", "few_shot_snips", "hwu64"),
    "multiwoz_versions": (
        *("disambiguation", "hdsa", "multiwoz20_single_domain", "multiwoz21", "multiwoz21_restaurant"),
        *("multiwoz22", "multiwoz22_text", "spokenwoz"),
    ),
    "task_dialogues": ("abcd", "dstc2_babi", "taskmaster1"),
    "unmet": (
        *("amazonqa", "bitod", "dialogue_nli", "dstc2_clean", "dstc7_ubuntu", "frames", "ketod", "metalwoz", "msdc"),
        *("sim_gen", "sim_r", "taskmaster2", "taskmaster3", "ubuntu"),
    ),
}
CORPORA = {name: f"{__name__}.readers.{module}" for module, names in _NAMES.items() for name in names}
"""From the name of a corpus to the module that reads it."""
