"""nDCG of Binary Relevance, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

Ndcg = metric_class("ndcg", __name__)
