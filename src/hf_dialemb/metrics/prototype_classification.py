"""Few-shot classification by prototypes (DSE, section 4.2; Dialog2Flow, section 5.1).

The nearest class mean wins.
"""

import numpy as np
from numpy.typing import ArrayLike

from .vectors import check_supported, prototype_products, require


def prototype_classification(
    supports: ArrayLike,
    support_labels: ArrayLike,
    queries: ArrayLike,
    query_labels: ArrayLike,
    *,
    unit_prototypes: bool = False,
) -> dict[str, float]:
    """Classify queries by the prototype with the greatest product.

    As in DSE, section 4.2, and Dialog2Flow, section 5.1.

    Vectors are brought to length 1; a prototype is the mean of its class's supports. As in the
    papers' programs it is not brought to length 1 again, so that classes of unlike supports attract
    fewer queries. A zero vector has product 0 with every prototype. Of equal products the first
    label in order wins.
    """
    from sklearn.metrics import f1_score

    true = np.asarray(query_labels)
    labels, products = prototype_products(supports, support_labels, queries, unit_prototypes)
    require(
        true.shape == products.shape[:1],
        "query_labels",
        f"shape {true.shape}",
        f"({len(products)},)",
    )
    check_supported("query_labels", true, labels)
    guessed = labels[products.argmax(axis=1)]
    return {
        "accuracy": float((guessed == true).mean()),
        "macro_f1": float(
            f1_score(true, guessed, labels=np.unique(true), average="macro", zero_division=0)
        ),
    }
