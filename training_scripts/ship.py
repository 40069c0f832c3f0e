"""Put an encoder into the package: python training_scripts/ship.py RUN NAME [RESULTS ...].

The folder holds the smallest files, their digests, and a card.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from hf_dialemb.data import CORPORA, get_corpus
from hf_dialemb.data.corpus import TERMS
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.results.contamination import learnt_sets
from hf_dialemb.evaluation.results.result_tables import markdown_table, table_lines
from hf_dialemb.evaluation.results.rows import merge_results, read_results
from hf_dialemb.hashing import sha256
from hf_dialemb.hub.card.figures import headline, shipped_figures
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint
from hf_dialemb.hub.published_folder import PublishedFolder
from hf_dialemb.storage.files import appearing_whole, write_json_atomically
from hf_dialemb.storage.pretrained import FOLDER, RECORD, model_file, resolve_backbone
from hf_dialemb.storage.run_folder import RunFolder

E5 = "intfloat/multilingual-e5-small"
"""The base that may be had in 4 bits."""

ADAPTER = "adapter"
"""The folder of the adapter in that of a merged encoder."""

_KINDS = {
    "merged": "An adapter of rank {rank} over {backbone}: what {parts} moved, added to its "
    "weights. Texts up to "
    "{max_tokens} tokens; a vector is the mean of the tokens'; a dialogue is read as one text.",
    "distilled": "A table of word vectors, {dimensions} numbers each, that learnt to agree with "
    "{teacher}. A vector is "
    "the mean of the word pieces'; no length is too long, and no GPU or torch is needed.",
}


def ship(run: Path, name: str, results: Sequence[Path], output: Path = FOLDER) -> Path:
    """Write the folder of an encoder that comes with the package, and return it.

    Args:
        run: A folder of `merge.py`, or a run of `hf_dialemb.training.distil.distil`.
        name: The encoder's name.
        results: Results files for the card.
        output: The folder of all encoders.

    Raises:
        InputError: The run has no small form, or learnt from a corpus of an unknown licence or for
            research alone.
    """
    settings = RunFolder(run).settings()
    with appearing_whole(output / name) as folder:
        backbone = backbone_weights = None
        if (run / ADAPTER).is_dir():
            backbone = str(settings["backbone"])
            backbone_weights = model_file(resolve_backbone(backbone), PublishedFolder.WEIGHTS)
            write_checkpoint(*load_checkpoint(str(run)), folder)
            for unused in (PublishedFolder.WEIGHTS, "training_args.bin"):
                (folder / unused).unlink(missing_ok=True)
            if backbone == E5:
                # sixteen megabytes, and read from the backbone, whose weights may be those of the
                # Hub or of a package
                (folder / "tokenizer.json").unlink()
                backbone_weights = None
            for adapter in (run / ADAPTER).glob("adapter_*"):
                shutil.copy(adapter, folder)
        elif (run / PublishedFolder.STATIC).is_dir():
            shutil.copytree(run / PublishedFolder.STATIC, folder / PublishedFolder.STATIC)
            for file in (PublishedFolder.MODULES, "config_sentence_transformers.json"):
                shutil.copy(run / file, folder)
        else:
            raise InputError(f"{run}: got a run without an adapter or a table; merge or distil it")
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        (folder / PublishedFolder.CARD).write_text(_card(run, name, results), encoding="utf-8")
        if rows := merge_results([read_results(path) for path in results]):
            table = folder / PublishedFolder.FIGURES
            table.parent.mkdir()
            table.write_text(markdown_table(rows), encoding="utf-8")
        record = {
            "corpora": sorted(
                {"/".join(part) for part in learnt_sets(settings)} | {*settings.get("licences", {})}
            ),
            "backbone": backbone,
            "backbone_sha256": backbone_weights and sha256(backbone_weights),
            "files": {file.relative_to(folder).as_posix(): sha256(file) for file in files},
        }
        write_json_atomically(folder / RECORD, record)
        if (output / name).exists():
            shutil.rmtree(output / name)
    return output / name


def _card(run: Path, name: str, results: Sequence[Path]) -> str:
    settings = RunFolder(run).settings()
    facts = dict(settings, teacher=Path(str(settings["backbone"])).name)
    facts["parts"] = ", ".join(
        f"{Path(part).name} x {weight:g}" for part, weight in settings.get("parts", {}).items()
    )
    lines = []
    terms = set()
    for corpus, split in sorted(learnt_sets(settings)):
        if corpus not in CORPORA:
            raise InputError(
                f"{run}: learnt from '{corpus}', whose licence the catalogue does not know; train "
                "without"
            )
        known = get_corpus(corpus)
        terms.add(known.terms)
        lines.append([corpus, split, known.licence, known.source])
    for part, (licence, source) in settings.get("licences", {}).items():
        lines.append([*part.split("/"), licence, source])
    if not terms <= set(TERMS) - {"research"}:
        raise InputError(
            f"{run}: learnt from a corpus that is for research alone; train without it"
        )
    tags = ["sentence-transformers", "dialogue", "hf_dialemb"]
    front = {
        "license": "apache-2.0",
        "library_name": tags[0],
        "pipeline_tag": "sentence-similarity",
        "tags": tags,
    }
    figures = figures_table(name, results)
    body = [
        f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n\n# {name}\n",
        _KINDS[settings["method"]].format(**facts) + "\n",
        *(
            [f"It was learnt over weights of 4 bits, and belongs to those of {E5} too.\n"]
            if settings["backbone"] == E5
            else []
        ),
        f'```python\nimport hf_dialemb\n\nhf_dialemb.load_encoder("{name}").encode(dialogues)\n'
        f'SentenceTransformer(str(hf_dialemb.weights("{name}")))  # the same vectors\n```\n',
        "## Learnt from\n",
        *table_lines(("Corpus", "Split", "Licence", "Source"), (), lines),
        "\nWhat is measured below is none of these splits, unless marked †; single utterances of "
        "Dialog2Flow's "
        "evaluation file stand in SGD's train split too. `make checkpoints` makes it again.\n",
        *(["## Figures\n\n" + figures] if figures else []),
    ]
    return "\n".join(body).rstrip() + "\n"


def figures_table(name: str, results: Sequence[Path]) -> str:
    """Return the first figure of each task as a table; nothing without figures."""
    shown = headline(shipped_figures(name, results))
    if not shown:
        return ""
    head = ["All are in `results/figures.md`; the first of each task:\n"]
    head += ["| Corpus | Figure | | |", "| :-- | :-- | --: | --: |"]
    return "\n".join([*head, *(figure.line for figure in shown)])


if __name__ == "__main__":
    print(f"Wrote {ship(Path(sys.argv[1]), sys.argv[2], [*map(Path, sys.argv[3:])])}")
