"""Any encoder of this package as an embedding model of LlamaIndex, of dialogues as well as of texts.

LlamaIndex itself hands texts around: dialogues become transcripts on the way in, and are encoded with their roles and
turns. What a node says of itself in ``metadata`` is written before its text unless ``excluded_embed_metadata_keys``
names it; name all of it for nodes of transcripts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from ..dialogue import Dialogue
from ..errors import InputError
from .inputs import TrainedEncoder, as_dialogues, in_chat_messages, to_transcript

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.llms import ChatMessage, MessageRole
except ImportError as error:
    raise InputError('LlamaIndex is not installed; run: pip install "hf-dialemb[llama-index]"') from error

_ROLES = {
    MessageRole.USER: "user",
    **dict.fromkeys((MessageRole.ASSISTANT, MessageRole.CHATBOT, MessageRole.MODEL), "assistant"),
}


class LlamaIndexEmbedding(BaseEmbedding):
    """Embeds texts and dialogues for LlamaIndex; the asynchronous methods do the same in a thread.

    A dialogue is a list of LlamaIndex's messages, of chat messages or of both, an object with ``messages``, a
    `Dialogue` or a transcript. System prompts, tool calls and what tools return are nobody's turn, and left out.
    ``model_name`` has the forms of `hf_dialemb.evaluation.load_encoder`, ``device`` is by default a GPU where there is
    one, and other settings, such as ``embed_batch_size``, are LlamaIndex's. An InputError refuses a model that is not
    found, or is fitted on what it encodes.
    """

    model_name: str = "all-MiniLM-L6-v2"
    device: str | None = Field(default=None, description="Where the model runs.")
    _encoder: TrainedEncoder = PrivateAttr()

    def __init__(self, model_name: str = "all-MiniLM-L6-v2", **settings: Any) -> None:  # noqa: ANN401
        super().__init__(model_name=model_name, **settings)
        self._encoder = TrainedEncoder(self.model_name, self.embed_batch_size, self.device)

    @classmethod
    def class_name(cls) -> str:
        """Returns what LlamaIndex files the class under."""
        return "LlamaIndexEmbedding"

    def get_text_embedding(self, text: Any) -> list[float]:  # noqa: ANN401 - a text, or any form of a dialogue
        """Embeds one text or dialogue; an InputError says that it is blank or malformed."""
        return super().get_text_embedding(_as_text(text))

    def get_query_embedding(self, query: Any) -> list[float]:  # noqa: ANN401
        """Does what `get_text_embedding` does."""
        return super().get_query_embedding(_as_text(query))

    async def aget_text_embedding(self, text: Any) -> list[float]:  # noqa: ANN401
        """Does what `get_text_embedding` does, in a thread."""
        return await super().aget_text_embedding(_as_text(text))

    async def aget_query_embedding(self, query: Any) -> list[float]:  # noqa: ANN401
        """Does what `get_query_embedding` does, in a thread."""
        return await super().aget_query_embedding(_as_text(query))

    def get_text_embedding_batch(self, texts: Sequence[Any], *options: Any, **more: Any) -> list[list[float]]:  # noqa: ANN401
        """Embeds texts and dialogues, ``embed_batch_size`` at a time; an InputError says that one is malformed."""
        return super().get_text_embedding_batch([_as_text(text) for text in texts], *options, **more)

    async def aget_text_embedding_batch(self, texts: Sequence[Any], *options: Any, **more: Any) -> list[list[float]]:  # noqa: ANN401
        """Does what `get_text_embedding_batch` does, in threads."""
        return await super().aget_text_embedding_batch([_as_text(text) for text in texts], *options, **more)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._encoder.encode(texts, "texts").tolist()
        return vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)


def _as_text(item: Any) -> str:  # noqa: ANN401
    if isinstance(item, str):
        return item
    item = in_chat_messages(item, ChatMessage, _read)
    if not isinstance(item, Sequence | Mapping | Dialogue):
        raise InputError(f"got {type(item).__name__}, expected a text or a dialogue; leave it out")
    return to_transcript(as_dialogues([item], "texts")[0])


def _read(message: ChatMessage) -> dict[str, Any] | None:
    """Makes a chat message of LlamaIndex's; None of what is no turn."""
    if message.role not in _ROLES or not (message.content or message.role == MessageRole.USER):
        return None
    return {"role": _ROLES[message.role], "content": message.content or ""}
