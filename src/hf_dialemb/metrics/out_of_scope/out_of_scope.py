"""Out-of-Scope Detection, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

OutOfScope = metric_class("out_of_scope", __name__)
