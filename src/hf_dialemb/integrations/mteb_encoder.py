"""Any encoder of this package as a model of MTEB: ``mteb.evaluate(DialembEncoder(spec), tasks)``.

Where a task hands conversations over, as those of `hf_dialemb.integrations.mteb_tasks` do, they are read as dialogues,
with their roles; anything else is a text, and so a dialogue of one turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue, Turn
from ..encoders.specs import Encoder, fingerprint, fitted_on_input, load_encoder
from ..errors import InputError

try:
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ScoringFunction
except ImportError as error:
    raise InputError('MTEB is not installed; run: pip install "hf-dialemb[mteb]"') from error

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata


class DialembEncoder(AbsEncoder):
    """An encoder of dialogues, one that is loaded or in the forms of `load_encoder`, as a model of MTEB.

    A text of blanks, which some tasks of MTEB hold, has the vector 0. Results are filed under ``dialemb/`` and the
    spec; the revision is a digest of the weights, so that MTEB's cache never gives the results of others, or what is
    given.
    """

    def __init__(
        self,
        model_name: str | Encoder,
        revision: str | None = None,
        *,
        device: str | None = None,
        batch_size: int = 32,
        **_: object,
    ) -> None:
        if isinstance(model_name, str):
            self.model = load_encoder(model_name, batch_size=batch_size, device=device)
            revision = revision or fingerprint(model_name)
        else:
            self.model = model_name
        name = "dialemb/" + self.model.name.strip("/").replace("/", "--")
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": name, "revision": revision, "similarity_fn_name": ScoringFunction.COSINE}
        )

    def encode(
        self, inputs: Iterable[Mapping[str, Any]], *, task_metadata: TaskMetadata, **_: object
    ) -> NDArray[np.float32]:
        """Returns one vector, ``(N, D)``, per item of batches with ``text``, and ``conversation`` where there are any.

        An InputError says that a message is malformed, or that the task encodes in several calls and the encoder is
        fitted in each.
        """
        if fitted_on_input(self.model) and task_metadata.simplified_task_type != "clustering":
            raise InputError(
                f"model '{self.model.name}': got a task that encodes queries and what they are compared with one after "
                f"the other ({task_metadata.name}), for which an encoder that is fitted on what it encodes does not "
                "serve; choose a clustering task or another model"
            )
        found = [dialogue for batch in inputs for dialogue in _dialogues(batch)]
        rows = [row for row, dialogue in enumerate(found) if dialogue]
        vectors: NDArray[np.float32] = self.model.encode([dialogue for dialogue in found if dialogue])
        if len(rows) == len(found):
            return vectors
        result = np.zeros((len(found), vectors.shape[1]), dtype=np.float32)
        result[rows] = vectors
        return result


def _dialogues(batch: Mapping[str, Any]) -> Iterable[Dialogue | None]:
    """Reads a batch; None stands for what is blank."""
    if "conversation" not in batch:
        return [Dialogue((Turn("user", text),)) if text.strip() else None for text in batch["text"]]
    spoken = [[message for message in messages if message["content"].strip()] for messages in batch["conversation"]]
    return [Dialogue.from_messages(messages) if messages else None for messages in spoken]
