"""Topics of dialogues, and who raises them, with BERTopic.

Python examples/dialogue_topics.py [MODEL [FILE]].

Needs both: pip install bertopic umap-learn. BERTopic gets ready vectors,
so that any encoder of dialogues serves. FILE is your own conversations, by default made-up ones.
First topics of whole dialogues are found; then each speaker's turns are looked at by themselves.
"""

import sys

from bertopic import BERTopic
from bertopic.vectorizers import ClassTfidfTransformer
from sklearn.cluster import HDBSCAN
from sklearn.feature_extraction.text import CountVectorizer
from umap import UMAP

from hf_dialemb import Dialogue, load_dialogues
from hf_dialemb.evaluation import load_encoder

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

model, source = [*sys.argv[1:], *("all-MiniLM-L6-v2", "sample")[len(sys.argv) - 1 :]]
encoder = load_encoder(model)
dialogues = load_dialogues(source, split="dev") if source == "sample" else load_dialogues(source)
if len(dialogues) < 32:
    raise SystemExit(
        f"{source}: got {len(dialogues)} dialogues, expected at least 32 to find topics; give more"
    )


def text_of(dialogue):
    """Returns what BERTopic takes the words of topics from."""
    return " ".join(turn.content for turn in dialogue.turns)


def topics_of(documents):
    """Finds the topics of dialogues.

    Returns the topic model and the number of each dialogue's topic.
    """
    model = BERTopic(
        embedding_model=None,
        umap_model=UMAP(
            n_components=5, n_neighbors=5, min_dist=0.0, metric="cosine", random_state=0, n_jobs=1
        ),
        hdbscan_model=HDBSCAN(min_cluster_size=len(documents) // 16, copy=True),
        vectorizer_model=CountVectorizer(stop_words="english"),
        ctfidf_model=ClassTfidfTransformer(reduce_frequent_words=True),
        calculate_probabilities=False,
    )
    numbers, _ = model.fit_transform(
        [text_of(document) for document in documents], encoder.encode(documents)
    )
    return model, numbers


def words_of(model, number):
    """Returns the words that tell a topic from the others."""
    return ", ".join(word for word, _ in model.get_topic(number)[:4])


model, numbers = topics_of(dialogues)
print("Topics of whole dialogues")
for number, count in sorted(model.topic_sizes_.items()):
    print(f"{count:4} dialogues: {words_of(model, number) if number >= 0 else '(none)'}")

sides = [
    Dialogue(tuple(turn for turn in dialogue.turns if turn.role == role), dialogue.id)
    for dialogue in dialogues
    for role in dialogue.roles
]
speakers = [side.turns[0].role for side in sides]
model, numbers = topics_of(sides)
roles = sorted(set(speakers), reverse=True)
print("\nTopics of what each speaker says: in how many dialogues")
print("".join(f"{role:>10}" for role in roles))
for number in sorted(set(numbers)):
    raised = [speaker for speaker, found in zip(speakers, numbers, strict=True) if found == number]
    counts = "".join(f"{raised.count(role):10}" for role in roles)
    print(f"{counts}  {words_of(model, number) if number >= 0 else '(none)'}")
