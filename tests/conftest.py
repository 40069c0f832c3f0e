"""Fixtures: tiny backbones that are built in memory, and dialogues that the package generates."""

import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# What earlier tests kept would be taken for what these make; models of the Hub are read as before.
os.environ.setdefault("HF_HUB_CACHE", str(Path.home() / ".cache" / "huggingface" / "hub"))
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="hf_dialemb_")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# On models this small a second thread gains nothing and loses much on busy cores, in other threads
# and processes too.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from hf_dialemb import Dialogue, load_dialogues

# On a busy or slow machine an example takes as long as it takes.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    torch.set_num_threads(1)  # again, as numba, which some libraries bring, takes all
    gc.collect()
    # or each training, whose libraries collect garbage, looks through all that was ever imported
    gc.freeze()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Keep which tests `make unit` skipped: `make slow` runs them with more libraries."""
    if skipped := os.environ.get("HF_DIALEMB_SKIPPED"):
        names = {report.nodeid for report in terminalreporter.stats.get("skipped", ())}
        Path(skipped).write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


@pytest.fixture(scope="session")
def sample_dialogues() -> list[Dialogue]:
    return load_dialogues("sample", None, "dev")


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory, sample_dialogues: list[Dialogue]) -> str:
    """A two-layer BERT of width 16 with a WordPiece vocabulary, as a folder."""
    from checkpoints import save_bert

    return str(save_bert(sample_dialogues, tmp_path_factory.mktemp("tiny_bert")))


@pytest.fixture(scope="session")
def tiny_backbones(tmp_path_factory: pytest.TempPathFactory, tiny_bert: str) -> dict[str, str]:
    """One tiny random model of each supported family, as folders."""
    from architectures import save_architecture

    names = ("roberta", "mpnet", "distilbert", "modernbert")
    made = {
        name: str(save_architecture(name, tmp_path_factory.mktemp(name), tiny_bert))
        for name in names
    }
    return {"bert": tiny_bert, **made}


@pytest.fixture(scope="session")
def plain(tiny_bert: str) -> object:
    """The same backbone, as sentence-transformers loads it."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(tiny_bert, device="cpu")


@pytest.fixture(scope="session")
def towers(sample_dialogues: list[Dialogue]) -> list[object]:
    """Two dual encoders: one whose scores are products, and one of cosines."""
    from checkpoints import dual_encoder

    kinds = enumerate([("dot", 1.0), ("cosine", 0.05)])
    return [
        dual_encoder(sample_dialogues, seed, score=score, loss_temperature=heat)
        for seed, (score, heat) in kinds
    ]


@pytest.fixture(scope="session")
def tower_folders(towers: list[object], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    from checkpoints import save

    return [save(ranker, tmp_path_factory.mktemp("ranker")) for ranker in towers]


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real corpora; tests that ask for it are skipped where there is none."""
    if "HF_DIALEMB_DATA" not in os.environ:
        pytest.skip("HF_DIALEMB_DATA does not name the folder of real corpora")
    return Path(os.environ["HF_DIALEMB_DATA"])


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory, tiny_bert: str) -> Path:
    """An untrained dial2vec around `tiny_bert` whose turn and role tables say something, as
    training writes it."""
    from hf_dialemb.methods.dial2vec import Dial2VecModel

    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert)
    torch.manual_seed(2)
    torch.nn.init.normal_(model.turn_embeddings.weight)
    torch.nn.init.normal_(model.role_embeddings.weight)
    folder = tmp_path_factory.mktemp("tiny_checkpoint")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_export(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `tiny_checkpoint` is published as."""
    from hf_dialemb.hub.export import load_checkpoint, write_checkpoint

    folder = tmp_path_factory.mktemp("tiny_export")
    write_checkpoint(*load_checkpoint(str(tiny_checkpoint)), folder)
    return folder


@pytest.fixture(scope="session")
def tiny_run(
    tiny_bert: str, sample_dialogues: list[Dialogue], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A training of DSE in one step, which kept its checkpoint."""
    from hf_dialemb import train

    place = tmp_path_factory.mktemp("runs") / "tiny-0"
    steps = {"max_steps": 1, "save_steps": 1, "per_device_train_batch_size": 8}
    settings = {"backbone": tiny_bert, "output_dir": place, "disable_tqdm": True, **steps}
    return train("dse", sample_dialogues[:16], **settings).path


@pytest.fixture(scope="session", autouse=True)
def quick_processes() -> Iterator[None]:
    """What is exported is loaded in processes that need not import the libraries again.

    See `afresh`.
    """
    from afresh import run_afresh, stand_in

    from hf_dialemb.hub import published_folder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published_folder, "subprocess", stand_in(run_afresh))
        yield


@pytest.fixture(scope="session")
def exporting(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, list[str]]]:
    """A function that exports a checkpoint, and returns the folder and what was reported."""
    from hf_dialemb.hub.export import export

    def run(model: object) -> tuple[Path, list[str]]:
        folder, lines = tmp_path_factory.mktemp("exports") / "published", []
        export(str(model), folder, report=lines.append)
        return folder, lines

    return run


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that runs a command, which must end in one sentence and nothing else, and returns
    it."""
    main = pytest.importorskip("hf_dialemb.apps.cli").main

    def run(*words: object, code: int = 2) -> str:
        capsys.readouterr()
        assert main([str(word) for word in words]) == code
        # warnings and progress bars may stand around it
        printed = capsys.readouterr().err.replace("\r", "\n")
        assert "Traceback" not in printed
        (sentence,) = (
            line for line in printed.splitlines() if "error:" in line or line.startswith("usage:")
        )
        assert sentence.startswith("dialemb: error: ")
        return sentence

    return run


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that runs a command, which must end well, and returns what it printed."""
    main = pytest.importorskip("hf_dialemb.apps.cli").main

    def run(*words: object) -> str:
        capsys.readouterr()
        assert main([str(word) for word in words]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A server that stands for an endpoint of OpenAI's protocol."""
    from endpoint_server import serving

    pytest.importorskip("openai")
    with serving(monkeypatch) as running:
        yield running
