"""Anisotropy, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

Anisotropy = metric_class("anisotropy", __name__)
