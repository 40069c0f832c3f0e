"""Dialogue Retrieval, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

DialogueRetrieval = metric_class("dialogue_retrieval", __name__)
