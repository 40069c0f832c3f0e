"""Distil an encoder of texts into a table of word vectors: a lookup and a mean, no transformer.

    python training_scripts/distil.py calls.jsonl --model dialogue-minilm --output runs/static

A table starts with the teacher's vector of each word piece, is fitted to its vectors of real texts
by ridge regression, and learns on those texts to agree with it, as model2vec's tokenlearn does. The
file is sentence-transformers' ``StaticEmbedding`` in model2vec's form: integers of eight bits, and
a scale for each word piece.
"""

import argparse
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy, embedding_bag, normalize
from tqdm.auto import tqdm

from hf_dialemb.dialogue import Dialogue
from hf_dialemb.encoders.load_encoder import EncoderRun, load_encoder
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.results.contamination import sets_behind
from hf_dialemb.methods import get_method
from hf_dialemb.metrics.vectors import unit_vectors
from hf_dialemb.ranges import check_range
from hf_dialemb.storage.files import appearing_whole, write_json_atomically
from hf_dialemb.storage.hardware import bfloat16_where_faster
from hf_dialemb.storage.pretrained import resolve_backbone, short_reason
from hf_dialemb.storage.run_folder import RunFolder, write_record
from hf_dialemb.training.dialogues import training_dialogues
from hf_dialemb.training.settings import RunArguments
from hf_dialemb.training.training_record import trainings_behind, without_places

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]

UTTERANCES = 60_000
"""The most utterances that the teacher reads, beside runs of turns."""

_RARE = (
    1e-3  # word pieces more frequent than this count less to begin with (smooth inverse frequency)
)
_TEMPERATURE = 0.07
_CONTRAST = 0.2
_BATCH = 512
_RATE = 5e-3


def distil(
    teacher: str,
    corpora: Sequence[str],
    *,
    output_dir: str | Path,
    dimensions: int = 256,
    runs: int = 60_000,
    passes: int = 6,
    seed: int = 0,
    **reading: Any,
) -> EncoderRun:
    """Make a table of word vectors that agrees with an encoder of texts; return the run's folder.

    ``SentenceTransformer`` loads the folder. No labels are read.

    Args:
        teacher: Folder or Hub id of a transformer with a fast tokenizer; the table takes over its
            tokenizer.
        corpora: Corpora whose texts it reads, as ``sgd/train``, or files.
        output_dir: The folder to write; must not exist yet.
        dimensions: Width of the table.
        runs: The most runs of turns, one of a dialogue: many make a table for dialogues, few a
            table for utterances.
        passes: How often the table sees each text.
        seed: Draws texts, and their order.
        **reading: ``data_dir``, ``exclude`` and the options of reading of `RunArguments`.

    Raises:
        InputError: The folder exists, a number is out of range, or the corpora or the teacher
            cannot be used.
    """
    output = Path(output_dir)
    started = time.time()
    for name, value, least in (
        ("dimensions", dimensions, 1),
        ("runs", runs, 0),
        ("passes", passes, 1),
    ):
        check_range(name, value, least)
    if output.exists():
        raise InputError(f"output_dir: {output} exists already; choose a new folder or remove it")
    chosen = RunArguments(corpus=list(corpora), min_turns=1, **reading)
    behind = trainings_behind(Path(teacher)) if RunFolder(Path(teacher)).complete else []
    dialogues = training_dialogues(chosen, get_method("dse"), seed, logger.info)
    texts = sample_texts(dialogues, runs, seed)
    table, tokenizer, count = _distilled(teacher, texts, dimensions, passes, seed)
    learnt = {"/".join(filter(None, names)) for names in sets_behind(teacher)} | set(corpora)
    settings = {
        "method": "distilled",
        "backbone": teacher,
        "corpus": sorted(learnt),
        "train_split": "all",
        "exclude": chosen.exclude,
        "dimensions": dimensions,
        "runs": runs,
        "passes": passes,
        "seed": seed,
        "checkpoint_selection": "last",
    }
    report = {"seconds": time.time() - started, "texts": count, "trainings": behind}
    with appearing_whole(output) as folder:
        write_static(folder, table, tokenizer)
        write_json_atomically(RunFolder(folder).settings_file, without_places(settings))
        write_json_atomically(RunFolder(folder).report_file, report)
    return EncoderRun(output)


def _distilled(
    teacher: str, texts: Sequence[str], dimensions: int, passes: int, seed: int
) -> tuple[Vectors, Any, int]:
    """Return a table, its tokenizer, and the number of texts that hold a word piece."""
    encoder = load_encoder(teacher)
    tokenizer, words = word_pieces(teacher)
    with bfloat16_where_faster():
        alone = encoder.encode_utterances(words)
        vectors = encoder.encode_utterances(texts)
    tokens = [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
    rows = [row for row, ids in enumerate(tokens) if ids]
    table = learn_table(
        alone, [tokens[row] for row in rows], vectors[rows], dimensions, passes, seed
    )
    return table, tokenizer, len(rows)


def sample_texts(dialogues: Sequence[Dialogue], runs: int, seed: int) -> list[str]:
    """Draw distinct utterances, and runs of two turns or more, each length equally likely."""
    random = np.random.default_rng(seed)
    utterances = list(
        dict.fromkeys(turn.content for dialogue in dialogues for turn in dialogue.turns)
    )
    drawn = [utterances[row] for row in random.permutation(len(utterances))[:UTTERANCES]]
    for row in random.permutation(len(dialogues))[:runs]:
        turns = dialogues[row].turns
        length = int(random.integers(min(2, len(turns)), len(turns), endpoint=True))
        first = int(random.integers(0, len(turns) - length, endpoint=True))
        drawn.append(" ".join(turn.content for turn in turns[first : first + length]))
    return drawn


def learn_table(
    alone: Vectors,
    tokens: Sequence[Sequence[int]],
    vectors: Vectors,
    dimensions: int,
    passes: int,
    seed: int,
) -> Vectors:
    """Learn the table (V, dimensions) from vectors of pieces (V, E) and of N texts (N, E)."""
    counts = np.bincount(np.concatenate([*map(np.asarray, tokens)]), minlength=len(alone))
    scale = _RARE / (_RARE + counts / counts.sum())
    start = unit_vectors(alone) * scale[:, None]
    means = np.stack([start[list(ids)].mean(axis=0) for ids in tokens])
    given = unit_vectors(vectors)
    _, _, axes = np.linalg.svd(given.T @ given)  # not centred: cosines are kept as they are
    target = given @ axes[:dimensions].T  # (N, dimensions)
    gram = means.T @ means
    ridge = np.linalg.solve(
        gram + 1e-3 * np.trace(gram) / len(gram) * np.eye(len(gram)), means.T @ target
    )
    torch.manual_seed(seed)
    table = torch.nn.Parameter(torch.from_numpy((start @ ridge).astype(np.float32)))
    weights = torch.nn.Parameter(torch.zeros(len(alone)))
    goal = normalize(torch.from_numpy(target.astype(np.float32)), dim=1)
    optimizer = torch.optim.Adam([table, weights], lr=_RATE)
    steps = passes * -(-len(tokens) // _BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
    for _ in tqdm(range(passes), desc="Distilling", unit="pass"):
        for rows in torch.randperm(len(tokens)).split(_BATCH):
            ids = [torch.as_tensor(tokens[row]) for row in rows]
            offsets = torch.tensor([0, *map(len, ids)])[:-1].cumsum(0)
            flat = torch.cat(ids)
            sums = embedding_bag(
                flat, table, offsets, mode="sum", per_sample_weights=weights[flat].exp()
            )
            made = normalize(sums, dim=1)
            wanted = goal[rows]
            contrast = cross_entropy(made @ wanted.T / _TEMPERATURE, torch.arange(len(rows)))
            loss = 1 - (made * wanted).sum(1).mean() + _CONTRAST * contrast
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    learnt: Vectors = (table * weights.exp()[:, None]).detach().numpy()
    return learnt


def write_static(folder: Path, table: Vectors, tokenizer: Any) -> None:
    """Write the model, with each row of the table in eight bits and a scale; make the folder."""
    from safetensors.numpy import save_file

    scale = np.abs(table).max(axis=1).clip(1e-12) / 127
    inner = folder / "0_StaticEmbedding"
    inner.mkdir(parents=True)
    rounded = np.rint(table / scale[:, None]).astype(np.int8)
    save_file(
        {"embeddings": rounded, "weights": scale.astype(np.float32)}, inner / "model.safetensors"
    )
    tokenizer.save(str(inner / "tokenizer.json"))
    kind = "sentence_transformers.models.StaticEmbedding"
    write_record(
        folder / "modules.json", [{"idx": 0, "name": "0", "path": inner.name, "type": kind}]
    )
    settings = {"model_type": "SentenceTransformer", "prompts": {}, "similarity_fn_name": "cosine"}
    write_record(folder / "config_sentence_transformers.json", settings)


def word_pieces(teacher: str) -> tuple[Any, list[str]]:
    """Return the teacher's tokenizer, which cuts nothing, and its word pieces as texts."""
    file = Path(resolve_backbone(teacher)) / "tokenizer.json"
    if not file.is_file():
        raise InputError(
            f"teacher: {teacher} has no tokenizer.json, expected an encoder with a fast tokenizer"
        )
    try:
        whole: Any = Tokenizer.from_file(str(file))
        whole.no_truncation()
        whole.no_padding()
        return whole, [_as_text(whole, row) for row in range(whole.get_vocab_size())]
    except Exception as error:  # of any kind, from Rust
        raise InputError(
            f"{file}: cannot be read ({short_reason(error)}); fetch or train the model again"
        ) from None


def _as_text(tokenizer: Any, row: int) -> str:
    """Return a word piece without its tokenizer's marks, or as it is if it is no text."""
    text: str = tokenizer.decode([row], skip_special_tokens=False).strip().removeprefix("##")
    piece: str = tokenizer.id_to_token(row)
    return text if text and "\ufffd" not in text else piece


def main() -> None:
    """Distil, and write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="+", help="sets to learn from: sgd/train, files, ...")
    parser.add_argument("--model", required=True, help="an encoder of texts, the teacher")
    parser.add_argument("--exclude", nargs="+", help="evaluation sets to keep out, as sgd/test")
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--runs", type=int, default=60_000, help="most texts of several turns")
    parser.add_argument("--passes", type=int, default=6, help="how often it sees each text")
    parser.add_argument("--output", required=True, help="must not exist yet")
    options = vars(parser.parse_args())
    teacher = options.pop("model")
    corpora = options.pop("corpus")
    run = distil(teacher, corpora, output_dir=options.pop("output"), **options)
    print(f"Wrote {run.path}")


if __name__ == "__main__":
    main()
