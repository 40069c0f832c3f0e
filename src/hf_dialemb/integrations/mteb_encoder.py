"""Any encoder of this package as a model of MTEB: ``mteb.evaluate(DialembEncoder(spec), tasks)``.

Conversations, which the tasks of `hf_dialemb.integrations.mteb_tasks` hold, are read as dialogues with their roles;
anything else is an utterance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..encoders import Encoder, load_encoder
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
    """An encoder of dialogues, in any form that `load_encoder` takes, as a model of MTEB.

    A blank text, which some tasks of MTEB hold, has the vector 0. Results are filed under ``dialemb/`` and the name;
    the revision is the encoder's fingerprint unless it is given, so that MTEB's cache never mixes up weights.
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
        self.model = load_encoder(model_name, batch_size=batch_size, device=device)
        revision = revision or self.model.fingerprint or None
        name = "dialemb/" + self.model.name.strip("/").replace("/", "--")
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": name, "revision": revision, "similarity_fn_name": ScoringFunction.COSINE}
        )

    def encode(
        self, inputs: Iterable[Mapping[str, Any]], *, task_metadata: TaskMetadata, **_: object
    ) -> NDArray[np.float32]:
        """Return the vectors (N, D) of batches with ``text``, or with ``conversation`` where there are any.

        Raises:
            InputError: A message is malformed, or the task encodes in several calls and the encoder is fitted in each.
        """
        if self.model.fitted_on_input and task_metadata.simplified_task_type != "clustering":
            raise InputError(
                f"model '{self.model.name}': got a task that encodes queries and what they are compared with one after "
                f"the other ({task_metadata.name}), for which an encoder that is fitted on what it encodes does not "
                "serve; choose a clustering task or another model"
            )
        batches = list(inputs)
        if any("conversation" in batch for batch in batches):
            spoken = [messages for batch in batches for messages in batch["conversation"]]
            kept = [[message for message in messages if message["content"].strip()] for messages in spoken]
            items = [Dialogue.from_messages(messages) if messages else None for messages in kept]
            vectors = self.model.encode([item for item in items if item])
        else:
            items = [text.strip() and text for batch in batches for text in batch["text"]]
            vectors = self.model.encode_utterances([item for item in items if item])
        rows = [row for row, item in enumerate(items) if item]
        result = np.zeros((len(items), vectors.shape[1]), dtype=np.float32)
        result[rows] = vectors
        return result
