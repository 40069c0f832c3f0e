"""Any encoder of this package as embeddings of LangChain, of dialogues as well as of texts.

Vector stores keep texts alone: a dialogue goes into one as `hf_dialemb.integrations.to_transcript` writes it, and is
encoded with its roles and turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InputError
from .inputs import TrainedEncoder, in_chat_messages

try:
    from langchain_core.embeddings import Embeddings
    from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage
except ImportError as error:
    raise InputError('LangChain is not installed; run: pip install "hf-dialemb[langchain]"') from error

_ROLES = {"human": "user", "ai": "assistant"}


class LangChainEmbeddings(Embeddings):
    """Embeds texts and dialogues for LangChain; the asynchronous methods do the same in a thread.

    A dialogue is a list of LangChain's messages, of chat messages or of both, an object with ``messages``, a `Dialogue`
    or a transcript. System prompts, tool calls and what tools return are nobody's turn, and left out. ``model`` has the
    forms of `hf_dialemb.evaluation.load_encoder`, ``device`` is by default a GPU where there is one. An InputError
    refuses a model that is not found, or is fitted on what it encodes.
    """

    def __init__(self, model: str = "all-MiniLM-L6-v2", batch_size: int = 32, device: str | None = None) -> None:
        self.encoder = TrainedEncoder(model, batch_size, device)

    def embed_documents(self, texts: Sequence[Any]) -> list[list[float]]:
        """Returns N vectors of N texts and dialogues; an InputError names one that is blank or malformed."""
        if not texts:
            return []
        if isinstance(texts, str):
            raise InputError("texts: got one str, expected a list of texts or dialogues; put it into a list")
        dialogues = [in_chat_messages(item, BaseMessage, _read) for item in texts]
        vectors: list[list[float]] = self.encoder.encode(dialogues, "texts").tolist()
        return vectors

    def embed_query(self, text: Any) -> list[float]:  # noqa: ANN401 - a text, or any form of a dialogue
        """Returns the vector of one text or dialogue, as `embed_documents` would."""
        return self.embed_documents([text])[0]


def _read(message: Any) -> dict[str, Any] | None:  # noqa: ANN401
    """Makes a chat message of LangChain's; None of what is no turn."""
    if isinstance(message, AIMessage):
        said = bool(str(message.text).strip() or not message.tool_calls)
    else:
        said = isinstance(message, HumanMessage | ChatMessage) and getattr(message, "role", "") != "system"
    role = message.role if isinstance(message, ChatMessage) else message.type.removesuffix("MessageChunk").lower()
    return {"role": _ROLES.get(role, role), "content": str(message.text)} if said else None
