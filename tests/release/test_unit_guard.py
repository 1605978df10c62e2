"""UnitGuard: a judge that sees each unit once (R0, R4.6, R5.4, R6)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock import Agent, Processor, UsageError, tool
from interlock.chunks import DataChunk, ReasoningDelta, Source, TextDelta, ToolInputDelta, ToolResult
from interlock.core.context import HookContext
from interlock.memory import Memory
from interlock.processors import Detection, Unit, UnitGuard, Verdict
from interlock.testing import ScriptedModel, reasoning, text, tool_call

THREAD = {"thread": "t", "resource": "r"}


class Judge(UnitGuard):
    """Objects to units with an x in them; keeps what it was shown."""

    def __init__(self, verdict: Verdict | None = None, **options: Any) -> None:
        options.setdefault("id", "judge")
        super().__init__(**options)
        self.objection = verdict or Verdict.block("an x")
        self.seen: list[Unit] = []

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        """Object to an x."""
        await asyncio.sleep(0)
        self.seen.append(unit)
        return self.objection if "x" in unit.text else Verdict.allow()

    def texts(self, channel: str) -> list[str]:
        """What it was shown of a channel."""
        return [unit.text for unit in self.seen if unit.channel == channel]


async def run(guard: Processor, *script: Any, message: str = "hi", **options: Any) -> tuple[list[Any], Any]:
    """The chunks and the result."""
    scripts = [each if isinstance(each, list) else [each] for each in script]
    agent = Agent(id="a", model=ScriptedModel(*scripts), output_processors=[guard], **options)
    async with agent.stream(message) as stream:
        chunks = [chunk async for chunk in stream]
        return chunks, await stream.result()


def said(chunks: list[Any]) -> str:
    """The joined client text."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


# ------------------------------------------------------------------------------------------------------------ cutting

CUT_TEXTS = st.text(alphabet="ax.! \n", max_size=30)


@st.composite
def cuts(draw: st.DrawFn) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Blocks of text and reasoning, and the pieces each comes in."""
    blocks = draw(
        st.lists(st.tuples(st.sampled_from(["text", "reasoning"]), CUT_TEXTS), min_size=1, max_size=4)
    )
    pieces: list[list[str]] = []
    for _, whole in blocks:
        places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=5)))
        pieces.append([whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)])
    return blocks, pieces


@given(
    case=cuts(),
    unit=st.sampled_from(["word", "sentence", "answer", 4]),
    strategy=st.sampled_from(["redact", "filter", "warn", "detect", "block"]),
)
@settings(max_examples=150)
def test_any_cut_is_judged_alike(case: Any, unit: Any, strategy: Any) -> None:
    """The units shown, the finds and the text are the same for any cut; the text is so in every place.

    Each unit is judged once. R0.1, R0.2.
    """
    blocks, pieces = case
    outcomes: list[Any] = []
    for cut in ([[whole] for _, whole in blocks], pieces):
        finds: list[Detection] = []
        guard = Judge(id="judge", unit=unit, strategy=strategy, on_detection=finds.append)
        memory = Memory()
        script = [
            (text if kind == "text" else reasoning)(*block, id=f"b{number}")
            for number, ((kind, _), block) in enumerate(zip(blocks, cut, strict=True))
        ]
        agent = Agent(id="a", model=ScriptedModel(script), output_processors=[guard], memory=memory)

        async def go(agent: Any = agent, memory: Any = memory) -> Any:
            async with agent.stream("hi", memory=THREAD) as stream:
                chunks = [chunk async for chunk in stream]
                result = await stream.result()
            return chunks, result, await memory.messages("t", resource="r")

        chunks, result, stored = asyncio.run(go())
        if result.tripwire is None:
            assert said(chunks) == result.text == "".join(m.text for m in stored if m.role == "assistant")
            for channel in ("text", "reasoning"):
                whole = "".join(each for kind, each in blocks if kind == channel)
                assert "".join(guard.texts(channel)) == whole
                assert len({u.index for u in guard.seen if u.channel == channel}) == len(guard.texts(channel))
            outcomes.append(
                (result.text, result.reasoning, sorted(map(repr, guard.seen)), sorted(map(repr, finds)))
            )
        else:
            assert strategy == "block"
            assert not [c for c in chunks if "x" in getattr(c, "text", "")], "text and reasoning: R0.3"
            assert stored == []
            outcomes.append("blocked")
    assert outcomes[0] == outcomes[1]


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["live", "step", "run"])
async def test_a_block_never_lets_the_unit_out(release: str) -> None:
    """What was judged before is out, of the unit that is refused nothing. R0.3, R5.2."""
    chunks, result = await run(Judge(), text(*"Fine. Not so fixed. Never seen."), release=release)
    assert said(chunks) == ("Fine. " if release == "live" else "")
    assert result.tripwire.reason == "an x"
    assert result.tripwire.processor_id == "judge"
    assert result.tripwire.metadata["offset"] == 6
    assert result.text == ""


# --------------------------------------------------------------------------------------------------------- strategies


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("strategy", "verdict", "expected", "violations"),
    [
        ("redact", Verdict.replace("No! "), "One. No! Two.", 1),
        ("redact", Verdict.block("an x"), "One. [JUDGE] Two.", 1),
        ("filter", Verdict.replace("No! "), "One. Two.", 1),
        ("warn", Verdict.block("an x"), "One. Six. Two.", 1),
        ("detect", Verdict.block("an x"), "One. Six. Two.", 0),
    ],
)
async def test_strategies(strategy: Any, verdict: Verdict, expected: str, violations: int) -> None:
    """What a verdict that objects leads to, and how it is told. R2.6."""
    finds: list[Detection] = []
    guard = Judge(verdict, strategy=strategy, on_detection=finds.append)
    chunks, result = await run(guard, text("One. Si", "x. Two."))
    assert said(chunks) == result.text == expected
    assert len(result.violations) == violations
    (find,) = finds
    assert (find.rule, find.channel, find.offset, find.length, find.text) == ("judge", "text", 5, 5, None)


@pytest.mark.anyio
async def test_reports_carry_scores_and_on_request_the_text() -> None:
    """Scores reach finds and violations. R2.6."""
    finds: list[Detection] = []
    verdict = Verdict.block("an x", scores={"x": 0.9})
    guard = Judge(verdict, strategy="redact", report_text=True, on_detection=finds.append, placeholder="-")
    _, result = await run(guard, text("x y"))
    assert result.text == "-"
    assert finds[0].text == "x y"
    assert finds[0].scores == result.violations[0].detail["scores"] == {"x": 0.9}
    assert result.violations[0].message == "an x"


@pytest.mark.anyio
async def test_a_plain_judge() -> None:
    """``judge`` may be a plain function."""

    class Plain(UnitGuard):
        def judge(self, unit: Unit, ctx: Any) -> Verdict:
            return Verdict.replace(unit.text.upper())

    _, result = await run(Plain(id="plain", unit="word", strategy="redact"), text("one t", "wo"))
    assert result.text == "ONE TWO"


# ------------------------------------------------------------------------------------------------------- every channel


@pytest.mark.anyio
async def test_all_channels() -> None:
    """The same judge for input, arguments (as one delta of the final ones), results, data and sources. R0.3."""
    ran: list[str] = []

    @tool
    def look(q: str) -> dict[str, Any]:
        """Look."""
        ran.append(q)
        return {"found": ["ax. b"], "n": 1}

    class Sender(Processor):
        id = "sender"

        def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
            if isinstance(chunk, Source):
                ctx.writer.custom({"type": "data-note", "data": {"t": "dx"}})
            return chunk

    guard = Judge(Verdict.replace("[no]"), strategy="redact")
    model = ScriptedModel(
        [
            text("first"),
            Source(id="s", url="u", title="sx"),
            tool_call("look", {"q": "qx"}),
        ],
        [text("done")],
    )
    agent = Agent(
        id="a",
        model=model,
        tools=[look],
        input_processors=[guard],
        output_processors=[Sender(), guard],
    )
    async with agent.stream("ix. Hello") as stream:
        chunks = [chunk async for chunk in stream]
        result = await stream.result()
    assert ran == ["[no]"]
    deltas = [chunk.args_text for chunk in chunks if isinstance(chunk, ToolInputDelta)]
    assert deltas == ['{"q":"[no]"}']
    assert "[no]Hello" in model.calls[0].prompt_text
    assert [c.result for c in chunks if isinstance(c, ToolResult)] == [{"found": ["[no]b"], "n": 1}]
    assert [c.title for c in chunks if isinstance(c, Source)] == ["[no]"]
    assert [c.data for c in chunks if isinstance(c, DataChunk)] == [{"t": "[no]"}]
    assert guard.texts("input") == ["ix. ", "Hello"]
    assert guard.texts("tool-arguments") == ["q", "qx"]
    assert guard.texts("tool-results") == ["found", "n", "ax. ", "b"]
    assert result.text == "firstdone"


@pytest.mark.anyio
async def test_the_parts_of_a_message_are_one_text() -> None:
    """A unit may span parts; what stands for it stands where it began. Remembered messages are not judged again."""
    guard = Judge(Verdict.replace("[no] "), strategy="redact")
    memory = Memory()
    model = ScriptedModel([text("ok")], repeat_last=True)
    agent = Agent(id="a", model=model, memory=memory, input_processors=[guard])
    parts = [{"type": "text", "text": "A. b"}, {"type": "text", "text": "x. C"}]
    await agent.generate([{"role": "user", "content": parts}], memory=THREAD)
    assert guard.texts("input") == ["A. ", "bx. ", "C"]
    assert "A. [no] C" in model.calls[0].prompt_text.replace("\n", "")
    await agent.generate("again", memory=THREAD)
    assert guard.texts("input") == ["A. ", "bx. ", "C", "again"]


@pytest.mark.anyio
async def test_channels_left_out_pass() -> None:
    """A guard for one channel leaves the others, and says so."""
    guard = Judge(strategy="filter", channels=["text"])
    _, result = await run(guard, [reasoning("x"), text("x y")])
    assert (result.reasoning, result.text) == ("x", "")
    assert guard.description is not None
    assert "reasoning" in guard.description


@pytest.mark.anyio
async def test_other_chunks_keep_their_order() -> None:
    """What comes behind held text waits behind it; ids and metadata stay. R4.6."""
    script = [
        text("One", ". Tw", id="t1"),
        Source(id="s1", url="https://a.test"),
        reasoning("why", id="r1"),
        Source(id="s2", url="https://b.test"),
        text("o. Three", id="t2"),
    ]
    chunks, result = await run(Judge(), script)
    order = [
        (chunk.id, getattr(chunk, "text", None))
        for chunk in chunks
        if isinstance(chunk, Source | TextDelta | ReasoningDelta)
    ]
    assert order == [
        ("t1", "One. "),
        ("t1", "Tw"),
        ("s1", None),
        ("r1", "why"),
        ("s2", None),
        ("t2", "o. "),
        ("t2", "Three"),
    ]
    assert result.text == "One. Two. Three"


# ------------------------------------------------------------------------------------------------------ failing checks


class Failing(UnitGuard):
    """Fails at the second sentence."""

    how: Any = None

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        """Fail."""
        if unit.index == 1:
            if self.how == "sleep":
                await asyncio.sleep(60)
            if self.how == "timeout":
                raise TimeoutError("the secret")
            raise LookupError("the secret")
        return Verdict.allow()


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["error", "timeout"])
async def test_a_failing_judge(how: str, caplog: pytest.LogCaptureFixture) -> None:
    """strict blocks and says that it was the check; warn lets that unit go. The error's text is nowhere. R5.4."""
    cause = "TimeoutError" if how == "timeout" else "LookupError"
    caplog.set_level(logging.DEBUG, "interlock")
    strict = Failing(id="f", latency_budget=30)
    strict.how = how
    chunks, result = await run(strict, text("One. Two. Three."))
    assert result.tripwire.metadata == {"check_failed": True, "cause": cause}
    assert "Two" not in said(chunks)
    warn = Failing(id="f", error_strategy="warn", latency_budget=30, late="closed")
    warn.how = how
    chunks, again = await run(warn, text("One. Two. Three."))
    assert said(chunks) == again.text == "One. Two. Three."
    assert [each.detail for each in again.violations] == [{"check_failed": True, "cause": cause}]
    assert "the secret" not in f"{result!r}{again!r}{chunks!r}{caplog.text}"
    assert cause in caplog.text


@pytest.mark.anyio
async def test_a_late_judge() -> None:
    """Too late: closed blocks with check_failed, whatever error_strategy says; open lets that unit go. R5.4."""
    closed = Failing(id="f", latency_budget=0.02, error_strategy="warn")
    closed.how = "sleep"
    chunks, result = await run(closed, text("One. ", "Two. Three."))
    assert result.tripwire.metadata == {"check_failed": True, "cause": "TimeoutError"}
    assert "Two" not in said(chunks)
    opened = Failing(id="f", latency_budget=0.02, late="open")
    opened.how = "sleep"
    chunks, result = await run(opened, text("One. Two. Three."))
    assert said(chunks) == result.text == "One. Two. Three."
    assert [each.detail["check_failed"] for each in result.violations] == [True]


@pytest.mark.anyio
@pytest.mark.parametrize("size", [1, 40])
async def test_too_much_waits(size: int) -> None:
    """A unit longer than may wait is a failed check, for any cut. R4.6, R5.4."""
    whole = "One. " + "a" * 30 + ". Three."
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    _, result = await run(Judge(cap=20), text(*pieces))
    assert result.tripwire.metadata["check_failed"] is True
    guard = Judge(cap=20, error_strategy="warn")
    chunks, result = await run(guard, text(*pieces))
    assert said(chunks) == result.text == whole
    assert [(unit.text, unit.index, unit.offset) for unit in guard.seen] == [
        ("One. ", 0, 0),
        ("Three.", 2, 37),
    ]
    assert len(result.violations) == 1


@pytest.mark.anyio
async def test_a_judge_may_abort_itself() -> None:
    """``ctx.abort`` in ``judge`` is an abort, not a failed check. R5.1."""

    class Aborting(UnitGuard):
        def judge(self, unit: Unit, ctx: HookContext) -> Verdict:
            ctx.abort("mine")

    _, result = await run(Aborting(id="a", error_strategy="warn"), text("One."))
    assert result.tripwire.reason == "mine"


@pytest.mark.anyio
async def test_a_judge_that_returns_something_else() -> None:
    """It is told so; the text does not go out, and is not in the error."""

    class Wrong(UnitGuard):
        def judge(self, unit: Unit, ctx: Any) -> Any:
            return unit.text

    agent = Agent(id="a", model=ScriptedModel([text("One.")]), output_processors=[Wrong(id="w")])
    with pytest.raises(UsageError, match="judge returned a str") as caught:
        await agent.generate("hi")
    assert "One" not in str(caught.value)


# ---------------------------------------------------------------------------------------------------- steps and runs


@pytest.mark.anyio
async def test_a_retry_drops_what_was_held() -> None:
    """Held text of a rejected attempt is not in the next one, and not judged. R7.3."""

    class Again(Processor):
        id = "again"

        def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
            if isinstance(chunk, TextDelta) and "bad" in chunk.text:
                ctx.abort("again", retry=True)
            return chunk

    guard = Judge()
    agent = Agent(
        id="a",
        model=ScriptedModel([text("One. Held ", "bad")], [text("Good. End")]),
        output_processors=[Again(), guard],
        max_processor_retries=2,
    )
    async with agent.stream("hi") as stream:
        chunks = [chunk async for chunk in stream]
        result = await stream.result()
    assert result.text == "Good. End"
    assert "Held" not in said(chunks)
    assert guard.texts("text") == ["One. ", "Good. ", "End"]


@pytest.mark.anyio
async def test_steps_are_judged_apart() -> None:
    """Units do not reach over steps. R0."""

    @tool
    def look() -> str:
        """Look."""
        return "found"

    guard = Judge()
    _, result = await run(guard, [text("One"), tool_call("look", {})], [text(" two")], tools=[look])
    assert guard.texts("text") == ["One", " two"]
    assert [unit.index for unit in guard.seen if unit.channel == "text"] == [0, 0]
    assert result.text == "One two"


@pytest.mark.anyio
async def test_concurrent_runs_do_not_mix() -> None:
    """One guard in many runs at a time. R6."""

    class Slow(Judge):
        async def judge(self, unit: Unit, ctx: Any) -> Verdict:
            await asyncio.sleep(0.001 * (len(unit.text) % 3))
            return await super().judge(unit, ctx)

    guard = Slow(Verdict.replace("- "), strategy="redact", unit="word")

    async def one(number: int) -> str:
        words = [f"{number}-{i}{'x' if i % 3 == 0 else ''} " for i in range(12)]
        _, result = await run(guard, text(*"".join(words)))
        return result.text

    texts = await asyncio.gather(*(one(number) for number in range(15)))
    assert texts == ["".join("- " if i % 3 == 0 else f"{n}-{i} " for i in range(12)) for n in range(15)]


@pytest.mark.anyio
async def test_cancelling_while_the_judge_thinks() -> None:
    """The run ends at once, nothing held goes out. R5.5."""
    started = asyncio.Event()

    class Thinking(UnitGuard):
        async def judge(self, unit: Unit, ctx: Any) -> Verdict:
            started.set()
            await asyncio.sleep(60)
            return Verdict.allow()

    guard = Thinking(id="t", channels=["text"], error_strategy="warn")
    agent = Agent(id="a", model=ScriptedModel([text("One. Two")]), output_processors=[guard])
    task = asyncio.create_task(agent.generate("hi"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)


@pytest.mark.parametrize(
    "options",
    [
        {"unit": "paragraph"},
        {"unit": 0},
        {"unit": True},
        {"unit": 30, "cap": 20},
        {"strategy": "mask"},
        {"channels": ["texts"]},
        {"channels": "text"},
        {"error_strategy": "open"},
        {"late": "strict"},
        {"latency_budget": 0},
    ],
)
def test_wrong_options(options: dict[str, Any]) -> None:
    """Refused when the guard is made, with its name."""
    with pytest.raises(UsageError, match="Judge 'judge'"):
        Judge(**options)


def test_a_guard_needs_a_judge() -> None:
    """It is refused when it is made; so is a time limit for one that cannot be interrupted."""
    with pytest.raises(UsageError, match="override judge"):
        UnitGuard(id="u")

    class Plain(UnitGuard):
        def judge(self, unit: Unit, ctx: Any) -> Verdict:
            return Verdict.allow()

    with pytest.raises(UsageError, match="async def judge"):
        Plain(id="p", latency_budget=1)


@pytest.mark.anyio
async def test_an_answer_does_not_wait_for_the_reasoning_in_front_of_it() -> None:
    """The last unit of reasoning is judged when text begins, so text leaves while it streams."""
    out: list[str] = []

    class Behind(Processor):
        id = "behind"

        def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
            out.append(getattr(chunk, "text", "") or chunk.type)
            return chunk

    model = ScriptedModel([reasoning("Hm. So"), text("One. ", "T", "wo.")])
    guard = Judge()
    await Agent(id="a", model=model, output_processors=[guard, Behind()]).generate("hi")
    assert guard.texts("reasoning") == ["Hm. ", "So"]
    assert guard.texts("text") == ["One. ", "Two."]
    assert out.index("So") < out.index("One. ") < out.index("Two.") < out.index("finish")
    assert [unit.offset for unit in guard.seen if unit.channel == "reasoning"] == [0, 4]
