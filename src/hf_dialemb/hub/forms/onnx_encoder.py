"""An encoder that runs the ONNX graph of a published folder; it needs onnxruntime, and no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dialogue import Dialogue
from ...errors import InputError
from ...methods import register


class OnnxEncoder:
    """Embeds what the chat template of a published folder renders, by one of its graphs, or else raises InputError.

    Of a text that is too long the tokenizer drops the last token too, which AutoModel and sentence-transformers keep.
    """

    def __init__(self, folder: str | Path, file: str = "model.onnx", batch_size: int = 32) -> None:
        from onnxruntime import InferenceSession
        from transformers import AutoTokenizer

        path = Path(folder) / "onnx" / file
        if not path.is_file():
            raise InputError(f"'{path}': got no file, expected an ONNX graph; export the model with --onnx or --int8")
        register()
        self.name, self.batch_size = f"{folder}/onnx/{file}", batch_size
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.session: Any = InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)`` float32."""
        return self.encode_messages([dialogue.to_messages() for dialogue in dialogues])

    def encode_messages(self, conversations: Sequence[list[dict[str, str]]]) -> NDArray[np.float32]:
        """Embeds lists of messages, ``(N, D)`` float32; a ranker takes one message of the role ``response`` too."""
        lengths = [sum(len(message["content"]) for message in messages) for messages in conversations]
        order = np.argsort(lengths, kind="stable")
        parts = [np.zeros((0, self.session.get_outputs()[0].shape[1]), dtype=np.float32)]
        for start in range(0, len(order), self.batch_size):
            chosen = [conversations[row] for row in order[start : start + self.batch_size]]
            options = {"return_tensors": "np", "padding": True, "truncation": True, "return_dict": True}
            how = {"padding_side": "right", "verbose": False}
            batch = self.tokenizer.apply_chat_template(chosen, **options, tokenizer_kwargs=how)
            feed = {name: batch[name].astype(np.int64) for name in ("input_ids", "attention_mask")}
            parts.append(self.session.run(None, feed)[0])
        return np.concatenate(parts)[np.argsort(order)]
