"""Alignment and Uniformity, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

AlignmentUniformity = metric_class("alignment_uniformity", __name__)
