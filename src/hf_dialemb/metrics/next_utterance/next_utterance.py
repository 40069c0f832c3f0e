"""Next-Utterance Retrieval, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

NextUtterance = metric_class("next_utterance", __name__)
