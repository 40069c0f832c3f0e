"""Masks 150 invented strings of ten countries, and counts by kind how many show nothing.

    python tests/apps/files/masking_table.py

Beside it, where ``presidio-analyzer`` is installed: its recognisers that need no language model,
with telephone numbers of the same countries. A string is right if no word of its secret is left;
one without a secret is right if it stays as it is.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from hf_dialemb import Dialogue, Turn
from hf_dialemb.apps.files.masking import mask

FILE = Path(__file__).with_name("files") / "masking.tsv"
RESULTS = Path(__file__).parents[3] / "docs" / "results" / "masking.json"
TITLES = {"Mr", "Mrs", "Dr", "Frau", "Mme", "Sra", "Sr", "Signora", "Senhora", "Mevrouw"}


def ours(text: str) -> str:
    (dialogue,) = mask([Dialogue((Turn("user", text),))])
    return dialogue.turns[0].content


def presidio() -> Callable[[str], str]:
    import spacy
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import PhoneRecognizer

    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"])
    registry.remove_recognizer("SpacyRecognizer")
    registry.remove_recognizer("PhoneRecognizer")
    regions = ("US", "GB", "DE", "FR", "ES", "IT", "PT", "NL", "BR", "IN")
    registry.add_recognizer(PhoneRecognizer(supported_regions=regions))
    blank = SpacyNlpEngine([{"lang_code": "en", "model_name": "blank"}])
    blank.nlp = {"en": spacy.blank("en")}
    engine = AnalyzerEngine(registry=registry, nlp_engine=blank)

    def masked(text: str) -> str:
        spans = [item for item in engine.analyze(text, "en") if item.entity_type != "DATE_TIME"]
        is_hidden = [any(s.start <= at < s.end for s in spans) for at in range(len(text))]
        return "".join(" " if hides else c for c, hides in zip(text, is_hidden, strict=True))

    return masked


def right(masked: Callable[[str], str]) -> Counter[str]:
    """Count the strings by kind that show nothing once they are masked."""
    counts = Counter[str]()
    for line in FILE.read_text(encoding="utf-8").splitlines():
        _, kind, text = line.split("\t")
        before, secret, after = re.split("[{}]", text) if "{" in text else (text, "", "")
        shown = Counter(re.findall(r"\w+", masked(before + secret + after)))
        rest = shown - Counter(re.findall(r"\w+", before + after))
        leaked = rest.keys() & set(re.findall(r"\w+", secret)) - TITLES
        counts[kind] += not leaked if secret else shown == Counter(re.findall(r"\w+", before))
    return counts


def main() -> None:
    kinds = Counter(line.split("\t")[1] for line in FILE.read_text(encoding="utf-8").splitlines())
    columns = {"strings": kinds, "this package": right(ours)}
    if find_spec("presidio_analyzer"):
        columns["presidio, without a language model"] = right(presidio())
    lines = [f"| | {' | '.join(columns)} |", f"|:--|{'--:|' * len(columns)}"]
    for kind in kinds:
        lines.append(f"| {kind} | {' | '.join(str(column[kind]) for column in columns.values())} |")
    RESULTS.write_text(json.dumps({"right": columns, "table": lines}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
