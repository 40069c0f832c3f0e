"""Response Selection, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

ResponseSelection = metric_class("response_selection", __name__)
