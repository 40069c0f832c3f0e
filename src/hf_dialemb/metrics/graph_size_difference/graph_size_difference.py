"""Graph Size Difference, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

GraphSizeDifference = metric_class("graph_size_difference", __name__)
