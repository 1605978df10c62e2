"""Release policies (R7.5): what leaves when, and that what leaves is what is kept (R0)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock import Agent, Message, Processor, Retry, RunResult, tool
from interlock.chunks import (
    Chunk,
    DataChunk,
    File,
    Finish,
    ReasoningDelta,
    ReasoningStart,
    Source,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    Usage,
)
from interlock.core.messages import (
    Content,
    DataPart,
    FilePart,
    Part,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
)
from interlock.memory import Memory
from interlock.testing import ScriptedModel, error, reasoning, text, tool_call

POLICIES = ("live", "step", "run")
THREAD = {"thread": "t", "resource": "r"}


# ------------------------------------------------------------------------------------------------------------ helpers


class Hooks(Processor):
    """A processor made of functions: ``Hooks(process_output_step=...)``."""

    def __init__(self, id: str = "hooks", **hooks: Callable[..., Any]) -> None:
        self.id = id
        for name, function in hooks.items():
            setattr(self, name, function)


def hooks(name: str, function: Callable[..., Any]) -> Hooks:
    """A processor of one hook."""
    made: dict[str, Any] = {name: function}
    return Hooks(**made)


class Seen:
    """What a client saw, and what came of the run."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        self.stored: list[Message] = []

    @property
    def types(self) -> list[str]:
        return [chunk.type for chunk in self.chunks]

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks if isinstance(chunk, TextDelta))

    @property
    def done(self) -> RunResult:
        assert self.result is not None
        return self.result

    @property
    def stored_answer(self) -> list[Message]:
        return [message for message in self.stored if message.role == "assistant"]


async def play(
    model: Any, *processors: Any, release: str, cancel_at: str | None = None, **options: Any
) -> Seen:
    """Run an agent with memory, read its whole stream, and look into the store."""
    seen = Seen()
    memory = Memory()
    agent = Agent(id="a", model=model, output_processors=list(processors), memory=memory, **options)
    async with agent.stream("hi", release=release, memory=THREAD) as stream:  # type: ignore[arg-type]
        try:
            async for chunk in stream:
                seen.chunks.append(chunk)
                if chunk.type == cancel_at:
                    await stream.cancel()
        except Exception as problem:
            seen.error = problem
        else:
            seen.result = await stream.result()
    seen.stored = await memory.messages("t", resource="r")
    return seen


def shown(chunks: list[Chunk]) -> list[tuple[str, Any]]:
    """What a client puts on its screen: the blocks in the order they began. Checks the framing on the way (R4.6)."""
    blocks: list[tuple[str, Any]] = []
    open_blocks: dict[tuple[str, str], int] = {}
    inputs: dict[str, str] = {}
    last_text: str | None = None
    each: Any
    for each in chunks:
        chunk = each
        kind = chunk.type.split("-")[0]
        if chunk.type in ("text-start", "reasoning-start"):
            assert (kind, chunk.id) not in open_blocks, f"{chunk} opens an open block"
            if kind == "text" and last_text == chunk.id and blocks[-1][0] == "text":
                open_blocks[kind, chunk.id] = len(blocks) - 1  # it continues the part just before it (R3.6)
            else:
                open_blocks[kind, chunk.id] = len(blocks)
                blocks.append((kind, ""))
            last_text = chunk.id if kind == "text" else None
        elif isinstance(chunk, TextDelta | ReasoningDelta):
            place = open_blocks.get((kind, chunk.id))
            assert place is not None, f"{chunk} outside a block"
            blocks[place] = (kind, blocks[place][1] + chunk.text)
        elif chunk.type in ("text-end", "reasoning-end"):
            assert open_blocks.pop((kind, chunk.id), None) is not None, f"{chunk} ends nothing"
        elif isinstance(chunk, ToolInputStart):
            inputs[chunk.tool_call_id] = ""
        elif isinstance(chunk, ToolInputDelta):
            inputs[chunk.tool_call_id] += chunk.args_text
        elif isinstance(chunk, ToolCall):
            blocks.append(("tool", (chunk.tool_call_id, chunk.args)))
        elif isinstance(chunk, Source):
            blocks.append(("source", chunk.title))
        elif isinstance(chunk, File):
            blocks.append(("file", chunk.data))
        elif isinstance(chunk, DataChunk):
            blocks.append(("data", chunk.data))
        elif isinstance(chunk, StepFinish):
            assert not open_blocks, f"{open_blocks} open at the step's end"
            last_text = None
    return [block for block in blocks if block != ("text", "") and block != ("reasoning", "")]


def kept(messages: list[Message]) -> list[tuple[str, Any]]:
    """The same of stored messages."""
    blocks: list[tuple[str, Any]] = []
    for message in messages:
        for part in message.content.parts:
            match part:
                case TextPart(type="text"):
                    blocks.append(("text", part.text))
                case ReasoningPart(type="reasoning"):
                    blocks.append(("reasoning", part.text))
                case ToolInvocationPart():
                    blocks.append(("tool", (part.tool_call_id, part.args)))
                case SourcePart():
                    blocks.append(("source", part.source.get("title")))
                case FilePart():
                    blocks.append(("file", part.data))
                case DataPart():
                    blocks.append(("data", part.data))
                case _:
                    assert isinstance(part, StepStartPart), part
    return [block for block in blocks if block != ("text", "") and block != ("reasoning", "")]


def assert_one_truth(seen: Seen) -> None:
    """R0.1: client, result, message list and store say the same."""
    assert seen.error is None
    assert seen.done.tripwire is None
    stored_text = "".join(message.text for message in seen.stored_answer)
    assert seen.text == seen.done.text == stored_text == seen.done.released_text
    assert "".join(message.text for message in seen.done.messages) == stored_text
    # what a hook puts in front of an earlier step's text belongs to the step under way (R3.3): the steps tell all
    # the text, in their own order
    assert sorted("".join(step.text for step in seen.done.steps)) == sorted(stored_text)
    assert shown(seen.chunks) == kept(seen.stored_answer) == kept(seen.done.messages)
    last = seen.chunks[-1]
    assert isinstance(last, Finish)
    assert [step.text for step in last.steps or []] == [step.text for step in seen.done.steps]
    accepted = [chunk for chunk in seen.chunks if isinstance(chunk, StepFinish)]
    assert [chunk.text for chunk in accepted] == [
        step.text for step in seen.done.steps if step.tripwire is None
    ]


def answer_parts(ctx: Any) -> list[Part]:
    """The parts of the answer under way."""
    return ctx.message_list.get.response.db()[-1].content.parts


@tool
def look(query: str) -> str:
    """Look something up."""
    return f"found {query}"


# ------------------------------------------------------------------------------------------------------ when it leaves


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("release", "after_stream", "after_step", "after_result"),
    [
        ("live", ["step 0"], ["step 0"], ["step 0", "step 1"]),
        ("step", [], ["step 0"], ["step 0", "step 1"]),
        ("run", [], [], []),
    ],
)
async def test_text_leaves_when_its_policy_says(
    release: str, after_stream: list[str], after_step: list[str], after_result: list[str]
) -> None:
    """R7.5: live at once, step when process_output_step has accepted, run after process_output_result."""
    texts: list[str] = []
    at: dict[str, list[str]] = {}
    model = ScriptedModel([text("step 0"), tool_call("look", {"query": "x"})], [text("step 1")])

    def see(chunk: Chunk, ctx: Any) -> Chunk:
        if isinstance(chunk, ToolResult):
            at["after step"] = list(texts)
        return chunk

    async def in_step(output: Any, ctx: Any) -> None:
        for _ in range(5):  # let the reader take what is out
            await asyncio.sleep(0)
        at.setdefault("in step", list(texts))

    async def in_result(result: Any, ctx: Any) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        at["in result"] = list(texts)

    async def pause(result: Any, ctx: Any) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    hooks = Hooks(
        process_output_stream=see,
        process_output_step=in_step,
        process_tool_result=pause,
        process_output_result=in_result,
    )
    agent = Agent(id="a", model=model, tools=[look], output_processors=[hooks])
    async with agent.stream("hi", release=release) as stream:  # type: ignore[arg-type]
        async for piece in stream.text_stream:
            texts.append(piece)
    assert at == {"in step": after_stream, "after step": after_step, "in result": after_result}
    assert texts == ["step 0", "step 1"]


@pytest.mark.anyio
@pytest.mark.parametrize("release", POLICIES)
async def test_a_run_that_nobody_edits_is_the_same_under_every_policy(release: str) -> None:
    """R7.5: the policy decides when chunks go out, never which: held chunks keep their pieces and their order."""

    def script() -> ScriptedModel:
        return ScriptedModel(
            [
                reasoning("thi", "nk"),
                text("a", "b"),
                ToolInputStart(tool_call_id="c", tool_name="look"),
                ToolInputDelta(tool_call_id="c", args_text='{"query": "x"}'),
                ToolInputEnd(tool_call_id="c"),
                tool_call("look", {"query": "x"}, id="c"),
            ],
            [Source(id="s", title="T", url="http://x"), File(mime_type="image/png", data="QQ=="), text("c")],
        )

    seen = await play(script(), release=release, tools=[look])
    assert seen.types == [
        "start",
        "step-start",
        *("reasoning-start", "reasoning-delta", "reasoning-delta", "reasoning-end"),
        *("text-start", "text-delta", "text-delta", "text-end"),
        *("tool-call-input-streaming-start", "tool-call-delta", "tool-call-input-streaming-end", "tool-call"),
        "tool-result",
        "step-finish",
        "step-start",
        *("source", "file", "text-start", "text-delta", "text-end"),
        "step-finish",
        "finish",
    ]
    assert_one_truth(seen)


@pytest.mark.anyio
@pytest.mark.parametrize("release", POLICIES)
@pytest.mark.parametrize("transient", [False, True])
async def test_custom_data_goes_out_at_once(release: str, transient: bool) -> None:
    """R7.5, R9.1: custom data never waits, from whichever hook; R3.6: it is stored where the client saw it begin."""
    arrived: list[str] = []
    seen_in_time: list[list[str]] = []

    def send(name: str) -> Callable[..., Any]:
        async def hook(subject: Any, ctx: Any) -> Any:
            if not isinstance(subject, Chunk) or isinstance(subject, TextDelta):
                await ctx.writer.custom({"type": "data-at", "data": name, "transient": transient})
                for _ in range(5):
                    await asyncio.sleep(0)
                seen_in_time.append([name, *arrived])
            return subject if isinstance(subject, Chunk) else None

        return hook

    hooks = Hooks(
        process_output_stream=send("stream"),
        process_output_step=send("step"),
        process_output_result=send("result"),
    )
    starter = Hooks(id="starter", process_input=send("input"))
    memory = Memory()
    agent = Agent(
        id="a",
        model=ScriptedModel([text("hello")]),
        input_processors=[starter],
        output_processors=[hooks],
        memory=memory,
    )
    chunks: list[Chunk] = []
    async with agent.stream("hi", release=release, memory=THREAD) as stream:  # type: ignore[arg-type]
        async for chunk in stream:
            chunks.append(chunk)
            if isinstance(chunk, DataChunk):
                arrived.append(chunk.data)
    stored = [m for m in await memory.messages("t", resource="r") if m.role == "assistant"]
    assert [entry[0] for entry in seen_in_time] == ["input", "stream", "step", "result"]
    for entry in seen_in_time:
        assert entry[0] in entry[1:], f"{entry[0]} had not arrived when its hook went on"
    blocks = shown(chunks)
    expected = [block for block in blocks if block[0] != "data"] if transient else blocks
    assert kept(stored) == expected


# ----------------------------------------------------------------------------------------------------- kinds of an end


class BreaksOff:
    """A model whose stream breaks after its text."""

    provider = "test"
    model_id = "breaks-off"

    async def stream(self, request: Any) -> AsyncGenerator[Chunk, None]:
        yield TextStart(id="t")
        yield TextDelta(id="t", text="swordfish")
        raise error(500, "gone", retryable=False)


class Hangs:
    """A model that says something and then waits for ever."""

    provider = "test"
    model_id = "hangs"

    async def stream(self, request: Any) -> AsyncGenerator[Chunk, None]:
        yield TextStart(id="t")
        yield TextDelta(id="t", text="swordfish")
        await asyncio.Event().wait()


def say_everything() -> ScriptedModel:
    """A model that puts the secret into every channel."""
    return ScriptedModel(
        [
            reasoning("sword", "fish"),
            text("sword", "fish"),
            Source(id="s", title="swordfish", url="http://swordfish"),
            File(mime_type="text/plain", data="swordfish"),
            ToolInputStart(tool_call_id="c", tool_name="look"),
            ToolInputDelta(tool_call_id="c", args_text='{"query": "swordfish"}'),
            ToolInputEnd(tool_call_id="c"),
            tool_call("look", {"query": "swordfish"}, id="c"),
        ],
        [text("swordfish again")],
    )


def aborts(subject: Any, ctx: Any) -> None:
    """Block."""
    ctx.abort("no")


def fails(subject: Any, ctx: Any) -> None:
    """An exception in a hook."""
    raise RuntimeError("broken hook")


def leaks(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Chunks with a piece of the secret in any field, however deep."""
    return [
        chunk for chunk in chunks if "sword" in repr(chunk) or "fish" in repr(chunk).replace("finish", "")
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["step", "run"])
@pytest.mark.parametrize(("end", "last"), [(aborts, "tripwire"), (fails, "error")])
async def test_what_output_step_refuses_never_leaves(
    release: str, end: Callable[..., None], last: str
) -> None:
    """R5.2, R5.4, R0.3: held chunks never leave after a block or an exception, in any channel or field."""
    seen = await play(say_everything(), Hooks(process_output_step=end), release=release, tools=[look])
    assert seen.types == ["start", last]
    assert not leaks(seen.chunks)
    assert seen.stored == []


@pytest.mark.anyio
@pytest.mark.parametrize("hook", ["process_output_step", "process_output_result"])
@pytest.mark.parametrize(("end", "last"), [(aborts, "tripwire"), (fails, "error")])
async def test_live_text_is_out_before_a_later_hook(hook: str, end: Callable[..., None], last: str) -> None:
    """R0: under live, text can be out before a later hook refuses it; released_text says so, the result has none."""
    seen = await play(ScriptedModel([text("swordfish")]), hooks(hook, end), release="live")
    assert seen.text == "swordfish"
    assert seen.types[-1] == last
    assert seen.types.count(last) == 1
    if last == "tripwire":
        assert seen.done.text == ""
        assert seen.done.released_text == "swordfish"
        assert not any(message.text for message in seen.done.messages)


@pytest.mark.anyio
@pytest.mark.parametrize(("end", "last"), [(aborts, "tripwire"), (fails, "error")])
async def test_run_holds_everything_until_the_answer_is_accepted(end: Callable[..., None], last: str) -> None:
    """R7.5, R0.3: under run nothing of a refused answer leaves: no text, steps, calls, results, files or titles."""
    seen = await play(say_everything(), Hooks(process_output_result=end), release="run", tools=[look])
    assert seen.types == ["start", last]
    assert not leaks(seen.chunks)
    if last == "tripwire":
        assert seen.done.text == ""
        assert seen.done.released_text == ""


@pytest.mark.anyio
@pytest.mark.parametrize(("end", "last"), [(aborts, "tripwire"), (fails, "error")])
async def test_step_has_released_accepted_steps_before_the_result_is_refused(
    end: Callable[..., None], last: str
) -> None:
    """R0, R7.5: under step an accepted step is out when process_output_result refuses; the last chunk tells."""
    seen = await play(ScriptedModel([text("shown")]), Hooks(process_output_result=end), release="step")
    assert seen.types == ["start", "step-start", "text-start", "text-delta", "text-end", "step-finish", last]
    if last == "tripwire":
        assert (seen.done.text, seen.done.released_text) == ("", "shown")
        assert [step.text for step in seen.done.steps] == [""]


@pytest.mark.anyio
@pytest.mark.parametrize(("release", "text_out"), [("live", "swordfish"), ("step", ""), ("run", "")])
async def test_a_broken_stream_releases_nothing_that_was_held(release: str, text_out: str) -> None:
    """R5.4, R8.2: after a provider's failure the held text is not sent, and only released text is stored."""
    seen = await play(BreaksOff(), release=release)
    assert seen.text == text_out
    assert seen.types[-1] == "error"
    assert "text-end" not in seen.types
    assert seen.error is not None
    assert "gone" in str(seen.error)
    assert "".join(message.text for message in seen.stored_answer) == text_out
    assert seen.stored[-1].content.metadata == {"unfinished": True}


@pytest.mark.anyio
@pytest.mark.parametrize(("release", "text_out"), [("live", "swordfish"), ("step", ""), ("run", "")])
async def test_a_cancelled_run_releases_nothing_that_was_held(release: str, text_out: str) -> None:
    """R5.5, R8.2: a cancellation sends an abort chunk and no held text; storage keeps what had left."""
    waiting = asyncio.Event()

    def tell(chunk: Chunk, ctx: Any) -> Chunk:
        if isinstance(chunk, TextDelta):
            waiting.set()
        return chunk

    memory = Memory()
    agent = Agent(id="a", model=Hangs(), output_processors=[Hooks(process_output_stream=tell)], memory=memory)
    async with agent.stream("hi", release=release, memory=THREAD) as stream:  # type: ignore[arg-type]
        await waiting.wait()
        await asyncio.sleep(0)
        await stream.cancel()
        chunks = [chunk async for chunk in stream]
        result = await stream.result()
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)) == text_out
    assert chunks[-1].type == "abort"
    assert "text-end" not in [chunk.type for chunk in chunks]
    assert (result.finish_reason, result.text, result.steps) == ("aborted", "", [])
    stored = await memory.messages("t", resource="r")
    assert "".join(message.text for message in stored if message.role == "assistant") == text_out


@pytest.mark.anyio
@pytest.mark.parametrize("release", POLICIES)
async def test_a_block_in_the_stream_ends_at_the_block(release: str) -> None:
    """R5.2, R4.6: the tripwire is the last chunk, ends the open block without a text-end, and holds back the rest."""

    def guard(chunk: Chunk, ctx: Any) -> Chunk:
        if isinstance(chunk, TextDelta) and "fish" in chunk.text:
            ctx.abort("refused", metadata={"n": 1})
        return chunk

    seen = await play(
        ScriptedModel([text("fine ", "swordfish", " more")]),
        Hooks(process_output_stream=guard),
        release=release,
    )
    live = ["step-start", "text-start", "text-delta"] if release == "live" else []
    assert seen.types == ["start", *live, "tripwire"]
    assert seen.text == ("fine " if release == "live" else "")
    assert not leaks(seen.chunks)
    assert seen.done.released_text == seen.text
    assert seen.done.text == ""
    assert seen.stored == []


# --------------------------------------------------------------------------------------------------- rejected attempts


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["step", "run"])
async def test_a_rejected_attempt_never_leaves(release: str) -> None:
    """R7.3, R7.5: under step and run the client sees one clean step: nothing of an attempt that was sent back."""
    model = ScriptedModel(
        [reasoning("swordfish"), text("swordfish"), tool_call("look", {"query": "swordfish"})],
        [text("good")],
    )

    def judge(output: Any, ctx: Any) -> None:
        if "swordfish" in output.text:
            ctx.abort("try again", retry=True)

    seen = await play(
        model, Hooks(process_output_step=judge), release=release, tools=[look], max_processor_retries=1
    )
    assert seen.types == [
        "start",
        "step-start",
        "text-start",
        "text-delta",
        "text-end",
        "step-finish",
        "finish",
    ]
    assert not leaks(seen.chunks)
    assert seen.done.text == seen.text == "good"
    assert kept(seen.stored_answer) == [("text", "good")]


@pytest.mark.anyio
@pytest.mark.parametrize("release", POLICIES)
async def test_an_attempt_rejected_by_output_result(release: str) -> None:
    """R7.3: a finished step that process_output_result sends back is withdrawn where it was seen, unseen under run."""
    model = ScriptedModel([text("swordfish")], [text("good")])

    def judge(result: Any, ctx: Any) -> None:
        if "swordfish" in result.text:
            ctx.abort("try again", retry=True)

    seen = await play(model, Hooks(process_output_result=judge), release=release, max_processor_retries=1)
    finishes = [chunk for chunk in seen.chunks if isinstance(chunk, StepFinish)]
    if release == "run":
        assert not leaks(seen.chunks)
        assert [chunk.finish_reason for chunk in finishes] == ["stop"]
    else:
        assert [chunk.finish_reason for chunk in finishes] == ["stop", "retry", "stop"]
        assert finishes[1].text == ""
        assert not leaks(finishes[1:2])
    assert seen.done.text == "good"
    assert kept(seen.stored_answer) == [("text", "good")]


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["step", "run"])
async def test_an_accepted_step_stays_held_when_a_later_one_is_rejected(release: str) -> None:
    """R7.3: earlier accepted steps stay; only the rejected attempt is dropped from what is held."""
    model = ScriptedModel(
        [text("first"), tool_call("look", {"query": "x"})], [text("swordfish")], [text("second")]
    )

    def judge(output: Any, ctx: Any) -> None:
        if "swordfish" in output.text:
            ctx.abort("try again", retry=True)

    seen = await play(
        model, Hooks(process_output_step=judge), release=release, tools=[look], max_processor_retries=1
    )
    assert not leaks(seen.chunks)
    assert seen.text == seen.done.text == "firstsecond"
    assert [chunk.text for chunk in seen.chunks if isinstance(chunk, StepFinish)] == ["first", "second"]


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["step", "run"])
async def test_a_failed_attempt_never_leaves(release: str) -> None:
    """R4.5: the partial output of a failed call is withdrawn; under step and run nobody has seen it."""
    model = ScriptedModel(
        [TextStart(id="t"), TextDelta(id="t", text="swordfish"), error(400, "no")], [text("good")]
    )

    class Again(Processor):
        id = "again"

        def process_api_error(self, error: Exception, ctx: Any) -> Retry:
            return Retry()

    seen = await play(model, release=release, error_processors=[Again()])
    assert not leaks(seen.chunks)
    assert [chunk.finish_reason for chunk in seen.chunks if isinstance(chunk, StepFinish)] == ["stop"]
    assert seen.text == seen.done.text == "good"
    assert kept(seen.stored_answer) == [("text", "good")]


# ---------------------------------------------------------------------------------------------------- edits, one by one

Edit = Callable[[list[Part]], None]


def _edit_text(parts: list[Part]) -> None:
    next(part for part in parts if isinstance(part, TextPart)).text = "new"


def _replace_text(parts: list[Part]) -> None:
    index = next(i for i, part in enumerate(parts) if isinstance(part, TextPart))
    parts[index] = TextPart(text="put in its place")


def _empty_text(parts: list[Part]) -> None:
    next(part for part in parts if isinstance(part, TextPart)).text = ""


def _remove_text(parts: list[Part]) -> None:
    parts[:] = [part for part in parts if not isinstance(part, TextPart)]


def _remove_all(parts: list[Part]) -> None:
    parts.clear()


def _add_last(parts: list[Part]) -> None:
    parts.append(TextPart(text=" added"))


def _add_first(parts: list[Part]) -> None:
    parts.insert(0, TextPart(text="added "))


def _add_between(parts: list[Part]) -> None:
    parts.insert(1, TextPart(text="added"))


def _add_others(parts: list[Part]) -> None:
    parts += [
        ReasoningPart(text="why"),
        SourcePart(source={"sourceType": "url", "id": "n", "title": "new", "url": "u"}),
        FilePart(mime_type="text/plain", data="QQ=="),
    ]


def _edit_reasoning(parts: list[Part]) -> None:
    next(part for part in parts if isinstance(part, ReasoningPart)).text = "thought over"


def _remove_reasoning(parts: list[Part]) -> None:
    parts[:] = [part for part in parts if not isinstance(part, ReasoningPart)]


def _edit_source(parts: list[Part]) -> None:
    next(part for part in parts if isinstance(part, SourcePart)).source["title"] = "another title"


def _edit_file(parts: list[Part]) -> None:
    next(part for part in parts if isinstance(part, FilePart)).data = "Qg=="


def _remove_source_and_file(parts: list[Part]) -> None:
    parts[:] = [part for part in parts if not isinstance(part, SourcePart | FilePart)]


def _reverse(parts: list[Part]) -> None:
    parts.reverse()


EDITS = [
    _edit_text,
    _replace_text,
    _empty_text,
    _remove_text,
    _remove_all,
    _add_last,
    _add_first,
    _add_between,
    _add_others,
    _edit_reasoning,
    _remove_reasoning,
    _edit_source,
    _edit_file,
    _remove_source_and_file,
    _reverse,
]


def in_place(edit: Edit) -> Callable[..., Any]:
    """A hook that edits the live message."""

    def hook(subject: Any, ctx: Any) -> None:
        edit(answer_parts(ctx))

    return hook


def as_copies(edit: Edit) -> Callable[..., Any]:
    """A hook that returns an edited copy."""

    def hook(subject: Any, ctx: Any) -> list[Message]:
        *rest, last = ctx.messages
        parts: list[Part] = [part.replace() for part in last.content.parts]
        for part in parts:
            if isinstance(part, SourcePart):
                part.source = dict(part.source)
        edit(parts)
        return [*rest, last.replace(content=last.content.replace(parts=parts))]

    return hook


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("hook", "release"),
    [("process_output_step", "step"), ("process_output_step", "run"), ("process_output_result", "run")],
)
@pytest.mark.parametrize("way", [in_place, as_copies])
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__.strip("_"))
async def test_a_late_edit_is_what_leaves(
    edit: Edit, way: Callable[[Edit], Any], hook: str, release: str
) -> None:
    """R7.5, R0.1, R8.3: whatever a late hook edits, adds, removes or moves, client, result and store agree."""
    model = ScriptedModel(
        [
            reasoning("swordfish"),
            text("sword", "fish"),
            Source(id="s", title="swordfish", url="u"),
            File(mime_type="text/plain", data="swordfish"),
        ]
    )
    seen = await play(model, hooks(hook, way(edit)), release=release)
    assert_one_truth(seen)
    changed = {
        "edit_text": TextDelta,
        "replace_text": TextDelta,
        "remove_text": TextDelta,
        "empty_text": TextDelta,
    }
    kind = changed.get(edit.__name__.strip("_"))
    if kind is not None:
        assert not [
            chunk
            for chunk in leaks(seen.chunks)
            if isinstance(chunk, kind | StepFinish) and leaked_text(chunk)
        ]


def leaked_text(chunk: Chunk) -> bool:
    """Whether the removed text is in a text field of the chunk."""
    texts = [step.text for step in chunk.steps] if isinstance(chunk, StepFinish) else []
    return any("fish" in piece for piece in [getattr(chunk, "text", ""), *texts])


@pytest.mark.anyio
async def test_an_edited_part_goes_out_as_one_delta_of_its_final_text() -> None:
    """R7.5: a part edited late goes out as one delta; its neighbours keep their pieces; a removed one is not sent."""
    model = ScriptedModel([text("o", "ne", id="1"), text("t", "wo", id="2"), text("th", "ree", id="3")])

    def edit(result: Any, ctx: Any) -> None:
        parts = answer_parts(ctx)
        parts[0].text = "ONE"  # type: ignore[attr-defined]
        del parts[1]
        parts.append(TextPart(text="four"))

    seen = await play(model, Hooks(process_output_result=edit), release="run")
    body = [chunk for chunk in seen.chunks if isinstance(chunk, TextStart | TextDelta | TextEnd)]
    assert [(c.type, c.id, getattr(c, "text", None)) for c in body[:7]] == [
        ("text-start", "1", None),
        ("text-delta", "1", "ONE"),
        ("text-end", "1", None),
        ("text-start", "3", None),
        ("text-delta", "3", "th"),
        ("text-delta", "3", "ree"),
        ("text-end", "3", None),
    ]
    assert [(c.type, getattr(c, "text", None)) for c in body[7:]] == [
        ("text-start", None),
        ("text-delta", "four"),
        ("text-end", None),
    ]
    assert body[7].id not in ("1", "2", "3")
    assert_one_truth(seen)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("hook", "release"),
    [("process_output_step", "step"), ("process_output_step", "run"), ("process_output_result", "run")],
)
@pytest.mark.parametrize(
    "answer", [[], [text("")], [DataChunk(type="data-x", data=1)]], ids=["nothing", "empty", "data"]
)
async def test_text_given_to_a_step_that_said_nothing_leaves(
    answer: list[Any], hook: str, release: str
) -> None:
    """R0.1, R3.3: what a hook adds to a step without any text of its own is released like all text."""

    def fall_back(subject: Any, ctx: Any) -> list[Message]:
        extra = Message(id="extra", role="assistant", content=Content(parts=[TextPart(text="fallback")]))
        return [*ctx.messages, extra]

    seen = await play(ScriptedModel(answer), hooks(hook, fall_back), release=release)
    assert seen.text == "fallback"
    assert_one_truth(seen)


@pytest.mark.anyio
async def test_text_given_to_a_later_step_that_said_nothing_leaves() -> None:
    """R0.1: the same in a second step: under step the first one is out already."""

    def fall_back(output: Any, ctx: Any) -> None:
        if not output.text:
            answer_parts(ctx).append(TextPart(text=f"fallback {ctx.step_number}"))

    model = ScriptedModel([text("first"), tool_call("look", {"query": "x"})], [])
    seen = await play(model, Hooks(process_output_step=fall_back), release="step", tools=[look])
    assert seen.text == "firstfallback 1"
    assert_one_truth(seen)


@pytest.mark.anyio
async def test_an_added_message_goes_out_with_its_step() -> None:
    """R3.3, R7.5: a message that process_output_step adds to the response leaves with the step and is stored."""

    def add(output: Any, ctx: Any) -> list[Message]:
        extra = Message(id="extra", role="assistant", content=Content(parts=[TextPart(text=" (checked)")]))
        return [*ctx.messages, extra]

    seen = await play(ScriptedModel([text("answer")]), Hooks(process_output_step=add), release="step")
    assert seen.text == "answer (checked)"
    assert_one_truth(seen)


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["step", "run"])
async def test_edited_arguments_leave_only_as_accepted(release: str) -> None:
    """R4.7, R0.3: arguments changed in process_output_step replace the streamed ones everywhere, also while they
    stream; the tool runs with the new ones.
    """
    ran: list[str] = []

    @tool
    def send(body: str) -> str:
        """Send."""
        ran.append(body)
        return f"sent {body}"

    model = ScriptedModel(
        [
            ToolInputStart(tool_call_id="c", tool_name="send"),
            ToolInputDelta(tool_call_id="c", args_text='{"body": "sword'),
            ToolInputDelta(tool_call_id="c", args_text='fish"}'),
            ToolInputEnd(tool_call_id="c"),
            tool_call("send", {"body": "swordfish"}, id="c"),
        ],
        [text("done")],
    )

    def clean(output: Any, ctx: Any) -> None:
        for part in answer_parts(ctx):
            if isinstance(part, ToolInvocationPart) and part.state == "call":
                part.args = {"body": "[GONE]"}

    seen = await play(model, Hooks(process_output_step=clean), release=release, tools=[send])
    assert ran == ["[GONE]"]
    assert not leaks(seen.chunks)
    streamed = "".join(chunk.args_text for chunk in seen.chunks if isinstance(chunk, ToolInputDelta))
    assert streamed.replace(" ", "") in ('{"body":"[GONE]"}', "")
    assert_one_truth(seen)


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["step", "run"])
async def test_a_removed_call_leaves_no_trace(release: str) -> None:
    """R4.7, R0.4: a call that process_output_step removes is not made, and its streamed arguments never leave."""
    ran: list[str] = []

    @tool
    def send(body: str) -> str:
        """Send."""
        ran.append(body)
        return "sent"

    model = ScriptedModel(
        [
            text("fine"),
            ToolInputStart(tool_call_id="c", tool_name="send"),
            ToolInputDelta(tool_call_id="c", args_text='{"body": "swordfish"}'),
            ToolInputEnd(tool_call_id="c"),
            tool_call("send", {"body": "swordfish"}, id="c"),
        ],
    )

    def refuse(output: Any, ctx: Any) -> None:
        parts = answer_parts(ctx)
        parts[:] = [part for part in parts if not isinstance(part, ToolInvocationPart)]

    seen = await play(model, Hooks(process_output_step=refuse), release=release, tools=[send])
    assert ran == []
    assert not leaks(seen.chunks)
    assert seen.types == [
        "start",
        "step-start",
        "text-start",
        "text-delta",
        "text-end",
        "step-finish",
        "finish",
    ]
    assert_one_truth(seen)


@pytest.mark.anyio
async def test_an_earlier_step_edited_by_output_result_leaves_as_edited() -> None:
    """R0.3, R7.5: under run, a text of the first step removed at the very end is in no chunk, not even in the steps
    that step-finish and finish carry.
    """
    model = ScriptedModel(
        [text("swordfish"), tool_call("look", {"query": "x"})], [text("middle"), tool_call("look", {"query": "y"})],
        [text("end")],
    )  # fmt: skip

    def redact(result: Any, ctx: Any) -> None:
        for message in ctx.messages:
            for part in message.content.parts:
                if isinstance(part, TextPart):
                    part.text = part.text.replace("swordfish", "[GONE]")

    seen = await play(model, Hooks(process_output_result=redact), release="run", tools=[look])
    assert not leaks(seen.chunks)
    assert seen.text == "[GONE]middleend"
    assert_one_truth(seen)


@pytest.mark.anyio
async def test_text_put_in_front_of_several_steps_leaves_in_front() -> None:
    """R0.1: under run, a disclaimer that process_output_result puts in front of a long answer is in front for all."""

    def disclaim(result: Any, ctx: Any) -> None:
        answer_parts(ctx).insert(0, TextPart(text="Careful: "))

    model = ScriptedModel([text("first "), tool_call("look", {"query": "x"})], [text("second")])
    seen = await play(model, Hooks(process_output_result=disclaim), release="run", tools=[look])
    assert seen.done.text == "Careful: first second"
    assert seen.text == seen.done.text == "".join(message.text for message in seen.stored_answer)


@pytest.mark.anyio
async def test_data_stands_in_front_of_what_is_still_held_when_the_first_held_part_is_gone() -> None:
    """R3.6: under run, data sent in a second step is out before everything that is held, so it stands in front of it,
    also when the part that was held first has been removed meanwhile.
    """

    def remove_source(output: Any, ctx: Any) -> None:
        parts = answer_parts(ctx)
        parts[:] = [part for part in parts if not isinstance(part, SourcePart)]

    model = ScriptedModel(
        [Source(id="s", title="gone", url="u"), text("first"), tool_call("look", {"query": "x"}, id="c")],
        [Source(id="send", title="d"), text("second")],
    )
    seen = await play(model, Sender(), Hooks(process_output_step=remove_source), release="run", tools=[look])
    assert [kind for kind, _ in shown(seen.chunks)] == ["data", "text", "tool", "text"]
    assert_one_truth(seen)


@pytest.mark.anyio
async def test_under_step_a_late_edit_reaches_the_client_in_the_finish_chunk() -> None:
    """R0: what process_output_result changes after the text is out, the client learns from the finish chunk."""

    def redact(result: Any, ctx: Any) -> None:
        answer_parts(ctx)[0].text = "[GONE]"  # type: ignore[attr-defined]

    seen = await play(ScriptedModel([text("swordfish")]), Hooks(process_output_result=redact), release="step")
    last = seen.chunks[-1]
    assert isinstance(last, Finish)
    assert [message.text for message in last.messages or []] == ["[GONE]"]
    assert not leaks([last])
    assert (seen.text, seen.done.released_text, seen.done.text) == ("swordfish", "swordfish", "[GONE]")
    assert [message.text for message in seen.stored_answer] == ["[GONE]"]


@pytest.mark.anyio
@pytest.mark.parametrize("release", POLICIES)
async def test_a_changed_tool_result_is_the_only_one_that_leaves(release: str) -> None:
    """R4.8, R0.3: what process_tool_result removes is in no chunk: not the tool-result, the steps or the messages."""

    @tool
    def fetch() -> dict[str, str]:
        """Fetch."""
        return {"pin": "swordfish"}

    def redact(result: Any, ctx: Any) -> Any:
        return result.replace(result={"pin": "[GONE]"})

    model = ScriptedModel([tool_call("fetch", {}, id="c")], [text("done")])
    seen = await play(model, Hooks(process_tool_result=redact), release=release, tools=[fetch])
    assert not leaks(seen.chunks)
    assert [chunk.result for chunk in seen.chunks if isinstance(chunk, ToolResult)] == [{"pin": "[GONE]"}]
    assert "swordfish" not in repr(seen.stored)
    assert "swordfish" not in model.calls[1].prompt_text


# ------------------------------------------------------------------------------------------------ edits, all at random

_texts = st.text(alphabet="abc ", min_size=1, max_size=6)
_blocks = st.one_of(
    st.tuples(st.just("text"), st.lists(_texts, min_size=1, max_size=3)),
    st.tuples(st.just("reasoning"), st.lists(_texts, min_size=1, max_size=2)),
    st.tuples(st.just("source"), _texts),
    st.tuples(st.just("file"), _texts),
    st.tuples(st.just("data"), _texts),
)


class Sender(Processor):
    """Sends a custom chunk in front of every text that asks for it."""

    id = "sender"

    def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk | None:
        if isinstance(chunk, Source) and chunk.id == "send":
            ctx.writer.custom({"type": "data-x", "data": chunk.title})
            return None
        return chunk


def _scripted(blocks: list[tuple[str, Any]], step: int) -> list[Any]:
    made: list[Any] = []
    for number, (kind, value) in enumerate(blocks):
        match kind:
            case "text":
                made.append(text(*value, id=f"t{step}-{number}"))
            case "reasoning":
                made.append(reasoning(*value, id=f"r{step}-{number}"))
            case "source":
                made.append(Source(id=f"s{number}", title=value, url="u"))
            case "data":
                made.append(Source(id="send", title=value))
            case _:
                made.append(File(mime_type="text/plain", data=value))
    return made


def _apply(parts: list[Part], ops: list[tuple[str, int, str]], *more: type[Part]) -> None:
    """Edit the parts of the step under way (what a hook adds belongs to that step, R3.3)."""
    # what stands behind custom data that the client has cannot move in front of it
    out = (StepStartPart, DataPart, *more)
    border = max((index + 1 for index, part in enumerate(parts) if isinstance(part, out)), default=0)
    for op, place, value in ops:
        mine = range(border, len(parts))
        live = [index for index in mine if not isinstance(parts[index], ToolInvocationPart)]
        if op == "add":
            parts.insert(border + place % (len(mine) + 1), TextPart(text=value))
        elif live:
            index = live[place % len(live)]
            part = parts[index]
            if op == "remove":
                del parts[index]
            elif op == "edit" and isinstance(part, TextPart | ReasoningPart):
                part.text = value
            elif op == "replace" and isinstance(part, TextPart):
                parts[index] = TextPart(text=value)
            elif op == "swap" and index > border and isinstance(parts[index - 1], TextPart | ReasoningPart):
                parts[index], parts[index - 1] = parts[index - 1], parts[index]


_CHANGES = ["edit", "remove", "add", "replace"]


def _random_ops(*kinds: str) -> Any:
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 9), _texts), max_size=4)


def _check_late_edits(first: Any, second: Any, step_ops: Any, result_ops: Any, release: str) -> None:
    def in_step(output: Any, ctx: Any) -> None:
        if ctx.message_list.get.response.db():
            _apply(answer_parts(ctx), step_ops, *([ToolInvocationPart] if ctx.step_number else []))

    def in_result(result: Any, ctx: Any) -> None:
        if ctx.message_list.get.response.db():
            _apply(answer_parts(ctx), result_ops if release == "run" else [], ToolInvocationPart)

    model = ScriptedModel(
        [*_scripted(first, 0), tool_call("look", {"query": "q"}, id="call")], _scripted(second, 1)
    )
    hooks = Hooks(process_output_step=in_step, process_output_result=in_result)
    seen = asyncio.run(play(model, Sender(), hooks, release=release, tools=[look]))
    assert_one_truth(seen)


_ANSWER = st.lists(_blocks, min_size=1, max_size=4)


@given(
    first=_ANSWER,
    second=_ANSWER,
    step_ops=_random_ops(*_CHANGES),
    result_ops=_random_ops(*_CHANGES),
    release=st.sampled_from(["step", "run"]),
)
@settings(max_examples=60, deadline=None)
def test_whatever_late_hooks_change_client_result_and_store_agree(
    first: Any, second: Any, step_ops: Any, result_ops: Any, release: str
) -> None:
    """R0.1, R3.6, R7.5: for any answer of two steps and any edits in process_output_step and (under run) in
    process_output_result, what the client put together is what the result has and what is stored, in that order.
    """
    _check_late_edits(first, second, step_ops, result_ops, release)


@given(
    first=_ANSWER,
    second=_ANSWER,
    step_ops=_random_ops("swap", "edit"),
    result_ops=_random_ops("swap", "add"),
    release=st.sampled_from(["step", "run"]),
)
@settings(max_examples=40, deadline=None)
def test_wherever_late_hooks_move_parts_client_result_and_store_agree(
    first: Any, second: Any, step_ops: Any, result_ops: Any, release: str
) -> None:
    """R0.1, R3.6: held parts that a hook puts in another order leave in that order."""
    _check_late_edits(first, second, step_ops, result_ops, release)


@given(blocks=st.lists(_blocks, min_size=1, max_size=6), release=st.sampled_from(POLICIES))
@settings(max_examples=40, deadline=None)
def test_stored_order_is_the_order_the_client_saw(blocks: Any, release: str) -> None:
    """R3.6: parts stand in the order the client saw them begin, custom data included, under every policy."""
    seen = asyncio.run(play(ScriptedModel(_scripted(blocks, 0)), Sender(), release=release))
    assert_one_truth(seen)


@pytest.mark.anyio
@pytest.mark.parametrize("release", POLICIES)
async def test_overlapping_blocks_are_one_truth(release: str) -> None:
    """R0.1, R3.6: blocks that the model writes at the same time: what the client joins is what is kept."""
    model = ScriptedModel(
        [
            TextStart(id="a"),
            ReasoningStart(id="r"),
            TextStart(id="b"),
            TextDelta(id="b", text="B1"),
            ReasoningDelta(id="r", text="R"),
            TextDelta(id="a", text="A1"),
            TextDelta(id="b", text="B2"),
            TextEnd(id="a"),
            Finish(finish_reason="stop", usage=Usage(input_tokens=1, output_tokens=1, total_tokens=2)),
        ]
    )
    seen = await play(model, release=release)
    assert_one_truth(seen)
    assert sorted(seen.text) == sorted("A1B1B2")
    assert [value for kind, value in kept(seen.stored_answer) if kind == "reasoning"] == ["R"]


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["step", "run"])
async def test_text_put_in_the_place_of_custom_data_leaves(release: str) -> None:
    """R0.1: the data is out, the text in its place is not: it is released like any text."""

    def replace(output: Any, ctx: Any) -> None:
        parts = answer_parts(ctx)
        place = next(index for index, part in enumerate(parts) if isinstance(part, DataPart))
        parts[place] = TextPart(text="instead")

    model = ScriptedModel([Source(id="send", title="x"), text("answer")])
    seen = await play(model, Sender(), Hooks(process_output_step=replace), release=release)
    stored_text = "".join(message.text for message in seen.stored_answer)
    assert sorted(stored_text) == sorted("insteadanswer")
    assert seen.text == seen.done.text == stored_text
