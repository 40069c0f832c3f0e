"""Training from Python: `train` with dialogues in memory, and the run that it returns."""

import logging
from pathlib import Path
from typing import Any

from ..corpora import load_dialogues
from ..encoders.loading import EncoderRun
from .arguments import make_settings
from .run import run_training

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
    recipe: str | Path | None = None,
    **settings: Any,  # noqa: ANN401
) -> TrainedRun:
    """Train an encoder on dialogues; call it again with the same arguments to resume.

    Examples:
        >>> run = hf_dialemb.train("dse", dialogues, output_dir="runs/mine", max_steps=100)
        >>> run.encoder().encode(dialogues)

    Args:
        method: ``dial2vec``, ``dse``, ``dialog2flow``, ``dialogue_cse``, a ranker of responses, or a method that was
            registered.
        dialogues: A list of dialogues (lists of chat messages, or `Dialogue` objects), a ``datasets.Dataset``, a path,
            or the name of a corpus.
        output_dir: The folder of the run; it loads as an encoder everywhere.
        backbone: Folder or Hub id of the encoder to start from; by default all-MiniLM-L6-v2.
        dev_dialogues: Dialogues that choose the checkpoint (see ``checkpoint_selection``), in the forms of
            ``dialogues``.
        recipe: The name of a recipe, such as ``dse_minilm``, or a YAML file; the arguments here win over it.
        **settings: Settings of `RunArguments`, of the method's config, or of transformers' ``TrainingArguments``.

    Raises:
        InputError: A setting is unknown, wrong or not for this method, or the method cannot use the dialogues.
    """
    values: dict[str, Any] = {"method": method, "output_dir": output_dir, **settings}
    if backbone is not None:
        values["backbone"] = backbone
    in_memory = not isinstance(dialogues, str | Path)
    values |= {"corpus": []} if in_memory else {"corpus": dialogues}
    if in_memory:
        values.setdefault("exclude", ["none"])
    if dev_dialogues is not None:
        values.setdefault("dev_split", "dev")
    request = make_settings(values, recipe)
    report = logger.info if request.training.process_index == 0 else lambda line: None
    return TrainedRun(
        run_training(
            request,
            report,
            load_dialogues(dialogues) if in_memory else None,
            None if dev_dialogues is None else load_dialogues(dev_dialogues),
        )
    )
