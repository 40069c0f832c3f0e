"""Published sizes of the corpora, and why ours may differ.

``splits`` has pairs of items and utterances of train, dev and test, as far as they exist; None
where no count exists.
"""

PUBLISHED = {
    "abcd": {"splits": [(3, 72)], "note": "72 counts the agent's button clicks, which nobody says"},
    "banking77": {"splits": [(10_003, 10_003), (3_080, 3_080)]},
    "camrest676": {"splits": [(676, 5_488)], "note": "published as a whole; cut 3:1:1"},
    "chitchat": {
        "splits": [(7_168, 258_145)],
        "note": "published as a whole; cut 18:1:1 by a hash of the id; 33 messages without text "
        "are left out",
    },
    "clinc150": {
        "splits": [(15_000, 15_000), (3_000, 3_000), (4_500, 4_500)],
        "note": "ours with 100 / 100 / 1,000 out-of-scope utterances, published apart",
    },
    "dailydialog": {"splits": [(11_118, 87_170), (1_000, 8_069), (1_000, 7_740)]},
    "dialog2flow_evaluation": {"splits": [(4_695, 4_695)]},
    "dialogstudio": {"splits": [(130, None)]},
    "doc2dial": {"splits": [(787, 5_264)]},
    "dstc2": {"splits": [(1_612, 21_742), (506, 7_362), (1_117, 18_663)]},
    "dstc2_babi": {
        "splits": [(1_618, 28_808), (500, 8_318), (1_117, 22_474)],
        "note": "silences, blanks and database queries are no utterances",
    },
    "ecommerce": {
        "splits": [(154, 154), (154, 154), (1_000, 1_000)],
        "note": "published as lines, one per candidate",
    },
    "ecommerce_dialogues": {"splits": [(1_000, None)]},
    "ecommerce_retrieval": {"splits": [(2_373, 2_373)]},
    "ecommerce_sts": {"splits": [(500, 500)]},
    "few_shot_atis": {"splits": [(4_478, 4_478), (500, 500), (893, 893)]},
    "few_shot_banking77": {"splits": [(8_622, 8_622), (1_540, 1_540), (3_080, 3_080)]},
    "few_shot_clinc150": {"splits": [(15_000, 15_000), (3_000, 3_000), (4_500, 4_500)]},
    "few_shot_snips": {"splits": [(13_084, 13_084), (700, 700), (700, 700)]},
    "gecor": {"splits": [(676, 5_488)], "note": "published as a whole; cut 3:1:1"},
    "hdsa": {"splits": [(1_000, 14_748), (1_000, 14_744)]},
    "jddc2018": {"splits": [(10_270, None), (1_141, None)]},
    "jddc_retrieval": {"splits": [(2_094, 2_094), (6_970, 6_970)]},
    "jddc_sts": {"splits": [(1_000, 1_000), (2_000, 2_000)]},
    "kvret": {
        "splits": [(2_425, 12_732), (302, 1_567), (304, 1_629)],
        "note": "blank turns, and one dialogue without turns, are left out",
    },
    "muldogo": {
        "splits": [(9_900, 81_676), (1_413, 11_585), (2_834, 23_336)],
        "note": "blank turns are left out",
    },
    "multiwoz": {"splits": [(2_494, None), (999, 14_730), (1_000, 14_744)]},
    "multiwoz20_single_domain": {"splits": [(2_924, 28_912)]},
    "multiwoz21_restaurant": {"splits": [(442, 4_048)]},
    "multiwoz22_text": {"splits": [(512, 7_060)]},
    "self_dialogue": {
        "splits": [(24_165, 372_718)],
        "note": "published as a whole; one dialogue has no sentence",
    },
    "sgd": {
        "splits": [(14_734, 285_590), (2_482, 48_726), (3_817, 73_118)],
        "note": "two blank final turns are left out",
    },
    "sim_m": {"splits": [(384, 3_562), (120, 1_134), (264, 2_464)]},
    "snips": {"splits": [(13_784, 13_784), (700, 700)]},
    "star": {
        "splits": [(6_652, 108_137)],
        "note": "447 dialogues hold no utterance; published without splits",
    },
    "taskmaster1": {"splits": [(1, 20)]},
    "taskmaster4": {"splits": [(710, 2_669)]},
    "titan": {"splits": [(903, 14_188)]},
    "ubuntu_irc": {
        "splits": [(1_631, 11_385), (69, 484), (122, 1_103)],
        "note": "three messages that are actions were not counted there",
    },
    "woz2": {"splits": [(600, 4_472), (200, 1_460), (400, 2_892)]},
}
