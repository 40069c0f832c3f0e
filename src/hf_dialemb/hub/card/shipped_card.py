"""The card of an encoder that comes with the package: what it is, what it learnt from, its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from ...corpora import CORPORA, get_corpus
from ...corpora.corpus import TERMS
from ...evaluation.results.learnt import learnt_sets
from ...evaluation.results.rows import merge_results, read_results
from ...evaluation.results.tables import markdown_table
from ...models.errors import InputError
from ...runs.folder import RunFolder

_KINDS = {
    "merged": "An adapter of rank {rank} over {backbone}: what {parts} moved, added to its weights. Texts up to "
    "{max_tokens} tokens; a vector is the mean of the tokens'; a dialogue is read as one text.",
    "distilled": "A table of word vectors, {dimensions} numbers each, that learnt to agree with {teacher}. A vector is "
    "the mean of the word pieces'; no length is too long, and no GPU or torch is needed.",
}


def shipped_card(run: Path, name: str, results: Sequence[Path]) -> str:
    """Renders the card from the run's record and from results files."""
    settings = RunFolder(run).settings()
    facts = dict(settings, teacher=Path(str(settings["backbone"])).name)
    facts["parts"] = ", ".join(f"{Path(part).name} x {weight:g}" for part, weight in settings.get("parts", {}).items())
    lines = ["| Corpus | Split | Licence | Source |", "| :-- | :-- | :-- | :-- |"]
    terms = set()
    for corpus, split in sorted(learnt_sets(settings)):
        if corpus not in CORPORA:
            raise InputError(f"{run}: learnt from '{corpus}', whose licence the catalogue does not know; train without")
        known = get_corpus(corpus)
        terms.add(known.terms)
        lines.append(f"| {corpus} | {split} | {known.licence} | {known.source} |")
    if not terms <= set(TERMS) - {"research"}:
        raise InputError(f"{run}: learnt from a corpus that is for research alone; train without it")
    tags = ["sentence-transformers", "dialogue", "hf_dialemb"]
    front = {"license": "apache-2.0", "library_name": tags[0], "pipeline_tag": "sentence-similarity", "tags": tags}
    rows = merge_results([read_results(path) for path in results])
    body = [
        f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n\n# {name}\n",
        _KINDS[settings["method"]].format(**facts) + "\n",
        f'```python\nimport hf_dialemb\n\nhf_dialemb.load_encoder("{name}").encode(dialogues)\n'
        f'SentenceTransformer(str(hf_dialemb.weights("{name}")))  # the same vectors\n```\n',
        "## Learnt from\n",
        *lines,
        "\nWhat is measured below is none of these splits and chose nothing; single utterances of Dialog2Flow's "
        "evaluation file stand in SGD's train split too. `make checkpoints` makes it again.\n",
        *(["## Figures\n\n" + markdown_table(rows)] if rows else []),
    ]
    return "\n".join(body).rstrip() + "\n"
