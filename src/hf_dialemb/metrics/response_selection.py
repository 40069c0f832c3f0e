"""Response selection: a query ranks candidate responses by cosine.

This is the top-k-100 accuracy of DSE, section 4.2.2.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .vectors import (
    COSINE_STEPS,
    directions,
    expected_recall,
    expected_reciprocal_rank,
    places,
    require,
)

# the numbers of first candidates that are searched for the correct one, as in DSE's Table 4
KS = (1, 3, 10)


def selection_scores(
    queries: ArrayLike, candidates: ArrayLike, correct: ArrayLike, ignored: ArrayLike | None = None
) -> dict[str, float]:
    """Compute how soon the right response comes among candidates that all queries share.

    The measure of DSE, section 4.2.2.

    The best of a query's correct candidates is ranked among its wrong ones; its other correct ones
    are left out. Where candidates tie with it (to 1e-9), figures are means over all their orders:
    constant vectors give those of guessing. A zero vector has cosine 0 with everything. Figures
    depend on the number of candidates; the paper has 100.
    """
    asking = directions("queries", queries)
    offered = directions("candidates", candidates)
    right = _mask("correct", correct, (len(asking), len(offered)))
    wrong = ~right if ignored is None else ~right & ~_mask("ignored", ignored, right.shape)
    require(
        right.any(axis=1).all(),
        "correct",
        "a query without a correct candidate",
        "at least one; leave it out",
    )
    scores = np.rint(asking @ offered.T * COSINE_STEPS)
    placed = places(scores, right, wrong)
    recalls = {f"top{k}": float(expected_recall(k, placed).mean()) for k in KS}
    return {**recalls, "mrr": float(expected_reciprocal_rank(placed).mean())}


def _mask(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.asarray(values)
    fit = mask.dtype == np.bool_ and mask.shape == shape
    require(fit, name, f"{mask.dtype} of shape {mask.shape}", f"booleans of shape {shape}")
    return mask
