"""Made-up figures of models, and how they were measured."""

from hf_dialemb.evaluation.results.rows import Row

RUN = {
    "command": "dialemb papers benchmark --suite small --model one two",
    "config": {},
    "seeds": [0, 1],
    "versions": {"python": "3.11.7", "numpy": "2.4.6"},
    "hardware": "a machine, 2 cores",
    "seconds": 3725.0,
}


def row(
    model="ours",
    mean=50.0,
    corpus="sgd",
    task="dialogue-retrieval",
    metric="map",
    setting="",
    **more,
):
    what = {"corpus": corpus, "split": "test", "task": task, "metric": metric, "setting": setting}
    return Row(model=model, mean=mean, **what, **more)
