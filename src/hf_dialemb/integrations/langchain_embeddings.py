"""Any encoder of this package as embeddings of LangChain, of dialogues as well as of texts.

Vector stores keep texts alone: a dialogue goes into one as `hf_dialemb.integrations.to_transcript` writes it, and is
encoded with its roles and turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..models.errors import InputError
from .inputs import is_turn
from .trained_encoder import TrainedEncoder

try:
    from langchain_core.embeddings import Embeddings
    from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage
except ImportError as error:
    raise InputError('LangChain is not installed; run: pip install "hf-dialemb[langchain]"') from error

_ROLES = {"human": "user", "ai": "assistant"}


class LangChainEmbeddings(Embeddings):
    """Embeds texts and dialogues for LangChain; the asynchronous methods do the same in a thread.

    A dialogue is a list of LangChain's messages, of chat messages or of both, an object with ``messages``, a `Dialogue`
    or a transcript. System prompts, tool calls and what tools return are nobody's turn, and left out.

    Attributes:
        encoder: The encoder.

    Args:
        model: In the forms that `hf_dialemb.evaluation.load_encoder` takes.
        batch_size: How many dialogues go through the model at once.
        device: Such as ``"cuda"``; by default a GPU where there is one.

    Raises:
        InputError: The model is not found, or is fitted on what it encodes.
    """

    def __init__(self, model: str = "all-MiniLM-L6-v2", batch_size: int = 32, device: str | None = None) -> None:
        self.encoder = TrainedEncoder(model, batch_size, device)

    def embed_documents(self, texts: Sequence[Any]) -> list[list[float]]:
        """Embeds texts and dialogues.

        Args:
            texts: N of them; perhaps none.

        Returns:
            N vectors.

        Raises:
            InputError: One is blank or malformed; the sentence names its place.
        """
        if not texts:
            return []
        if isinstance(texts, str):
            raise InputError("texts: got one str, expected a list of texts or dialogues; put it into a list")
        vectors: list[list[float]] = self.encoder.encode([_plain(item) for item in texts], "texts").tolist()
        return vectors

    def embed_query(self, text: Any) -> list[float]:  # noqa: ANN401 - a text, or any form of a dialogue
        """Embeds one text or dialogue, as `embed_documents` would.

        Args:
            text: The text or dialogue.

        Returns:
            Its vector.

        Raises:
            InputError: It is blank or malformed.
        """
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: Sequence[Any]) -> list[list[float]]:
        """Does what `embed_documents` does, in a thread."""
        return await super().aembed_documents(list(texts))

    async def aembed_query(self, text: Any) -> list[float]:  # noqa: ANN401
        """Does what `embed_query` does, in a thread."""
        return await super().aembed_query(text)


def _plain(item: Any) -> Any:  # noqa: ANN401
    """Makes chat messages of LangChain's."""
    if isinstance(item, BaseMessage):
        item = [item]
    if isinstance(item, Mapping) and "messages" in item:
        return {**item, "messages": _plain(item["messages"])}
    if isinstance(item, str) or not isinstance(item, Sequence):
        return item
    return [_message(message) for message in item if _is_turn(message)]


def _is_turn(message: Any) -> bool:  # noqa: ANN401
    if not isinstance(message, BaseMessage):
        return is_turn(message)
    if isinstance(message, AIMessage):
        return bool(str(message.text).strip() or not message.tool_calls)
    return isinstance(message, HumanMessage | ChatMessage) and getattr(message, "role", "") != "system"


def _message(message: Any) -> Any:  # noqa: ANN401
    if not isinstance(message, BaseMessage):
        return message
    role = message.role if isinstance(message, ChatMessage) else message.type.removesuffix("MessageChunk").lower()
    return {"role": _ROLES.get(role, role), "content": str(message.text)}
