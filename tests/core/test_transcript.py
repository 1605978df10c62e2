"""What left the chain: its framing repaired, written into the messages, handed to the client (R4.6, R3.6)."""

from __future__ import annotations

from typing import Any

import pytest

from harness_runs import Hooks, Seen, echo_tool, in_both_modes, make_agent, play
from interlock import InputChange, Message
from interlock.chunks import (
    Chunk,
    File,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    Source,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)
from interlock.memory import Memory
from interlock.messages import Content, TextPart
from interlock.testing import ScriptedModel, reasoning, text, tool_call

pytestmark = pytest.mark.anyio


def _short(chunks: list[Chunk]) -> list[str]:
    """Chunks as ``type:id:text``, without the run's and the steps' frame."""
    frame = ("start", "step-start", "step-finish", "finish")
    return [
        ":".join(
            [each.type, *(str(getattr(each, name)) for name in ("id", "text") if getattr(each, name, None))]
        )
        for each in chunks
        if each.type not in frame
    ]


def _parts(seen: Seen) -> list[str]:
    """The parts of the answer's messages as ``type:text``; messages separated by ``|``."""
    rows: list[list[str]] = []
    for message in seen.result.messages:
        texts = [(part.type, getattr(part, "text", "")) for part in message.content.parts]
        rows.append([f"{kind}:{said}" if said else kind for kind, said in texts])
    return [each for index, row in enumerate(rows) for each in (["|"] if index else []) + row]


FRAMING: dict[str, tuple[list[Any], list[str], list[str]]] = {
    # what the model sent: what the client gets, what the message holds
    "a delta without a start": (
        [TextDelta(id="t", text="a"), TextEnd(id="t")],
        ["text-start:t", "text-delta:t:a", "text-end:t"],
        ["text:a"],
    ),
    "an end without a block": (
        [TextEnd(id="x"), text("a", id="t")],
        ["text-start:t", "text-delta:t:a", "text-end:t"],
        ["text:a"],
    ),
    "a start given twice": (
        [TextStart(id="t"), TextStart(id="t"), TextDelta(id="t", text="a"), TextEnd(id="t")],
        ["text-start:t", "text-delta:t:a", "text-end:t"],
        ["text:a"],
    ),
    "an end given twice": (
        [*(TextStart(id="t"), TextDelta(id="t", text="a"), TextEnd(id="t")), TextEnd(id="t")],
        ["text-start:t", "text-delta:t:a", "text-end:t"],
        ["text:a"],
    ),
    "no end": (
        [TextStart(id="t"), TextDelta(id="t", text="a")],
        ["text-start:t", "text-delta:t:a", "text-end:t"],
        ["text:a"],
    ),
    "a delta after the end": (
        [text("a", id="t"), TextDelta(id="t", text="b")],
        ["text-start:t", "text-delta:t:a", "text-end:t", "text-start:t", "text-delta:t:b", "text-end:t"],
        ["text:ab"],
    ),
    "the same id again": (
        [text("a", id="t"), text("b", id="t")],
        ["text-start:t", "text-delta:t:a", "text-end:t", "text-start:t", "text-delta:t:b", "text-end:t"],
        ["text:ab"],
    ),
    "another id": (
        [text("a", id="t"), text("b", id="u")],
        ["text-start:t", "text-delta:t:a", "text-end:t", "text-start:u", "text-delta:u:b", "text-end:u"],
        ["text:a", "text:b"],
    ),
    "the same id after something else": (
        [text("a", id="t"), reasoning("r", id="r"), text("b", id="t")],
        [
            *("text-start:t", "text-delta:t:a", "text-end:t"),
            *("reasoning-start:r", "reasoning-delta:r:r", "reasoning-end:r"),
            *("text-start:t", "text-delta:t:b", "text-end:t"),
        ],
        ["text:a", "reasoning:r", "text:b"],
    ),
    "blocks inside one another": (
        [
            *(
                TextStart(id="t"),
                ReasoningStart(id="r"),
                TextDelta(id="t", text="a"),
                ReasoningDelta(id="r", text="x"),
            ),
            *(TextDelta(id="t", text="b"), ReasoningEnd(id="r"), TextEnd(id="t")),
        ],
        [
            *("text-start:t", "reasoning-start:r", "text-delta:t:a", "reasoning-delta:r:x"),
            *("text-delta:t:b", "reasoning-end:r", "text-end:t"),
        ],
        ["text:ab", "reasoning:x"],
    ),
    "two text blocks at once": (  # what was shown and the joined parts must be the same text (R0.1)
        [
            *(TextStart(id="t"), TextStart(id="u"), TextDelta(id="u", text="2"), TextDelta(id="t", text="1")),
            *(TextEnd(id="t"), TextEnd(id="u")),
        ],
        [
            *("text-start:t", "text-start:u", "text-delta:u:2"),
            *("text-end:t", "text-start:t", "text-delta:t:1", "text-end:t", "text-end:u"),
        ],
        ["text:2", "text:1"],
    ),
    "two reasoning blocks at once": (  # guards judged it in the order it came
        [
            *(ReasoningStart(id="t"), ReasoningStart(id="u"), ReasoningDelta(id="t", text="1")),
            *(ReasoningDelta(id="u", text="2"), ReasoningDelta(id="t", text="3")),
            *(ReasoningEnd(id="t"), ReasoningEnd(id="u")),
        ],
        [
            *("reasoning-start:t", "reasoning-start:u", "reasoning-delta:t:1", "reasoning-delta:u:2"),
            *(
                "reasoning-end:t",
                "reasoning-start:t",
                "reasoning-delta:t:3",
                "reasoning-end:t",
                "reasoning-end:u",
            ),
        ],
        ["reasoning:1", "reasoning:2", "reasoning:3"],
    ),
    "an empty block": ([text(id="t")], ["text-start:t", "text-end:t"], []),
    "empty deltas": (
        [text("", "a", id="t")],
        ["text-start:t", "text-delta:t", "text-delta:t:a", "text-end:t"],
        ["text:a"],
    ),
    "a reasoning delta alone": (
        [ReasoningDelta(id="r", text="x")],
        ["reasoning-start:r", "reasoning-delta:r:x", "reasoning-end:r"],
        ["reasoning:x"],
    ),
    "one id for text and reasoning": (
        [reasoning("x", id="0"), text("a", id="0")],
        [
            "reasoning-start:0",
            "reasoning-delta:0:x",
            "reasoning-end:0",
            "text-start:0",
            "text-delta:0:a",
            "text-end:0",
        ],
        ["reasoning:x", "text:a"],
    ),
}


@in_both_modes
@pytest.mark.parametrize("case", FRAMING)
async def test_framing_is_repaired(case: str, mode: str) -> None:
    """Whatever the model sends, a delta stands inside an open block and the parts say the same (R4.6, R3.6)."""
    script, sent, parts = FRAMING[case]
    seen = await play(make_agent(ScriptedModel(script)), mode=mode)
    if mode == "stream":
        assert _short(seen.chunks) == sent
        assert seen.shown == seen.result.text
    assert _parts(seen) == parts


@in_both_modes
async def test_deltas_without_any_id_make_one_block(mode: str) -> None:
    """Deltas of a model that gives no ids are one block, with an id of its own (R4.6)."""
    seen = await play(make_agent(ScriptedModel([TextDelta(text="a"), TextDelta(text="b")])), mode=mode)
    assert _parts(seen) == ["text:ab"]
    if mode == "stream":
        kinds = ["text-start", "text-delta", "text-delta", "text-end"]
        assert [chunk.type for chunk in seen.chunks[2:-2]] == kinds
        assert len({chunk.id for chunk in seen.chunks[2:-2]}) == 1  # type: ignore[attr-defined]
        assert seen.chunks[2].id  # type: ignore[attr-defined]


@in_both_modes
async def test_metadata_of_a_block_is_its_parts(mode: str) -> None:
    """provider_metadata of start, deltas and end is merged into the part, provider by provider (R3.6)."""
    script = [
        TextStart(id="t", provider_metadata={"p": {"start": 1}}),
        TextDelta(id="t", text="a", provider_metadata={"p": {"delta": 2}}),
        TextEnd(id="t", provider_metadata={"p": {"end": 3}, "q": {"x": 4}}),
        TextStart(id="t", provider_metadata={"q": {"again": 5}}),
        TextDelta(id="t", text="b"),
        TextEnd(id="t"),
    ]
    seen = await play(make_agent(ScriptedModel(script)), mode=mode)
    (part,) = seen.result.messages[0].content.parts
    assert part.provider_metadata == {"p": {"start": 1, "delta": 2, "end": 3}, "q": {"x": 4, "again": 5}}


@in_both_modes
async def test_an_empty_block_that_carries_metadata_stays(mode: str) -> None:
    """Reasoning without text but with a signature must reach the next prompt (R3.6)."""
    script = [
        ReasoningStart(id="r"),
        ReasoningEnd(id="r", provider_metadata={"p": {"signature": "s"}}),
        text("a"),
    ]
    seen = await play(make_agent(ScriptedModel(script)), mode=mode)
    assert _parts(seen) == ["reasoning", "text:a"]


TOOL_INPUT: dict[str, tuple[list[Any], list[str]]] = {
    "complete": (
        [
            ToolInputStart(tool_call_id="c", tool_name="echo"),
            ToolInputDelta(tool_call_id="c", args_text="{}"),
            ToolInputEnd(tool_call_id="c"),
        ],
        ["start", "delta", "end", "call"],
    ),
    "without an end": (
        [
            ToolInputStart(tool_call_id="c", tool_name="echo"),
            ToolInputDelta(tool_call_id="c", args_text="{}"),
        ],
        ["start", "delta", "end", "call"],
    ),
    "without a start": (
        [ToolInputDelta(tool_call_id="c", args_text="{}", tool_name="echo")],
        ["start", "delta", "end", "call"],
    ),
    "an end alone": ([ToolInputEnd(tool_call_id="c")], ["call"]),
    "a start twice": (
        [ToolInputStart(tool_call_id="c", tool_name="echo")] * 2,
        ["start", "end", "call"],
    ),
}


@pytest.mark.parametrize("case", TOOL_INPUT)
async def test_framing_of_streamed_arguments(case: str) -> None:
    """Streamed tool arguments have one start and one end, in front of their call (R4.6)."""
    script, sent = TOOL_INPUT[case]
    call = ToolCall(tool_call_id="c", tool_name="echo", args={"value": 1})
    seen = await play(
        make_agent(ScriptedModel([*script, call], [text("ok")]), tools=[echo_tool()]), mode="stream"
    )
    names = {
        "tool-call-input-streaming-start": "start",
        "tool-call-delta": "delta",
        "tool-call-input-streaming-end": "end",
        "tool-call": "call",
    }
    assert [names[kind] for kind in seen.types if kind in names] == sent


# -------------------------------------------------------------------------------------------------- order of the parts


@in_both_modes
async def test_parts_stand_in_the_order_they_began(mode: str) -> None:
    """Parts stand in the order in which the client saw them begin (R3.6)."""
    script = [
        reasoning("think"),
        Source(id="s", url="https://x", title="X"),
        text("a"),
        File(mime_type="image/png", data="QUJD"),
        tool_call("echo", {"value": 1}),
    ]
    seen = await play(make_agent(ScriptedModel(script, [text("b")]), tools=[echo_tool()]), mode=mode)
    kinds = ["reasoning:think", "source", "text:a", "file", "tool-invocation", "step-start", "text:b"]
    assert _parts(seen) == kinds
    assert [source.url for source in seen.result.sources] == ["https://x"]
    assert [file.data for file in seen.result.files] == ["QUJD"]


@in_both_modes
async def test_step_start_stands_only_between_two_steps(mode: str) -> None:
    """step-start parts stand between the steps of one message and nowhere else (R3.6)."""
    model = ScriptedModel(
        [text("a"), tool_call("echo", {"value": 1}), tool_call("echo", {"value": 2}), text("b", id="late")],
        [tool_call("echo", {"value": 3})],
        [text("c")],
    )
    seen = await play(make_agent(model, tools=[echo_tool()]), mode=mode)
    call = "tool-invocation"
    assert _parts(seen) == ["text:a", call, call, "text:b", "step-start", call, "step-start", "text:c"]


@in_both_modes
async def test_an_empty_step_leaves_no_border(mode: str) -> None:
    """A step of which nothing stays leaves no step-start behind (R3.6)."""

    def drop_second(chunk: Any, ctx: Any) -> Any:
        return None if ctx.step_number == 1 and isinstance(chunk, TextDelta) else chunk

    model = ScriptedModel([text("a"), tool_call("echo", {"value": 1})], [text("gone")])
    agent = make_agent(model, Hooks("d", process_output_stream=drop_second), tools=[echo_tool()])
    seen = await play(agent, mode=mode)
    assert _parts(seen) == ["text:a", "tool-invocation"]


@in_both_modes
@pytest.mark.parametrize("release", ["live", "step", "run"])
async def test_data_stands_where_the_client_saw_it(release: Any, mode: str) -> None:
    """Data sent before the answer stands in front; equal ones are all kept, transient ones not (R3.6, R8.4)."""

    async def before(step: Any, ctx: Any) -> None:
        await ctx.writer.custom({"type": "data-a", "data": 1})
        await ctx.writer.custom({"type": "data-a", "data": 1})
        await ctx.writer.custom({"type": "data-t", "data": 1, "transient": True})

    async def inside(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta) and chunk.text == "y":
            await ctx.writer.custom({"type": "data-b", "data": 2})
        return chunk

    agent = make_agent(
        ScriptedModel([text("x", "y"), text("z", id="second")]),
        Hooks("b", process_input_step=before),
        Hooks("i", process_output_stream=inside),
    )
    seen = await play(agent, mode=mode, release=release)
    middle = ["text:xy", "data-b", "text:z"] if release == "live" else ["data-b", "text:xy", "text:z"]
    assert _parts(seen) == ["data-a", "data-a", *middle]
    if mode == "stream":
        begun = [c.type for c in seen.chunks if c.type.startswith("data-") or c.type == "text-start"]
        expected = [kind.split(":")[0].replace("text", "text-start") for kind in middle]
        assert begun == ["data-a", "data-a", "data-t", *expected]


@in_both_modes
async def test_an_answer_goes_on_only_in_the_runs_own_message(mode: str) -> None:
    """A message that a hook added stays apart: the answer after it starts a new one (R3.6)."""

    def add(output: Any, ctx: Any) -> Any:
        if ctx.step_number == 0:
            ctx.message_list.add([{"role": "assistant", "content": "added"}], "response")
            return ctx.message_list
        return None

    model = ScriptedModel([text("a"), tool_call("echo", {"value": 1})], [text("b")])
    seen = await play(make_agent(model, Hooks("a", process_output_step=add), tools=[echo_tool()]), mode=mode)
    assert _parts(seen) == ["text:a", "tool-invocation", "|", "text:added", "|", "text:b"]
    assert seen.result.text == "aaddedb"


@in_both_modes
async def test_an_answer_does_not_go_on_in_a_given_message(mode: str) -> None:
    """A conversation that ends with an assistant message gets the answer in a new message (R3.6)."""
    given = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "so far"}]
    seen = await play(make_agent(ScriptedModel([text("more")])), given, mode=mode)
    assert _parts(seen) == ["text:more"]
    assert [message.text for message in seen.result.all_messages] == ["q", "so far", "more"]


@in_both_modes
async def test_two_calls_of_one_id_are_kept_apart(mode: str) -> None:
    """A model that uses a call id twice in a step makes two calls, each with its own result (R3.8)."""
    model = ScriptedModel(
        [tool_call("echo", {"value": 1}, id="same"), tool_call("echo", {"value": 2}, id="same")], [text("ok")]
    )
    seen = await play(make_agent(model, tools=[echo_tool()]), mode=mode)
    assert [result.result for result in seen.result.tool_results] == [1, 2]
    assert len({call.tool_call_id for call in seen.result.tool_calls}) == 2
    results = model.calls[1].prompt[-1]["content"]
    assert [result["output"]["value"] for result in results] == [1, 2]


@in_both_modes
async def test_a_part_may_be_given_another_type_in_place(mode: str) -> None:
    """A retyped part is no text any more, is kept from the model, and survives storage (R3.6)."""

    def retype(output: Any, ctx: Any) -> None:
        for message in ctx.messages:
            for part in message.content.parts:
                if part.type == "text" and getattr(part, "text", "") == "hidden":
                    part.type = "data-hidden"

    memory = Memory()
    model = ScriptedModel([text("shown"), text("hidden", id="h")], [text("next")])
    agent = make_agent(model, Hooks("r", process_output_step=retype), memory=memory)
    seen = await play(agent, "q", mode=mode, memory={"thread": "t"})
    assert seen.result.text == "shown"
    assert [part.type for part in seen.result.messages[0].content.parts] == ["text", "data-hidden"]
    await play(agent, "again", mode=mode, memory={"thread": "t"})
    assert "shown" in model.calls[1].prompt_text
    assert "hidden" not in model.calls[1].prompt_text
    stored = await memory.messages("t")
    assert [part.type for part in stored[1].content.parts] == ["text", "data-hidden"]


def test_message_text_is_the_parts_else_the_fallback() -> None:
    """message.text: the text parts joined, else content.content (R3.7)."""
    parts = [TextPart(text="a"), TextPart(text="x", type="data-x"), TextPart(text="b")]
    assert Message(id="1", role="user", content=Content(parts=[*parts], content="old")).text == "ab"
    assert Message(id="1", role="user", content=Content(parts=[], content="old")).text == "old"
    assert Message(id="1", role="user", content=Content(parts=[])).text == ""


# --------------------------------------------------------------------------------------------------- clean and raw


@in_both_modes
async def test_process_llm_response_gets_the_steps_chunks_in_clean_form(mode: str) -> None:
    """chunks: as they left the chain, repaired, without frame and data; raw_chunks: as the model said (R4.4)."""
    got: list[Any] = []

    def shout(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta):
            ctx.writer.custom({"type": "data-x", "data": 1})
            return chunk.replace(text=chunk.text.upper())
        return chunk

    script = [
        ResponseMetadata(id="r", model_id="m"),
        reasoning("hm", id="r"),
        TextDelta(id="t", text="a"),
        Finish(finish_reason="length"),
    ]
    agent = make_agent(
        ScriptedModel(script),
        Hooks("s", process_output_stream=shout),
        Hooks("l", process_llm_response=lambda response, ctx: got.append(response)),
    )
    await play(agent, mode=mode)
    (response,) = got
    kinds = [
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-end",
        "finish",
    ]
    assert [chunk.type for chunk in response.chunks] == kinds
    assert response.chunks[4].text == "A"
    assert response.chunks[-1] == Finish(finish_reason="length")
    raw = [chunk for chunk in response.raw_chunks if chunk.type.endswith("delta")]
    assert [chunk.text for chunk in raw] == ["hm", "a"]
    assert response.raw_chunks[-1].type == "finish"


@in_both_modes
async def test_clean_chunks_are_those_of_the_step(mode: str) -> None:
    """Each step has its own chunks; those of a rejected attempt are gone (R4.4, R7.3)."""
    got: list[list[str]] = []

    def look(response: Any, ctx: Any) -> None:
        got.append([chunk.text for chunk in response.chunks if isinstance(chunk, TextDelta)])

    def judge(output: Any, ctx: Any) -> None:
        if output.text == "bad":
            ctx.abort(retry=True)

    model = ScriptedModel([text("one"), tool_call("echo", {"value": 1})], [text("bad")], [text("two")])
    agent = make_agent(
        model,
        Hooks("l", process_llm_response=look),
        Hooks("j", process_output_step=judge),
        tools=[echo_tool()],
        max_processor_retries=1,
    )
    await play(agent, mode=mode)
    assert got == [["one"], ["bad"], ["two"]]


@in_both_modes
async def test_edits_of_chunks_do_not_reach_the_raw_ones(mode: str) -> None:
    """A hook that edits a chunk in place changes what leaves the chain, not what the model said (R4.4)."""
    got: list[Any] = []

    def edit(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta):
            chunk.text = "edited"
        if isinstance(chunk, ToolCall):
            chunk.args["value"] = "edited"
        return chunk

    agent = make_agent(
        ScriptedModel([text("said"), tool_call("echo", {"value": "said"})], [text("b")]),
        Hooks("e", process_output_stream=edit),
        Hooks("l", process_llm_response=lambda response, ctx: got.append(response)),
        tools=[echo_tool()],
    )
    await play(agent, mode=mode)
    assert "edited" in repr(got[0].chunks)
    assert "edited" not in repr(got[0].raw_chunks)


@in_both_modes
async def test_a_provider_executed_tool_is_one_part_with_its_result(mode: str) -> None:
    """Call and result of a provider-executed tool are one part of the step; nothing runs here (R3.6, R4.8)."""
    script = [
        ToolCall(tool_call_id="c", tool_name="search", args={"q": 1}, provider_executed=True),
        ToolResult(tool_call_id="c", tool_name="search", result={"found": True}, provider_executed=True),
        text("done"),
    ]
    model = ScriptedModel(script)
    seen = await play(make_agent(model), mode=mode)
    assert _parts(seen) == ["tool-invocation", "text:done"]
    assert len(model.calls) == 1
    part: Any = seen.result.messages[0].content.parts[0]
    assert (part.state, part.result, part.provider_executed) == ("result", {"found": True}, True)


@in_both_modes
async def test_messages_put_in_by_process_input_keep_their_place(mode: str) -> None:
    """The list's order is the prompt's order, added messages where they were put (R3.3)."""
    added = Message(id="mine", role="user", content=Content(parts=[TextPart(text="between")]))

    def insert(messages: Any, ctx: Any) -> InputChange:
        return InputChange(messages=[messages[0], added, messages[1]], system_messages=["rules"])

    model = ScriptedModel([text("ok")])
    seen = await play(
        make_agent(model, Hooks("i", process_input=insert), instructions="old"), ["a", "b"], mode=mode
    )
    assert model.calls[0].prompt_text == "rules\na\nbetween\nb"
    assert [message.id for message in seen.result.all_messages][1] == "mine"


@in_both_modes
async def test_data_may_name_the_message_it_is_kept_with(mode: str) -> None:
    """writer.custom(chunk, message_id=...) stores the part with that message (R9.1, R8.4)."""

    async def note(result: Any, ctx: Any) -> None:
        question = ctx.message_list.get.input.db()[0]
        await ctx.writer.custom({"type": "data-note", "data": 1}, message_id=question.id)

    memory = Memory()
    agent = make_agent(ScriptedModel([text("ok")]), Hooks("n", process_output_result=note), memory=memory)
    seen = await play(agent, "q", mode=mode, memory={"thread": "t"})
    kinds = [[part.type for part in message.content.parts] for message in await memory.messages("t")]
    assert kinds == [["text", "data-note"], ["text"]]
    if mode == "stream":
        assert "data-note" in seen.types
