"""Cluster Purity, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

Purity = metric_class("purity", __name__)
