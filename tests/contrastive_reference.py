"""The contrastive losses written out from their formulas, one term at a time."""

import math

import torch
from torch import Tensor


def dse(queries: Tensor, responses: Tensor, temperature: float, form: str) -> float:
    """DSE's loss of M pairs of unit vectors: equations 1 to 3, or its program's form, or NT-Xent."""
    rows = [*queries, *responses]
    count, total = len(rows), 0.0
    for i in range(count):
        partner = (i + count // 2) % count
        e = [math.exp(float(rows[i] @ row) / temperature) for row in rows]
        negatives = [j for j in range(count) if j not in (i, partner)]
        mean = sum(e[j] for j in negatives) / len(negatives)
        if form == "plain":
            denominator = e[partner] + sum(e[j] for j in negatives)
        elif form == "hard":
            denominator = e[partner] + sum(e[j] / mean * e[j] for j in negatives)
        else:
            denominator = sum(
                math.exp(e[j] / mean * float(rows[i] @ rows[j]) / temperature) for j in range(count) if j != i
            )
        total -= math.log(e[partner] / denominator)
    return total / count


def dialog2flow(anchors: Tensor, positives: Tensor, targets: list[list[float]], temperature: float) -> float:
    """Dialog2Flow's loss of N pairs of unit vectors: equation 5 with the targets of 1 or 4, in both directions."""
    total, count = 0.0, len(anchors)
    for a, b in ((anchors, positives), (positives, anchors)):
        for i in range(count):
            z = sum(math.exp(float(a[i] @ row) / temperature) for row in b)
            for j in range(count):
                total -= targets[i][j] * math.log(math.exp(float(a[i] @ b[j]) / temperature) / z)
    return total / (2 * count)


def soft_targets(labels: Tensor, temperature: float) -> list[list[float]]:
    """Equation 4, of N unit vectors of labels."""
    e = [[math.exp(float(one @ other) / temperature) for other in labels] for one in labels]
    return [[value / sum(row) for value in row] for row in e]


def unit(rows: int, width: int, seed: int) -> Tensor:
    """Random unit vectors in float64."""
    vectors = torch.randn(rows, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(vectors)
