"""How often names of topics are right, beside the words of BERTopic, on test splits that chose
nothing.

The dialogues of three corpora and the sentences of two of intents are clustered without labels. The
right label of a topic is that of more than half of its dialogues: the services of SGD with their
intents, the domains of MultiWOZ, the domains of STAR with their tasks, the intents of Clinc150 and
BANKING77. Topics of which no label has the half are left
out: no name is right. A name is right in words if it shares a word's basic form with that label;
words that three labels or more have do not count. It is right in meaning if its vector, by
all-MiniLM-L6-v2, is nearer to that label's than to any other's. Names of BERTopic are the four
words of its labels. A list has more chances to share a word the longer it is, so BERTopic's are
also cut to as many words as our names have on average; and as topics that are small or large are
easier or harder to name, BERTopic also gives its words for the topics that we found. All with one
seed of Louvain's method and of UMAP. Another version of the package's names is measured where its
``naming.py`` is given.

Of conversations without labels, such as the chats of the package chitchat-dataset, the names are
listed, and those are counted that are no names: the same as another, with a greeting, of stop words
alone, or of more than five words.

    git show 3df1ebe7:src/hf_dialemb/topics/naming.py > before.py
    HF_DIALEMB_DATA=corpora python benchmarks/topic_names.py --before before.py --chats
    chitchat_dataset/dataset.json \
        --output docs/results/topic_names.json

Vectors are kept in a folder beside the output. BERTopic comes with the extra ``topics``.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from pathlib import Path
from types import ModuleType

import numpy as np
from hardware import describe_machine
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.preprocessing import normalize
from topics import OURS, as_text, bertopic, drawn, encoded

import hf_dialemb
from hf_dialemb.apps.search.word_index import words_of
from hf_dialemb.apps.topics import naming, topic_clustering
from hf_dialemb.dialogue import ROLES, Dialogue
from hf_dialemb.storage.files import kept_vectors, write_json_atomically
from hf_dialemb.storage.pretrained import MINILM

DIALOGUES, INTENTS = ("sgd", "multiwoz", "star"), ("clinc150", "banking77")
MOST = 3_000  # sentences of a corpus of intents
SHARED = 3  # labels that have a word from which on it says nothing
SEEDS = range(1)  # of Louvain's method and of UMAP
DEV = {"banking77": "train"}
OUT_OF_SCOPE = "oos"
BERTOPIC_WORDS = 4
CHATS = 400  # conversations of a file without labels
LONGEST = 5  # words of a name
GREETING = {
    "hello",
    "hi",
    "hey",
    "hola",
    "greetings",
    "thanks",
    "thank",
    "bye",
    "goodbye",
    "welcome",
    "please",
    "sorry",
}
SERVICES = {
    "Services_1": "HairStylist",
    "Services_2": "Dentist",
    "Services_3": "Doctor",
    "Services_4": "Therapist",
}
"""What SGD's schema says of services whose name says nothing."""


def read(corpus: str, split: str) -> tuple[list[Dialogue], list[str]]:
    """Read dialogues of one domain, or sentences of one intent, and their labels."""
    split = DEV.get(corpus, split) if split == "dev" else split
    if corpus in INTENTS:
        whole = hf_dialemb.load_dialogues(corpus, split=split)
        whole = [dialogue for dialogue in whole if dialogue.turns[0].intents[0] != OUT_OF_SCOPE]
        kept = [
            whole[row] for row in np.sort(np.random.default_rng(0).permutation(len(whole))[:MOST])
        ]
        return kept, [dialogue.turns[0].intents[0] for dialogue in kept]
    dialogues = drawn(corpus, split)
    return dialogues, [
        SERVICES.get(name, name).partition("_")[0] for (name,) in (own.domains for own in dialogues)
    ]


def descriptions(
    corpus: str, dialogues: Sequence[Dialogue], labels: Sequence[str]
) -> dict[str, str]:
    """Write out each label, and behind a domain the intents of its dialogues, the most frequent
    first.
    """
    result = {label: split_words(label) for label in sorted(set(labels))}
    if corpus in INTENTS:
        return result
    for label in result:
        own = [
            dialogue for dialogue, other in zip(dialogues, labels, strict=True) if other == label
        ]
        intents = Counter(
            intent for dialogue in own for turn in dialogue.turns for intent in turn.intents
        )
        result[label] = ", ".join(
            [result[label], *(split_words(intent) for intent, _ in intents.most_common())]
        )
    return result


def split_words(label: str) -> str:
    """Split a label into words: "ReserveRestaurant" into "reserve restaurant"."""
    return " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", label)).lower()


def judged(
    names: Sequence[str], right: Sequence[str], labels: dict[str, str], encode: Callable
) -> np.ndarray:
    """Judge names (T,): whether each is right in words, and in meaning, ``(T, 2)``."""
    stems = {label: set(words_of(text)) for label, text in labels.items()}
    often = Counter(stem for own in stems.values() for stem in own)
    vectors = normalize(encode(list(labels.values())))
    given = normalize(encode([name or "nothing" for name in names]))
    order = list(labels)
    nearest = [order[row] for row in (given @ vectors.T).argmax(axis=1)]
    rows = []
    for name, label, near in zip(names, right, nearest, strict=True):
        shared = {stem for stem in stems[label] & set(words_of(name)) if often[stem] < SHARED}
        named = name not in ("", naming.SMALL_TALK, naming.GREETINGS)
        rows.append((bool(shared), named and near == label))
    return np.array(rows, dtype=bool)


def named(
    way: ModuleType, dialogues: Sequence[Dialogue], labels: np.ndarray, unit: np.ndarray
) -> list[str]:
    """Name topics as `find_topics` does, by a version of the package."""
    left_out = way.set_phrases(dialogues, labels)
    roles = (ROLES[0] if ROLES[0] in dialogue.roles else "" for dialogue in dialogues)
    said = [
        way.without_set_phrases(own, left_out, role)
        for own, role in zip(dialogues, roles, strict=True)
    ]
    means = np.stack([unit[labels == number].mean(axis=0) for number in range(labels.max() + 1)])
    return way.names_of(said, labels, means, hf_dialemb.load_encoder(OURS).encode_utterances)


def named_by_bertopic(model: object, words: int) -> list[str]:
    """Join the first words of each topic of BERTopic; its labels are made of four."""
    return [
        " ".join(word for word, _ in own[:words])
        for number, own in sorted(model.get_topics().items())
        if number >= 0
    ]


def bertopic_of(dialogues: Sequence[Dialogue], labels: np.ndarray) -> tuple[object, np.ndarray]:
    """Give topics to BERTopic, which finds their words.

    Return it, and its numbers of the same topics.
    """
    from bertopic import BERTopic
    from bertopic.backend import BaseEmbedder
    from bertopic.cluster import BaseCluster
    from bertopic.dimensionality import BaseDimensionalityReduction

    parts = {"embedding_model": BaseEmbedder(), "umap_model": BaseDimensionalityReduction()}
    model = BERTopic(**parts, hdbscan_model=BaseCluster())
    return model, np.array(model.fit_transform(list(map(as_text, dialogues)), y=labels)[0])


def measured(
    corpus: str, options: argparse.Namespace, before: ModuleType | None
) -> list[dict[str, object]]:
    """Measures a corpus: a row for each way, with the names of the first seed."""
    dialogues, truth = read(corpus, options.split)
    cache = options.cache or options.output.with_suffix("")
    minilm = MINILM.rpartition("/")[2]
    ours, other = (
        kept_vectors(
            cache / f"{corpus}-{options.split}-{model}.safetensors",
            partial(encoded, model, dialogues),
        )
        for model in (OURS, minilm)
    )
    labels, unit = descriptions(corpus, dialogues, truth), normalize(ours)
    encode = hf_dialemb.load_encoder(minilm).encode_utterances
    groupings = [topic_clustering.find_clusters(unit, seed=seed) for seed in SEEDS]
    joined = [naming.with_small_talk_joined(dialogues, found) for found in groupings]
    ways = {"dialemb topics": [(found, named(naming, dialogues, found, unit)) for found in joined]}
    if before:
        ways["dialemb topics, before"] = [
            (found, named(before, dialogues, found, unit)) for found in groupings
        ]
    if options.split != "dev":
        length = round(
            np.mean([len(name.split()) for _, names in ways["dialemb topics"] for name in names])
        )
        own = [bertopic(dialogues, other, seed) for seed in SEEDS]
        given = [bertopic_of(dialogues, found) for found in joined]
        for way, models in (("BERTopic over MiniLM", own), ("BERTopic's words, our topics", given)):
            for words, more in ((BERTOPIC_WORDS, ""), (length, ", as many words")):
                ways[way + more] = [
                    (found, named_by_bertopic(model, words)) for model, found in models
                ]
    return [row(corpus, way, found, truth, labels, encode) for way, found in ways.items()]


def row(
    corpus: str,
    way: str,
    found: list[tuple[np.ndarray, list[str]]],
    truth: Sequence[str],
    labels: dict[str, str],
    encode: Callable,
) -> dict[str, object]:
    """Make a row.

    Shares of names that are right, in percent, over all topics of all seeds that have a right name.
    """
    verdicts, names, mixed = [], [], 0
    for number, (grouping, given) in enumerate(found):
        majority = [
            majority_of(np.array(truth)[grouping == topic].tolist()) for topic in range(len(given))
        ]
        pairs = [(name, label) for name, label in zip(given, majority, strict=True) if label]
        mixed += len(given) - len(pairs)
        verdicts.append(judged(*map(list, zip(*pairs, strict=True)), labels, encode))
        if number == 0:
            right = [
                " and ".join(compress(("words", "meaning"), of)) or "neither" for of in verdicts[0]
            ]
            names = [
                f"{name} | {label} | {verdict}"
                for (name, label), verdict in zip(pairs, right, strict=True)
            ]
    every = np.concatenate(verdicts)
    shares = {
        "words": every[:, 0],
        "meaning": every[:, 1],
        "either": every.any(axis=1),
        "both": every.all(axis=1),
    }
    percent = {key: 100 * float(right.mean()) for key, right in shares.items()}
    length = float(np.mean([len(name.split()) for _, given in found for name in given]))
    counts = {"topics": len(every), "mixed": mixed, "seeds": len(found), "length": length}
    return {"corpus": corpus, "name": way, **counts, **percent, "names": names}


def listed(path: str) -> dict[str, object]:
    """Name the topics of the first conversations of a file, and count the names that are none."""
    topics = hf_dialemb.find_topics(hf_dialemb.load_dialogues(path)[:CHATS], OURS)
    names = [topic.name for topic in topics.by_size]
    given = [name for name in names if name not in (naming.SMALL_TALK, naming.GREETINGS)]
    words = [split_words(name).split() for name in given]
    counts = {
        "topics": len(names),
        "twice": len(names) - len({name.partition(" (")[0].casefold() for name in names}),
        "greetings": sum(not GREETING.isdisjoint(own) for own in words),
        "stop words": sum(bool(own) and ENGLISH_STOP_WORDS.issuperset(own) for own in words),
        "long": sum(len(own) > LONGEST for own in words),
    }
    return {"file": Path(path).name, "conversations": len(topics.corpus), **counts, "names": names}


def list_of(files: list[dict[str, object]]) -> list[str]:
    """Make a line for each file of conversations without labels."""
    keys = ("topics", "twice", "greetings", "stop words", "long")
    lines = [
        "| File (conversations) | Topics | Twice | Greetings | Stop words | Over five words | "
        "Names |"
    ]
    lines.append("| :-- | --: | --: | --: | --: | --: | :-- |")
    for file in files:
        counts = " | ".join(str(file[key]) for key in keys)
        lines.append(
            f"| {file['file']} ({file['conversations']}) | {counts} | {'; '.join(file['names'])} |"
        )
    return lines


def majority_of(labels: list[str]) -> str:
    """Return the label of more than half, or nothing."""
    (label, count), *_ = Counter(labels).most_common(1)
    return label if 2 * count > len(labels) else ""


def table(rows: list[dict[str, object]]) -> list[str]:
    """Make a line for each corpus and way, and for all topics of each way."""
    lines = [
        "| Corpus | Names | Topics | Words | Right, % | in words, % | in meaning, % | in both, % |"
    ]
    lines.append("| :-- | :-- | --: | --: | --: | --: | --: | --: |")
    keys = ("length", "either", "words", "meaning", "both")
    for way in dict.fromkeys(row["name"] for row in rows):
        own = [row for row in rows if row["name"] == way]
        count = sum(row["topics"] for row in own)
        pooled = {key: sum(row[key] * row["topics"] for row in own) / count for key in keys}
        rows = [
            *rows,
            {"corpus": "all", "name": way, "topics": count, "seeds": own[0]["seeds"], **pooled},
        ]
    for one in sorted(rows, key=lambda row: row["corpus"] == "all"):
        shares = " | ".join(f"{one[key]:.1f}" for key in keys)
        lines.append(
            f"| {one['corpus']} | {one['name']} | {one['topics'] / one['seeds']:g} | {shares} |"
        )
    return lines


def loaded(path: Path) -> ModuleType:
    """Load another version of the module of names, which uses the rest of the package as it is."""
    spec = importlib.util.spec_from_file_location("hf_dialemb.apps.topics.before", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Measures the corpora, and writes figures and their table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--split", choices=("dev", "test"), default="test", help="which part (default: test)"
    )
    parser.add_argument(
        "--corpus",
        nargs="+",
        default=(*DIALOGUES, *INTENTS),
        help="which corpora (default: all five)",
    )
    parser.add_argument(
        "--before", type=Path, help="naming.py of another version, to be measured too"
    )
    parser.add_argument(
        "--chats", nargs="+", default=[], help="files of conversations without labels"
    )
    parser.add_argument("--output", type=Path, required=True, help="the results file")
    parser.add_argument(
        "--cache", type=Path, help="where vectors are kept (default: a folder beside the output)"
    )
    options = parser.parse_args()
    before = loaded(options.before) if options.before else None
    rows = [row for corpus in options.corpus for row in measured(corpus, options, before)]
    files = [listed(path) for path in options.chats]
    record = {
        "split": options.split,
        "hardware": describe_machine(),
        "rows": rows,
        "table": table(rows),
    }
    record |= {"files": files, "names": list_of(files)}
    write_json_atomically(options.output, record)
    print("\n".join([*record["table"], *record["names"]]))


if __name__ == "__main__":
    main()
