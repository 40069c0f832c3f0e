"""Ranking of Own Candidates, for `evaluate.load`; what it says of itself is in specification.yaml."""

from hf_dialemb.metrics.specification import metric_class

Ranking = metric_class("ranking", __name__)
