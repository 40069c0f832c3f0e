"""All pairs at once: the figures of the single metrics, and those of a few lines of scikit-learn and scipy."""

import numpy as np
import pytest
from given_vectors import clouds, corners
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from hf_dialemb.encoders.specs import load_encoder
from hf_dialemb.evaluation.tasks.domains import evaluate_embeddings, load_domains, pair_scores
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.metrics.dialogue_retrieval.functional import retrieval_scores
from hf_dialemb.metrics.semantic_relatedness.functional import query_relatedness


@pytest.mark.parametrize("make", [clouds, corners])
def test_the_figures_are_those_of_the_metrics_to_the_bit(make):
    vectors, labels = make(np.random.default_rng(0))
    labels[0] = 99  # nobody else's
    found = pair_scores(vectors, labels)
    retrieval, relatedness = retrieval_scores(vectors, labels), query_relatedness(vectors, labels)
    assert found.average_precision.mean() == pytest.approx(retrieval["map"], abs=1e-15)
    assert found.reciprocal_rank.mean() == pytest.approx(retrieval["mrr"], abs=1e-15)
    assert found.spearman.mean() == pytest.approx(relatedness["spearman"], abs=1e-15)
    assert (found.skipped, found.undefined) == (1, relatedness["undefined"])
    assert len(found.spearman) == retrieval["queries"] == len(labels) - 1


@pytest.mark.slow
def test_the_protocol_on_real_dialogues_agrees_with_a_plain_script(data_dir):
    problem = load_domains(CorpusPart("sgd", data_dir, "test", 400))
    vectors = load_encoder("tfidf").encode(problem.dialogues).astype(np.float64)
    labels = np.array(problem.labels)
    figures = {row[:3]: row.mean for row in evaluate_embeddings(vectors, problem.labels, seeds=[0])}

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines, same = unit @ unit.T, labels[:, None] == labels
    rows = []
    for row in range(len(labels)):
        others = np.arange(len(labels)) != row
        scores, relevant = cosines[row, others], same[row, others]
        if relevant.any():
            reciprocal = 1 / (1 + (scores > scores[relevant].max()).sum())
            precision = average_precision_score(relevant, scores)
            rows.append((precision, reciprocal, spearmanr(scores, relevant).statistic))
    names = [("dialogue-retrieval", "map", ""), ("dialogue-retrieval", "mrr", "")]
    names.append(("semantic-relatedness", "spearman", "per-query"))
    assert [figures[name] for name in names] == pytest.approx(100 * np.mean(rows, axis=0), abs=1e-6)
