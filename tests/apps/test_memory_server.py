"""A memory that agents reach by MCP, asked by that package's own client."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

mcp = pytest.importorskip("mcp")
SERVER = Path(__file__).parents[2] / "examples" / "memory_server.py"


async def asked(folder, *calls):
    """Start the server, call its tools, and return what they answered."""
    start = mcp.StdioServerParameters(
        command=sys.executable, args=[str(SERVER), str(folder)], env=dict(os.environ)
    )
    async with mcp.stdio_client(start) as streams, mcp.ClientSession(*streams) as session:
        await session.initialize()
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert tools == {"remember", "recall", "forget"}
        answers = [await session.call_tool(name, given) for name, given in calls]
    return [answer.structured_content["result"] for answer in answers]


def test_agents_remember_recall_and_forget_in_a_folder_that_lasts(tmp_path):
    question = {"question": "Where do I live?", "user": "anna"}
    kept = asyncio.run(
        asked(
            tmp_path / "agent.memory",
            ("remember", {"text": "I live in Lisbon.", "user": "anna", "speaker": "Anna"}),
            ("remember", {"text": "I live in Oslo.", "user": "ben"}),
            ("recall", question),
        )
    )
    assert kept[:2] == [0, 1]
    assert [hit["text"] for hit in kept[2]] == ["I live in Lisbon."]
    forgotten = asyncio.run(
        asked(
            tmp_path / "agent.memory",
            ("forget", {"user": "anna", "number": kept[2][0]["number"]}),
            ("recall", question),
            ("recall", {**question, "user": "ben"}),
        )
    )
    assert forgotten[:2] == [1, []]
    assert [hit["text"] for hit in forgotten[2]] == ["I live in Oslo."]
