"""The specification of a metric, and the class of `evaluate` made from it.

A Space has a copy of this module.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Column:
    """An input with an item per example."""

    # "number", "scores", "vector", "vectors", "booleans" or "label" (a string or an integer)
    kind: str
    text: str  # what it holds
    parameter: str = ""  # the function's name of it, if another


@dataclass(frozen=True)
class Metric:
    """What a Space shows of a metric and `evaluate` needs to know.

    ``pages.toml`` has a table for each.
    """

    title: str  # the heading of the page
    # what computes the figures; its docstring is the page's text
    function: Callable[..., dict[str, float]]
    # the arguments of ``compute``: columns, and the texts of the others
    inputs: Mapping[str, Column | str]
    outputs: Mapping[str, str]  # the figures by name
    emoji: str = ""  # the sign of the Space
    paper: str = ""  # a key of ``citations.bib``
    example: Mapping[str, Any] = field(default_factory=dict)  # arguments of ``compute``
    result: Mapping[str, float] = field(default_factory=dict)  # what it then returns

    @property
    def columns(self) -> dict[str, Column]:
        """The inputs with an item per example."""
        return {name: column for name, column in self.inputs.items() if isinstance(column, Column)}

    @property
    def texts(self) -> dict[str, str]:
        """The text of every input."""
        return {
            name: given.text if isinstance(given, Column) else given
            for name, given in self.inputs.items()
        }

    @property
    def usage(self) -> str:
        """The inputs and figures, as the help of the class says them."""
        inputs, outputs = (
            [filled(f"    {name}: {text}", 8) for name, text in texts.items()]
            for texts in (self.texts, self.outputs)
        )
        return "\n".join(["\nArgs:", *inputs, "Returns:", *outputs]) + "\n"


def filled(text: str, indent: int = 0) -> str:
    """Break a text into lines of 120; all but the first are indented."""
    return textwrap.fill(
        text, 120, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def evaluate_class(metric: Metric, module: str, citation: str) -> type:
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
    has_labels = any(column.kind == "label" for column in columns.values())
    forms = [
        datasets.Features(
            {
                name: kinds.get(column.kind, datasets.Value(label))
                for name, column in columns.items()
            }
        )
        for label in ("string", "int64")
    ]
    description = inspect.getdoc(metric.function) or ""

    class Built(evaluate.Metric):  # type: ignore[misc]
        def _info(self) -> evaluate.MetricInfo:
            return evaluate.MetricInfo(
                features=forms if has_labels else forms[0],
                description=description,
                inputs_description=metric.usage,
                citation=citation,
                reference_urls=re.findall(r"url = {(.+?)}", citation),
            )

        def _compute(self, **arguments: Any) -> dict[str, float]:
            parameters = {name: column.parameter or name for name, column in columns.items()}
            return metric.function(
                **{parameters.get(name, name): value for name, value in arguments.items()}
            )

    Built.__name__ = Built.__qualname__ = module.rpartition(".")[2].title().replace("_", "")
    Built.__module__ = module
    Built.__doc__ = description
    return Built
