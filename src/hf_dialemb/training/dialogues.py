"""The dialogues that a run learns from, and those that choose its checkpoint.

Loaded and kept apart.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..data import CORPORA, get_corpus, load_dialogues
from ..data.corpus import ALL, SPLITS
from ..data.corpus_names import is_own, with_split
from ..data.labels import unified_dialogue
from ..data.leakage import build_index
from ..data.published import splits_at_hand
from ..dialogue import Dialogue
from ..errors import InputError
from ..hashing import text_key
from ..methods.method import Method
from .settings import Report, RunArguments


def training_dialogues(
    run: RunArguments,
    method: Method,
    seed: int,
    report: Report,
    given: Sequence[Dialogue] | None = None,
) -> list[Dialogue]:
    """Load the training dialogues, or take those given.

    Leave out evaluation sets and what the method cannot use.
    """
    sets = _training_sets(run) if given is None else []
    loaded = list(given or ()) or [
        dialogue for corpus, split in sets for dialogue in _load(run, corpus, split)
    ]
    dialogues = _usable(_without_leaks(loaded, run, sets, report), run, method, report)
    if len(dialogues) > 1 and len(set(map(text_key, dialogues))) == 1:
        raise InputError(
            f"dialogues: got {len(dialogues):,} that all say the same, expected different ones, as "
            "a method learns what tells them apart; add others"
        )
    return unified(drawn(dialogues, run.max_dialogues, seed), method)


def unified(dialogues: list[Dialogue], method: Method) -> list[Dialogue]:
    """Unify the names of labels for a method that learns from them."""
    return [unified_dialogue(dialogue) for dialogue in dialogues] if method.labelled else dialogues


def drawn(dialogues: list[Dialogue], most: int | None, seed: int) -> list[Dialogue]:
    """Draw at most this many dialogues, in their order.

    The first would be few domains, as corpora are often sorted.
    """
    if most is None:
        return dialogues
    rows = np.random.default_rng(seed).permutation(len(dialogues))[:most]
    return [dialogues[row] for row in sorted(rows)]


def dev_dialogues(
    run: RunArguments, method: Method, report: Report, given: Sequence[Dialogue] | None = None
) -> list[Dialogue]:
    """Load the dialogues that choose the checkpoint, or take those given.

    None without a dev split.
    """
    if run.dev_split is None:
        return []
    if given is None:
        sets = [(run.dev_split, "")] if _own_dev(run) else _dev_sets(run, run.dev_split)
        given = [
            dialogue
            for corpus, split in dict.fromkeys(sets)
            for dialogue in _load(run, corpus, split)
        ]
    purity = run.checkpoint_selection == "dev_purity"
    labelled = [dialogue for dialogue in given if len(dialogue.domains) == 1 or not purity]
    # whatever the run's seed
    dialogues = drawn(_usable(labelled, run, method, report), run.max_dev_dialogues, seed=0)
    if not dialogues:
        of = " of one label in domains, which dev_purity reads" if purity else ""
        raise InputError(
            f"dev_split: got '{run.dev_split}' without a dialogue{of} that is long enough, "
            "expected some; choose another, or another checkpoint_selection"
        )
    return unified(dialogues, method)


def _dev_sets(run: RunArguments, dev: str) -> list[tuple[str, str]]:
    sets = []
    learnt = _training_sets(run)
    for corpus, _ in learnt:
        has_dev = dev in get_corpus(corpus).splits if corpus in CORPORA else not is_own(corpus)
        if has_dev and not {(corpus, ALL), (corpus, dev)} & set(learnt):
            sets.append((corpus, dev))
    if not sets:
        raise InputError(
            f"dev_split: got '{dev}', expected a split of {' or '.join(run.corpus)} that is not "
            "learnt from; choose another, give a file (--dev_split FILE), or none"
        )
    return sets


def _training_sets(run: RunArguments) -> list[tuple[str, str]]:
    """Split the names of corpora, as ``multiwoz/dev``, into corpus and split."""
    sets = map(with_split, run.corpus)
    return list(dict.fromkeys((corpus, split or run.train_split) for corpus, split in sets))


def _load(run: RunArguments, corpus: str, split: str) -> list[Dialogue]:
    if corpus not in CORPORA:
        return load_dialogues(
            corpus, run.data_dir, None if is_own(corpus) else split, **run.reading()
        )
    return load_dialogues(corpus, run.data_dir, split, strict=run.strict)


def _without_leaks(
    dialogues: list[Dialogue], run: RunArguments, sets: Sequence[tuple[str, str]], report: Report
) -> list[Dialogue]:
    """Leave out the content of evaluation sets.

    Those that were named, or the other splits of the corpora.
    """
    names = list(run.exclude or ())
    if run.exclude is None:
        for corpus in dict.fromkeys(corpus for corpus, _ in sets if corpus in CORPORA):
            used = {split for name, split in sets if name == corpus}
            others = [] if ALL in used else [split for split in SPLITS if split not in used]
            present = splits_at_hand(get_corpus(corpus), run.data_dir, others)
            names += [f"{corpus}/{split}" for split in present]
    if run.dev_split is not None and _own_dev(run) and names != ["none"]:
        names.append(run.dev_split)
    if names in ([], ["none"]):
        return dialogues
    try:
        index = build_index(names, run.data_dir, **run.reading())
    except InputError as error:
        raise InputError(f"exclude: {error}; or leave everything in (--exclude none)") from None
    left_out: Counter[str] = Counter()
    kept = list(index.clean(dialogues, left_out, cut=True))
    report(
        f"Left out of training, as {', '.join(names)} hold them or nearly so: "
        f"{left_out['dialogues']:,} dialogues ({left_out['turns']:,} turns)"
    )
    if not kept:
        raise InputError(
            f"exclude: {', '.join(names)} hold all that is learnt from; name other sets, or leave "
            "everything in (--exclude none)"
        )
    return kept


def _usable(
    dialogues: Sequence[Dialogue], run: RunArguments, method: Method, report: Report
) -> list[Dialogue]:
    least = method.min_turns if run.min_turns is None else run.min_turns
    kept = [dialogue for dialogue in dialogues if len(dialogue.turns) >= least]
    if len(kept) < len(dialogues):
        report(f"Left out {len(dialogues) - len(kept):,} dialogues of fewer than {least} turns")
    if method.min_speakers > 1 and not run.strict:
        paired = [dialogue for dialogue in kept if len(dialogue.roles) >= method.min_speakers]
        if kept and not paired:
            raise InputError(
                f"{method.name} learns from two speakers: got {len(kept):,} dialogues of one; say "
                "who is who (--roles) or take another method (--method dse)"
            )
        if len(paired) < len(kept):
            report(f"Left out {len(kept) - len(paired):,} dialogues of one speaker")
        kept = paired
    return kept


def _own_dev(run: RunArguments) -> bool:
    return run.dev_split not in SPLITS and is_own(str(run.dev_split))
