"""Semantic Relatedness, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

SemanticRelatedness = metric_class("semantic_relatedness", __name__)
