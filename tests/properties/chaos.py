"""Processors, tools and models that do anything a processor, a tool or a model may do, by a drawn plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from watched import Journal, WatchedModel

from interlock import (
    Agent,
    CachedResponse,
    InputChange,
    Message,
    Processor,
    Retry,
    RunOutcome,
    StepChange,
    Tool,
    ToolContext,
    tool,
)
from interlock.chunks import (
    Abort,
    Chunk,
    ErrorChunk,
    File,
    Finish,
    OtherChunk,
    ReasoningDelta,
    Source,
    Start,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    TripWireChunk,
)
from interlock.memory import Memory
from interlock.messages import Content, TextPart, ToolInvocationPart
from interlock.testing import error, reasoning, text, tool_call


class Chaos(Processor):
    """Does in each hook, call by call, what its plan says.

    Args:
        id: its id.
        plan: for each hook it has, whether it is async and its actions, taken in turn.
        journal: where it notes what happens.
    """

    def __init__(self, id: str, plan: ProcessorPlan, journal: Journal) -> None:
        self.id = id
        self.on_error = "open" if plan.fails_open else "closed"
        self.process_data_parts = plan.data_parts
        self.process_tool_errors = plan.data_parts
        self.journal = journal
        for hook, (is_async, actions) in plan.hooks.items():
            setattr(self, hook, self._hook(hook, is_async, actions))

    def _hook(self, hook: str, is_async: bool, actions: list[str]) -> Callable[[Any, Any], Any]:
        def next_action(ctx: Any) -> str:
            self.journal.hooks += 1
            count = ctx.state[hook] = ctx.state.get(hook, -1) + 1
            return actions[count % len(actions)]

        def plain(subject: Any, ctx: Any) -> Any:
            return act(next_action(ctx), subject, ctx)

        async def later(subject: Any, ctx: Any) -> Any:
            action = next_action(ctx)
            await asyncio.sleep(0)
            if action == "data":
                await ctx.writer.custom({"type": "data-chaos", "data": hook})
                return subject if isinstance(subject, Chunk) else None
            return act(action, subject, ctx)

        return later if is_async else plain

    def on_run_end(self, outcome: RunOutcome, ctx: Any) -> None:
        """Note the end; fail, which must disturb nothing (R1.5)."""
        self.journal.ends.setdefault(self.id, []).append(outcome)
        raise RuntimeError("on_run_end fails")


def act(action: str, subject: Any, ctx: Any) -> Any:
    """Do one thing in any hook. What means nothing for the hook means no change."""
    unchanged = subject if isinstance(subject, Chunk) else None
    match action:
        case "abort":
            ctx.abort("stop", metadata={"n": 1})
        case "retry":
            ctx.abort("again", retry=True)
        case "swallow":
            try:
                ctx.abort("swallowed")
            except BaseException:
                return unchanged
        case "raise":
            raise ValueError("a hook failed")
        case "wrong":
            return 42
        case "violation":
            ctx.violation("noted")
        case "data":
            ctx.writer.custom({"type": "data-chaos", "data": 1})
        case "transient":
            ctx.writer.custom({"type": "data-chaos", "data": 1, "transient": True})
        case _:
            return SPECIAL[action](subject, ctx)
    return unchanged


def _upper(chunk: Any, ctx: Any) -> Any:
    return TextDelta(text=chunk.text.upper()) if isinstance(chunk, TextDelta) else chunk


def in_frame(chunk: Any) -> bool:
    """Whether a chunk is a step's border."""
    return isinstance(chunk, StepStart | StepFinish | Finish)


def in_text(chunk: Any) -> bool:
    """Whether a chunk belongs to a text block."""
    return isinstance(chunk, TextStart | TextDelta | TextEnd)


def _edit_texts(subject: Any, ctx: Any) -> None:
    for message in ctx.message_list.get.response.db():
        for part in message.content.parts:
            if isinstance(part, TextPart):
                part.text += "*"


def _empty_texts(subject: Any, ctx: Any) -> None:
    for message in ctx.message_list.get.response.db():
        for part in message.content.parts:
            if isinstance(part, TextPart):
                part.text = ""


def _drop_texts(subject: Any, ctx: Any) -> Any:
    for message in ctx.message_list.get.response.db():
        message.content.parts[:] = [part for part in message.content.parts if not isinstance(part, TextPart)]
    return ctx.message_list


def _drop_calls(subject: Any, ctx: Any) -> None:
    for message in ctx.message_list.get.response.db():
        message.content.parts[:] = [
            part for part in message.content.parts if not isinstance(part, ToolInvocationPart)
        ]


def _answer(subject: Any, ctx: Any) -> None:
    for call in subject.tool_calls:
        ctx.message_list.update_tool_invocation(call.tool_call_id, result="answered")


def _with_message(role: str) -> Callable[[Any, Any], Any]:
    def add(subject: Any, ctx: Any) -> Any:
        new = Message(id="", role=role, content=Content(parts=[TextPart(text=f"added {role} ")]))  # type: ignore[arg-type]
        return [*ctx.messages, new]

    return add


def _copies(subject: Any, ctx: Any) -> Any:
    return [message.replace() for message in ctx.messages]


SPECIAL: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda subject, ctx: None,
    "pass": lambda chunk, ctx: chunk,
    # process_output_stream
    "upper": _upper,
    "drop": lambda chunk, ctx: None,
    "twice": lambda chunk, ctx: [chunk, chunk.replace()],
    "before": lambda chunk, ctx: [TextDelta(text="<"), chunk] if in_text(chunk) else chunk,
    "after": lambda chunk, ctx: [chunk, TextDelta(text=">")] if in_text(chunk) else chunk,
    "reason": lambda chunk, ctx: [ReasoningDelta(text="hm"), chunk] if in_text(chunk) else chunk,
    "end": lambda chunk, ctx: [chunk, TextEnd(id=chunk.id)] if in_text(chunk) else chunk,
    "before-any": lambda chunk, ctx: [TextDelta(text="<"), chunk],
    "after-any": lambda chunk, ctx: [chunk, TextDelta(text=">")],
    "reason-any": lambda chunk, ctx: [ReasoningDelta(text="hm"), chunk],
    "start-any": lambda chunk, ctx: [TextStart(id="own"), chunk],
    "end-any": lambda chunk, ctx: [TextEnd(id="own"), chunk],
    "drop-frame": lambda chunk, ctx: None if in_frame(chunk) else chunk,
    "twice-frame": lambda chunk, ctx: [chunk, chunk.replace()] if in_frame(chunk) else chunk,
    "forge-start": lambda chunk, ctx: [chunk, Start()],
    "forge-finish": lambda chunk, ctx: [Finish(finish_reason="stop"), chunk],
    "forge-tripwire": lambda chunk, ctx: [chunk, TripWireChunk(reason="x", processor_id="nobody")],
    "forge-error": lambda chunk, ctx: [ErrorChunk("x"), chunk],
    "forge-abort": lambda chunk, ctx: [Abort(), chunk],
    # process_input, process_input_step
    "same": lambda subject, ctx: list(ctx.messages),
    "copies": _copies,
    "reversed": lambda subject, ctx: list(reversed(ctx.messages)),
    "list": lambda subject, ctx: ctx.message_list,
    "add-user": _with_message("user"),
    "change": lambda subject, ctx: InputChange(messages=list(ctx.messages), system_messages=["be kind"]),
    "no-tools": lambda subject, ctx: StepChange(tool_choice="none"),
    "step-messages": lambda subject, ctx: StepChange(messages=list(ctx.messages), system_messages=["now"]),
    "feedback": lambda subject, ctx: ctx.message_list.add_system("tagged", tag="chaos") and None,
    # process_llm_request
    "shout": lambda request, ctx: request.map_text(str.upper),
    "cached": lambda request, ctx: CachedResponse([TextDelta(text="cached")]),
    # process_output_step, process_output_result
    "edit": _edit_texts,
    "empty-texts": _empty_texts,
    "drop-texts": _drop_texts,
    "drop-calls": _drop_calls,
    "answer": _answer,
    "add-answer": _with_message("assistant"),
    "no-list": lambda subject, ctx: [],
    # process_tool_result
    "result": lambda result, ctx: result.replace(result={"changed": True}),
    "none-result": lambda result, ctx: result.replace(result=None),
    "update": lambda result, ctx: ctx.message_list.update_tool_invocation(
        result.tool_call_id, result="updated"
    ),
    # process_api_error
    "again": lambda error, ctx: Retry(),
}

COMMON = ["abort", "retry", "swallow", "raise", "wrong", "violation", "data", "transient"]
ACTIONS: dict[str, list[str]] = {
    "process_input": ["none", "same", "copies", "list", "add-user", "change", "feedback"],
    "process_input_step": [
        "none",
        "same",
        "copies",
        "reversed",
        "list",
        "add-user",
        "no-tools",
        "step-messages",
    ],
    "process_llm_request": ["none", "shout", "cached"],
    "process_llm_response": ["none"],
    "process_output_stream": [
        *("pass", "upper", "drop", "twice", "before", "after", "reason", "end"),
    ],
    "process_output_step": [
        *("none", "same", "copies", "list", "edit", "empty-texts", "drop-texts", "drop-calls", "answer"),
        *("add-answer", "no-list"),
    ],
    "process_tool_result": ["none", "result", "none-result", "update", "same"],
    "process_output_result": [
        *("none", "same", "copies", "list", "edit", "empty-texts", "drop-texts", "add-answer", "no-list"),
    ],
    "process_api_error": ["none", "again"],
}
STREAM = "process_output_stream"
TEXT_ANYWHERE = ["before-any", "after-any", "reason-any", "start-any", "end-any", "drop"]
FRAME = ["drop-frame", "twice-frame"]
FORGED = ["forge-start", "forge-finish", "forge-tripwire", "forge-error", "forge-abort"]


# --------------------------------------------------------------------------------------------------------- plans


@dataclass(frozen=True)
class ProcessorPlan:
    """What one processor does."""

    hooks: dict[str, tuple[bool, list[str]]]
    fails_open: bool
    data_parts: bool


@dataclass(frozen=True)
class Plan:
    """What everything in a run does."""

    calls: list[list[Any]]
    no_finish: frozenset[int]
    pauses: bool
    processors: list[ProcessorPlan]
    options: dict[str, Any]
    memory_policy: bool

    def build(self, journal: Journal) -> tuple[Agent, WatchedModel, Memory]:
        """An agent, its model and its memory, fresh."""
        model = WatchedModel(self.calls, no_finish=self.no_finish, pauses=self.pauses)
        processors = [Chaos(f"p{i}", plan, journal) for i, plan in enumerate(self.processors)]
        lanes = {
            lane: [p for p, plan in zip(processors, self.processors, strict=True) if hooks & set(plan.hooks)]
            for lane, hooks in HOOKS_OF.items()
        }
        memory = Memory(save_unfinished=self.memory_policy)
        agent = Agent(
            id="chaos",
            model=model,
            tools=make_tools(journal),
            memory=memory,
            input_processors=lanes["input"],
            output_processors=lanes["output"],
            error_processors=lanes["error"],
        )
        return agent, model, memory


HOOKS_OF: dict[str, set[str]] = {
    "input": {"process_input", "process_input_step", "process_llm_request", "process_llm_response"},
    "output": {
        "process_output_stream",
        "process_output_step",
        "process_tool_result",
        "process_output_result",
    },
    "error": {"process_api_error"},
}


def make_tools(journal: Journal) -> list[Tool]:
    """Tools that return, return None, raise, write data, and wait."""

    @tool
    async def look(ctx: ToolContext) -> Any:
        """Look."""
        journal.tools.append(ctx.tool_call_id)
        return {"v": 7}

    @tool
    async def nothing(ctx: ToolContext) -> None:
        """Return nothing, after a while."""
        journal.tools.append(ctx.tool_call_id)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    @tool
    async def fail(ctx: ToolContext) -> None:
        """Raise."""
        journal.tools.append(ctx.tool_call_id)
        raise RuntimeError("the tool failed")

    @tool(repeatable=False)
    async def pay(ctx: ToolContext) -> str:
        """Write data, and do what must not be done twice."""
        journal.tools.append(ctx.tool_call_id)
        ctx.writer.custom({"type": "data-paid", "data": 1})
        return "paid"

    return [look, nothing, fail, pay]


def stream_plans(actions: list[str]) -> st.SearchStrategy[Plan]:
    """Plans in which nothing happens but these actions in process_output_stream, and late edits and
    retries.
    """
    turns = st.lists(st.sampled_from(["pass", "pass", *actions]), min_size=1, max_size=4)
    late = st.lists(st.sampled_from(["none", "edit", "add-answer", "retry"]), min_size=1, max_size=3)
    hooks = st.fixed_dictionaries(
        {STREAM: st.tuples(st.booleans(), turns)},
        optional={
            "process_output_step": st.tuples(st.booleans(), late),
            "process_output_result": st.tuples(st.booleans(), late),
        },
    )
    processor = st.builds(ProcessorPlan, hooks=hooks, fails_open=st.just(False), data_parts=st.just(False))
    return st.builds(
        Plan,
        calls=calls(calm=True),
        no_finish=st.just(frozenset[int]()),
        pauses=st.booleans(),
        processors=st.lists(processor, min_size=1, max_size=2),
        options=OPTIONS,
        memory_policy=st.booleans(),
    )


def _hook_plans(calm: bool) -> st.SearchStrategy[dict[str, tuple[bool, list[str]]]]:
    """Hooks with their actions; most actions of a list do nothing, or a run would rarely come far."""

    def actions(hook: str) -> st.SearchStrategy[list[str]]:
        calm_action = "pass" if hook == STREAM else "none"
        # the quiet ones first: Hypothesis shrinks towards them
        own = [calm_action] * 6 + ACTIONS[hook] + ([] if calm else COMMON)
        return st.lists(st.sampled_from(own), min_size=1, max_size=4)

    optional = {hook: st.tuples(st.booleans(), actions(hook)) for hook in ACTIONS}
    return st.fixed_dictionaries({}, optional=optional).filter(bool)


def processor_plans(*, calm: bool = False) -> st.SearchStrategy[ProcessorPlan]:
    """Plans of processors."""
    return st.builds(
        ProcessorPlan, hooks=_hook_plans(calm), fails_open=st.booleans(), data_parts=st.booleans()
    )


PIECES = st.sampled_from(["", "a", "b ", "é", "1234", "\n", "word "])
DELTAS = st.lists(PIECES, max_size=4)
BLOCK_IDS = st.sampled_from([None, None, "x", "y"])
TOOLS = st.sampled_from(["look", "nothing", "fail", "pay", "nosuch"])

GOOD_ITEMS: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda deltas, id: text(*deltas, id=id), DELTAS, BLOCK_IDS),
    st.builds(lambda deltas, id: reasoning(*deltas, id=id), DELTAS, BLOCK_IDS),
    st.builds(lambda name, id: tool_call(name, {}, id=id), TOOLS, st.sampled_from([None, None, "c1"])),
)
ODD_ITEMS: st.SearchStrategy[Any] = st.sampled_from(
    [
        TextStart(id="x"),
        TextDelta(text="loose", id="x"),
        TextDelta(text="bare"),
        TextEnd(id="x"),
        TextEnd(id="never"),
        ReasoningDelta(text="loose thought", id="z"),
        Source(id="s", url="https://example.test", title="A source"),
        File(mime_type="text/plain", data="eA=="),
        ToolCall(tool_call_id="p1", tool_name="search", args={"q": 1}, provider_executed=True),
        ToolResult(tool_call_id="p1", tool_name="search", result={"hits": 1}, provider_executed=True),
        ToolInputStart(tool_call_id="c1", tool_name="look"),
        ToolInputDelta(tool_call_id="c1", args_text="{}"),
        ToolInputEnd(tool_call_id="c1"),
        ToolCall(tool_call_id="c2", tool_name="look", invalid="no JSON"),
        StepStart(),
        Start(),
        Abort(),
        TripWireChunk(reason="from a model", processor_id="model"),
        OtherChunk(type="weird", payload=1),
        Finish(finish_reason="length"),
        ErrorChunk("the stream broke"),
        error(400, "refused"),
        error(503, "away"),
        RuntimeError("a bug in the model"),
    ]
)


def calls(*, calm: bool = False) -> st.SearchStrategy[list[list[Any]]]:
    """Scripts of a model."""
    items = GOOD_ITEMS if calm else st.one_of(GOOD_ITEMS, GOOD_ITEMS, ODD_ITEMS)
    return st.lists(st.lists(items, max_size=5), min_size=1, max_size=3)


OPTIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "release": st.sampled_from(["auto", "live", "step", "run"]),
        "max_processor_retries": st.sampled_from([None, 0, 1, 2]),
        "max_steps": st.integers(1, 3),
    }
)


def plans(*, calm: bool = False) -> st.SearchStrategy[Plan]:
    """Whole plans; calm ones have no aborts, errors or broken streams."""
    return st.builds(
        Plan,
        calls=calls(calm=calm),
        no_finish=st.just(frozenset[int]()) if calm else st.frozensets(st.integers(0, 2), max_size=2),
        pauses=st.booleans(),
        processors=st.lists(processor_plans(calm=calm), min_size=1, max_size=3),
        options=OPTIONS,
        memory_policy=st.booleans(),
    )
