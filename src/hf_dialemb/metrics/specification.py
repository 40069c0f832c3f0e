"""The specification of a metric, and the class of `evaluate` made from it. A Space has a copy of this module."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """An input with an item per example.

    Attributes:
        kind: ``number``, ``scores``, ``vector``, ``vectors``, ``booleans`` or ``label`` (a string or an integer).
        text: What it holds.
        parameter: The function's name of it, if another.
    """

    kind: str
    text: str
    parameter: str = ""


@dataclass(frozen=True)
class Metric:
    """What a Space shows of a metric and `evaluate` needs to know.

    Attributes:
        title: The heading of the page.
        emoji: The sign of the Space.
        paper: A key of `PAPERS`.
        function: What computes the figures; its docstring is the page's text.
        inputs: The arguments of ``compute``: columns, and the texts of the others.
        outputs: The figures by name.
        cases: Arguments of ``compute``, each with its ``result``.
        item: What there is a vector of.
    """

    title: str
    emoji: str
    paper: str
    function: Callable[..., dict[str, float]]
    inputs: Mapping[str, Column | str]
    outputs: Mapping[str, str]
    cases: tuple[dict[str, Any], ...]
    item: str = ""

    @property
    def columns(self) -> dict[str, Column]:
        """The inputs with an item per example."""
        return {name: column for name, column in self.inputs.items() if isinstance(column, Column)}

    @property
    def texts(self) -> dict[str, str]:
        """The text of every input."""
        return {name: given.text if isinstance(given, Column) else given for name, given in self.inputs.items()}

    @property
    def defaults(self) -> dict[str, str]:
        """The values of inputs that may be left out, as Python writes them."""
        parameters = inspect.signature(self.function).parameters
        return {
            name: repr(parameters[name].default).replace("'", '"').replace("range(0, ", "range(")
            for name in self.inputs
            if name not in self.columns and parameters[name].default is not inspect.Parameter.empty
        }

    @property
    def usage(self) -> str:
        """The inputs and figures, as the help of the class says them."""
        inputs = [filled(f"    {name}: {text}", 8) for name, text in self.texts.items()]
        outputs = [filled(f"    {name}: {text}", 8) for name, text in self.outputs.items()]
        return "\n".join(["\nArgs:", *inputs, "Returns:", *outputs]) + "\n"


def filled(text: str, indent: int = 0) -> str:
    """Break a text into lines of 120; all but the first are indented."""
    return textwrap.fill(text, 120, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def evaluate_class(metric: Metric, module: str) -> type:
    """Make the class of `evaluate` that lies in ``module`` (its ``__name__``)."""
    import datasets
    import evaluate

    vector = datasets.List(datasets.Value("float64"))
    kinds = {
        "number": datasets.Value("float64"),
        "scores": vector,
        "vector": vector,
        "vectors": datasets.List(vector),
        "booleans": datasets.List(datasets.Value("bool")),
    }
    columns = metric.columns
    labelled = any(column.kind == "label" for column in columns.values())
    forms = [
        datasets.Features({name: kinds.get(column.kind, datasets.Value(label)) for name, column in columns.items()})
        for label in ("string", "int64")
    ]
    parameters = {name: column.parameter for name, column in columns.items() if column.parameter}
    url, citation = PAPERS[metric.paper]
    description = inspect.getdoc(metric.function) or ""

    class Built(evaluate.Metric):  # type: ignore[misc]
        def _info(self) -> evaluate.MetricInfo:
            return evaluate.MetricInfo(
                features=forms if labelled else forms[0], description=description, inputs_description=metric.usage,
                citation=citation, reference_urls=[url],
            )  # fmt: skip

        def _infer_feature_from_batch(self, batch: dict[str, Any]) -> datasets.Features:
            if labelled and any(column is None or not len(column) for column in batch.values()):
                raise ValueError(f"predictions and references: got none, expected one per {metric.item}; add some")
            return super()._infer_feature_from_batch(batch)

        def _compute(self, **arguments: Any) -> dict[str, float]:  # noqa: ANN401 - whatever the function takes
            return metric.function(**{parameters.get(name, name): value for name, value in arguments.items()})

    Built.__name__ = Built.__qualname__ = module.rpartition(".")[2].title().replace("_", "")
    Built.__module__, Built.__doc__ = module, description
    return Built


def _citation(key: str, title: str, author: str, venue: str, year: int, url: str) -> tuple[str, str]:
    fields = {"title": title, "author": author, "booktitle": venue, "year": str(year), "url": url}
    lines = "".join(f"    {name} = {{{value}}},\n" for name, value in fields.items())
    return url, f"@inproceedings{{{key},\n{lines}}}\n"


_EMNLP = "Proceedings of the {} Conference on Empirical Methods in Natural Language Processing"
PAPERS = {
    "dial2vec": _citation(
        "liu-etal-2022-dial2vec",
        "Dial2vec: Self-Guided Contrastive Learning of Unsupervised Dialogue Embeddings",
        "Liu, Che and Wang, Rui and Jiang, Junfeng and Li, Yongbin and Huang, Fei",
        _EMNLP.format(2022), 2022, "https://arxiv.org/abs/2210.15332",
    ),
    "dialog2flow": _citation(
        "burdisso-etal-2024-dialog2flow",
        "Dialog2Flow: Pre-training Soft-Contrastive Action-Driven Sentence Embeddings for Automatic Dialog Flow "
        "Extraction",
        "Burdisso, Sergio and Madikeri, Srikanth and Motlicek, Petr",
        _EMNLP.format(2024), 2024, "https://arxiv.org/abs/2410.18481",
    ),
    "dialoguecse": _citation(
        "liu-etal-2021-dialoguecse",
        "DialogueCSE: Dialogue-based Contrastive Learning of Sentence Embeddings",
        "Liu, Che and Wang, Rui and Liu, Jinghua and Sun, Jian and Huang, Fei and Si, Luo",
        _EMNLP.format(2021), 2021, "https://arxiv.org/abs/2109.12599",
    ),
    "dse": _citation(
        "zhou-etal-2022-learning",
        "Learning Dialogue Representations from Consecutive Utterances",
        "Zhou, Zhihan and Zhang, Dejiao and Xiao, Wei and Dingwall, Nicholas and Ma, Xiaofei and Arnold, Andrew O. and "
        "Xiang, Bing",
        "Proceedings of the 2022 Conference of the North American Chapter of the Association for Computational "
        "Linguistics: Human Language Technologies",
        2022, "https://arxiv.org/abs/2205.13568",
    ),
    "mehri-eskenazi": _citation(
        "mehri-eskenazi-2019-multi",
        "Multi-Granularity Representations of Dialog",
        "Mehri, Shikib and Eskenazi, Maxine",
        _EMNLP.format(2019), 2019, "https://arxiv.org/abs/1908.09890",
    ),
}  # fmt: skip
"""The address and BibTeX entry of each paper."""
