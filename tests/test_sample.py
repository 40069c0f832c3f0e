"""Facts about the generated corpus: sizes, determinism, labels that fit the text, and that it is no trivial task."""

import hashlib
import os
import subprocess
import sys
from collections import Counter

import pytest

from hf_dialemb.corpora import load_dialogues, single_domain
from hf_dialemb.corpora.readers.sample import DOMAINS

SIZES = {"train": 480, "dev": 96, "test": 240}
DIGEST = "bebc33d83e67b7c3d9bf13692c4bc465abcfed2ee0701ac959df4f1d2392bdbb"


@pytest.fixture(scope="module")
def splits():
    return {split: load_dialogues("sample", None, split) for split in SIZES}


def test_sizes_roles_balanced_domains_acts_and_slot_values_that_stand_in_the_text(splits):
    everything = [dialogue for dialogues in splits.values() for dialogue in dialogues]
    assert {split: len(dialogues) for split, dialogues in splits.items()} == SIZES
    assert {turn.role for dialogue in everything for turn in dialogue.turns[::2]} == {"user"}
    assert {turn.role for dialogue in everything for turn in dialogue.turns[1::2]} == {"assistant"}
    assert set(range(6, 17)) == {len(dialogue.turns) for dialogue in everything}
    for dialogues in splits.values():
        assert single_domain(dialogues) == dialogues
        counts = Counter(dialogue.domains[0] for dialogue in dialogues)
        assert set(counts) == set(DOMAINS)
        assert max(counts.values()) - min(counts.values()) <= 1
    assert len({tuple(turn.content for turn in dialogue.turns) for dialogue in everything}) == len(everything)
    assert len({dialogue.id for dialogue in everything}) == len(everything)
    for dialogue in everything:
        assert sum(bool(turn.intents) for turn in dialogue.turns) == 1
        for turn in dialogue.turns:
            assert turn.dialogue_acts
            assert not set("[]{}|#") & set(turn.content)
            assert turn.content[0].isupper() or turn.content[0].isdigit()
            assert all(name and value in turn.content for name, value in turn.slots)
    filled = [turn for dialogue in splits["test"] for turn in dialogue.turns if any(value for _, value in turn.slots)]
    assert len(filled) > 1000


def test_the_same_on_every_machine_whatever_the_hash_seed(splits):
    assert hashlib.sha256(repr(list(splits.values())).encode()).hexdigest() == DIGEST
    program = "from hf_dialemb.corpora import load_dialogues; print(load_dialogues('sample', None, 'dev'))"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    there = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == repr(splits["dev"])


@pytest.mark.slow
def test_words_can_tell_the_domain_but_counting_them_does_not(splits):
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import normalized_mutual_info_score

    texts, labels = {}, {}
    for split, dialogues in splits.items():
        texts[split] = [" ".join(turn.content for turn in dialogue.turns) for dialogue in dialogues]
        labels[split] = [dialogue.domains[0] for dialogue in dialogues]
    words = CountVectorizer().fit(texts["train"])
    train, test = words.transform(texts["train"]), words.transform(texts["test"])
    clusters = KMeans(len(DOMAINS), n_init=4, random_state=0).fit_predict(test)
    assert normalized_mutual_info_score(labels["test"], clusters) < 0.5
    assert LogisticRegression(max_iter=1000).fit(train, labels["train"]).score(test, labels["test"]) > 0.95
