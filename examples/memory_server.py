"""Serves a memory to agents by MCP, over stdin and stdout: remember, recall, forget.

Python examples/memory_server.py FOLDER [MODEL].

The folder lasts; what is said there stays on this machine. MODEL is an encoder, by default the
table that comes with the package. Needs the package mcp.
"""

import sys
from datetime import datetime

from mcp.server import MCPServer

from hf_dialemb import Turn, TurnIndex

if len(sys.argv) < 2 or "--help" in sys.argv:
    raise SystemExit(print(__doc__))

MEMORY = TurnIndex(sys.argv[1], encoder=sys.argv[2] if len(sys.argv) > 2 else "dialogue-static")
server = MCPServer("memory")


@server.tool()
def remember(text: str, user: str, speaker: str = "", dialogue: str = "") -> int:
    """Keep what somebody said, word for word; return its number."""
    now = datetime.now().replace(microsecond=0).isoformat()
    return MEMORY.add_turn(Turn("user", text, name=speaker, time=now), dialogue, user=user)


@server.tool()
def recall(question: str, user: str, top: int = 3, at_least: float = 0.0) -> list[dict]:
    """Find what a user said that answers a question, with its number, time and probability."""
    hits = MEMORY.search(question, top, user=user, at_least=at_least)
    return [
        {"number": hit.row, "text": hit.text, "time": hit.time, "probability": hit.probability}
        for hit in hits
    ]


@server.tool()
def forget(user: str, number: int | None = None) -> int:
    """Delete all that a user said, or one of it by its number; return how many turns that were."""
    return MEMORY.delete(user=user, **({} if number is None else {"row": number}))


if __name__ == "__main__":
    server.run("stdio")
