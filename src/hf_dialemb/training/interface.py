"""Training from Python: `train` with dialogues in memory, and what it leaves."""

import logging
from pathlib import Path
from typing import Any

from ..corpora import load_dialogues
from ..encoders.loading import EncoderRun
from ..errors import InputError
from .arguments import as_words, parse, recipe_path
from .run import train as carry_out

logger = logging.getLogger(__name__)


class TrainedRun(EncoderRun):
    """The folder of a finished training."""

    def _repr_html_(self) -> str:
        report = self.report()
        facts = f"{report['steps']:,} steps on {report['dialogues']:,} dialogues in {report['seconds']:.0f} s"
        return f"<b>{self.settings()['method']}</b> in <code>{self.path}</code>: {facts}"


def train(
    method: str,
    dialogues: Any,  # noqa: ANN401 - see load_dialogues
    *,
    output_dir: str | Path,
    backbone: str | None = None,
    dev_dialogues: Any = None,  # noqa: ANN401
    recipe: str | None = None,
    **settings: Any,  # noqa: ANN401
) -> TrainedRun:
    """Trains an encoder on dialogues; the same call goes on where it was stopped.

    Examples:
        >>> run = hf_dialemb.train("dse", dialogues, output_dir="runs/mine", max_steps=100)
        >>> run.encoder().encode(dialogues)

    Args:
        method: ``dial2vec``, ``dse``, ``dialog2flow``, ``dialogue_cse``, a ranker of responses, or a method that was
            registered.
        dialogues: A list of dialogues (lists of chat messages, or `Dialogue` objects), a ``datasets.Dataset``, a path,
            or the name of a corpus.
        output_dir: Where the run lies; the folder loads as an encoder everywhere.
        backbone: Folder or Hub id of the encoder to start from; by default all-MiniLM-L6-v2.
        dev_dialogues: What chooses the checkpoint (see ``checkpoint_selection``), in the forms of ``dialogues``.
        recipe: The name of a recipe, such as ``dse_minilm``, or a YAML file, for what is not said here.
        **settings: Of `RunArguments`, of the method's config, or of transformers' ``TrainingArguments``.

    Raises:
        InputError: A setting is unknown, wrong or not for this method, or the dialogues are of no use to it.
    """
    told = {"method": method, "backbone": backbone, "output_dir": str(output_dir), **settings}
    if "dev_split" not in told and dev_dialogues is not None:
        told["dev_split"] = "dev"
    if isinstance(dialogues, str | Path):
        told["corpus"] = str(dialogues)
    if recipe is not None and recipe_path(recipe) is None and not Path(recipe).is_file():
        raise InputError(f"recipe: got {recipe!r}, expected the name of a recipe or a YAML file; check it")
    request = parse(recipe, as_words(told))
    if not isinstance(dialogues, str | Path):
        request.run.corpus, request.run.exclude = [], ["none"]
    given = None if isinstance(dialogues, str | Path) else load_dialogues(dialogues)
    dev = None if dev_dialogues is None else load_dialogues(dev_dialogues)
    report = logger.info if request.training.process_index == 0 else lambda line: None
    return TrainedRun(carry_out(request, report, given, dev))
