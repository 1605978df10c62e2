"""Where the texts of a subject are, the same for every kind of guard (R0.3)."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.chunks import DataChunk, Source, ToolCall, ToolError, ToolInputDelta, ToolResult
from interlock.messages import Content, Message, TextPart, ToolInvocationPart
from interlock.release.channels import (
    CHANNELS,
    Texts,
    texts_in_chunk,
    texts_in_message,
    texts_in_value,
    visit,
    visit_async,
)

ALL = frozenset(CHANNELS)


def named(texts: list[str], channel: str) -> list[str]:
    """Stands for a guard; says which channel it was told."""
    return [f"{channel}:{text}" for text in texts]


def shown(texts: Texts[Any]) -> tuple[list[Any], Any]:
    """What a guard that changes nothing is shown, and what comes of it."""
    seen: list[Any] = []

    def keep(found: list[str], channel: str) -> list[str]:
        seen.append((channel, found))
        return found

    return seen, visit(texts, keep)


def test_strings_of_a_value() -> None:
    """Every string is a text of its own, keys stay; what does not change is the same object."""
    value = {"k": ["a", 1, {"n": "b"}], "none": None}
    assert visit(texts_in_value(value, "data"), named) == {"k": ["data:a", 1, {"n": "data:b"}], "none": None}
    seen, same = shown(texts_in_value(value, "data"))
    assert seen == [("data", ["a"]), ("data", ["b"])]
    assert same is value


@pytest.mark.anyio
async def test_a_guard_that_waits_sees_the_same() -> None:
    """visit and visit_async differ only in who waits."""

    async def waiting(texts: list[str], channel: str) -> list[str]:
        return named(texts, channel)

    value = ["a", {"b": "c"}]
    assert await visit_async(texts_in_value(value, "data"), waiting) == visit(
        texts_in_value(value, "data"), named
    )


def test_a_message() -> None:
    """Its text parts are one text; a fallback that says the same is not shown again."""
    call = ToolInvocationPart(tool_call_id="1", tool_name="t", args={"q": "z"})
    parts = [TextPart(text="a"), call, TextPart(text="b")]
    message = Message(id="m", role="user", content=Content(parts=list(parts), content="ab"))
    seen, _ = shown(texts_in_message(message))
    assert seen == [("input", ["a", "b"]), ("input", ["z"])]
    visit(texts_in_message(message), named)
    assert (parts[0].text, parts[2].text) == ("input:a", "input:b")  # type: ignore[union-attr]
    assert message.content.content == "input:ainput:b"
    assert call.args == {"q": "input:z"}
    other = Message(id="m", role="user", content=Content(parts=[], content="old"))
    assert shown(texts_in_message(other))[0] == [("input", []), ("input", ["old"])]


def test_chunks() -> None:
    """What of each chunk is shown, as which channel; None for chunks without whole texts."""
    call = ToolCall(tool_call_id="1", tool_name="t", args={"q": "a"})
    error = ToolError(tool_call_id="1", tool_name="t", args={"q": "a"}, error="e")
    answer = ToolResult(tool_call_id="1", tool_name="t", args={"q": "a"}, result="r")
    for chunk, expected in (
        (DataChunk(type="data-x", data={"k": "v"}), [("data", ["v"])]),
        (Source(title="t", url="u"), [("sources", ["t"]), ("sources", ["u"])]),
        (call, [("tool-arguments", ["a"])]),
        (error, [("tool-arguments", ["a"]), ("tool-results", ["e"])]),
        (answer, [("tool-arguments", ["a"])]),
    ):
        texts = texts_in_chunk(chunk, ALL, streaming=True)
        assert texts is not None
        seen, chunks = shown(texts)
        assert seen == expected
        assert chunks[-1] == chunk
        assert texts_in_chunk(chunk, frozenset({"text"}), streaming=False) is None
    assert texts_in_chunk(answer, ALL, streaming=False) is None
    delta = texts_in_chunk(ToolInputDelta(tool_call_id="1", args_text="{"), ALL, streaming=True)
    assert delta is not None
    assert visit(delta, named) == []
