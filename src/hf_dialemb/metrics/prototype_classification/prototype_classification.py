"""Prototype Classification, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

PrototypeClassification = metric_class("prototype_classification", __name__)
