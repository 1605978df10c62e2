"""Where the texts of a subject are, the same for every kind of guard (R0.3)."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.chunks import DataChunk, Source, ToolCall, ToolError, ToolInputDelta, ToolResult
from interlock.messages import Content, Message, SourcePart, TextPart, ToolInvocationPart
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
    """Every string is a text of its own, keys too, each of them once; what does not change is the same object. R0.3."""
    value = {"k": ["a", 1, {"n": "b", "k": "c"}], "none": None}
    assert visit(texts_in_value(value, "data"), named) == {
        "data:k": ["data:a", 1, {"data:n": "data:b", "data:k": "data:c"}],
        "data:none": None,
    }
    seen, same = shown(texts_in_value(value, "data"))
    assert seen == [("data", [each]) for each in ("k", "none", "a", "n", "b", "c")]
    assert same is value


def test_keys_that_become_the_same_are_numbered() -> None:
    """No value is lost where two keys are replaced alike; a key that stays keeps its name, whatever stands before."""
    value = {"x1": 1, "[X]": 2, "x2": 3, "y": {"x2": 4}, 5: 6}
    redacted = visit(
        texts_in_value(value, "data"),
        lambda texts, _: ["[X]" if each.startswith("x") else each for each in texts],
    )
    assert redacted == {"[X] (2)": 1, "[X]": 2, "[X] (3)": 3, "y": {"[X]": 4}, "5": 6}
    assert list(redacted) == ["[X] (2)", "[X]", "[X] (3)", "y", "5"]


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
    assert seen == [("input", ["a", "b"]), ("input", ["q"]), ("input", ["z"])]
    visit(texts_in_message(message), named)
    assert (parts[0].text, parts[2].text) == ("input:a", "input:b")  # type: ignore[union-attr]
    assert message.content.content == "input:ainput:b"
    assert call.args == {"input:q": "input:z"}
    link = SourcePart(source={"id": "s", "title": "t", "url": "u"})
    cited = Message(id="m", role="user", content=Content(parts=[link]))
    assert shown(texts_in_message(cited))[0] == [("input", []), ("input", ["t"]), ("input", ["u"])]
    visit(texts_in_message(cited), named)
    assert link.source == {"id": "s", "title": "input:t", "url": "input:u"}
    other = Message(id="m", role="user", content=Content(parts=[], content="old"))
    assert shown(texts_in_message(other))[0] == [("input", []), ("input", ["old"])]


def test_chunks() -> None:
    """What of each chunk is shown, as which channel; None for chunks without whole texts."""
    call = ToolCall(tool_call_id="1", tool_name="t", args={"q": "a"})
    error = ToolError(tool_call_id="1", tool_name="t", args={"q": "a"}, error="e")
    answer = ToolResult(tool_call_id="1", tool_name="t", args={"q": "a"}, result="r")
    for chunk, expected in (
        (DataChunk(type="data-x", data={"k": "v"}), [("data", ["k"]), ("data", ["v"])]),
        (Source(title="t", url="u"), [("sources", ["t"]), ("sources", ["u"])]),
        (call, [("tool-arguments", ["q"]), ("tool-arguments", ["a"])]),
        (
            error,
            [("tool-arguments", ["q"]), ("tool-arguments", ["a"]), ("tool-results", ["e"])],
        ),
        (answer, [("tool-arguments", ["q"]), ("tool-arguments", ["a"])]),
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
