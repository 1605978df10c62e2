"""The demo's processors: one for each thing the pipeline is for.

Each tells what it did in a custom data chunk, which the screen shows; that is all ``tell`` is about. Without those
lines they are what you would write in a program of your own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, cast

from interlock import (
    HookContext,
    InputProcessor,
    Message,
    OutputProcessor,
    OutputStep,
    StepChange,
    StepInput,
)
from interlock.chunks import Chunk, StepStart, TextDelta, TextEnd, ToolResult
from interlock.messages import TextPart

PERSONAL = {
    "EMAIL": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "CARD": re.compile(r"\b\d(?:[ -]?\d){12,18}\b"),
}
INJECTION = re.compile(
    r"(?:ignore|disregard|forget)\W+(?:\w+\W+){0,3}(?:instructions?|rules?)"
    r"|(?:print|reveal|show|repeat)\W+(?:\w+\W+){0,2}system prompt",
    re.IGNORECASE,
)
ORDER = re.compile(r"\border\b\D{0,12}\d{4}\b", re.IGNORECASE)


def tell(ctx: HookContext, hook: str, processor: str, did: str, before: str = "", after: str = "") -> None:
    """Send the screen a note: a data chunk, transient, so that it is never stored."""
    note = {"hook": hook, "processor": processor, "did": did, "before": before, "after": after}
    ctx.writer.custom({"type": "data-note", "data": note, "transient": True})


def masked(text: str) -> str:
    """The text with e-mail addresses and card numbers replaced by their kind."""
    for kind, pattern in PERSONAL.items():
        text = pattern.sub(f"[{kind}]", text)
    return text


class MaskPersonalData(InputProcessor):
    """Replaces personal data in the question before the model, or a store, sees it."""

    id = "mask-personal-data"

    def process_input(self, messages: list[Message], ctx: HookContext) -> list[Message]:
        """Change the text parts in place."""
        for part in (part for message in messages for part in message.content.parts):
            if isinstance(part, TextPart) and (after := masked(part.text)) != part.text:
                tell(ctx, "process_input", self.id, "masked personal data", part.text, after)
                part.text = after
        return messages


class BlockInjection(InputProcessor):
    """Stops a run whose input tries to give the model other orders. The model is not called at all."""

    id = "block-injection"

    def process_input(self, messages: list[Message], ctx: HookContext) -> None:
        """Abort: the run ends with a tripwire."""
        for message in messages:
            if found := INJECTION.search(message.text):
                ctx.abort("it reads like a prompt injection", metadata={"found": found[0]})


class OfferTools(InputProcessor):
    """Decides for each step whether the model has to call a tool: once, when the question names an order."""

    id = "offer-tools"

    def process_input_step(self, step: StepInput, ctx: HookContext) -> StepChange:
        """Change the tool choice of this step only."""
        if ctx.steps or not any(ORDER.search(message.text) for message in step.messages):
            return StepChange(tool_choice="none")
        tell(
            ctx,
            "process_input_step",
            self.id,
            f"the question names an order: offered {', '.join(step.tools)}",
        )
        return StepChange(tool_choice="required")


class PlainWords(OutputProcessor):
    """Rewrites words while they stream.

    The end of a chunk may be the middle of a word, so what could still become another word is held back until its
    end is there: the outcome is the same wherever the stream was cut.

    Args:
        words: a word, in lower case, to what is said instead.
    """

    id = "plain-words"

    def __init__(self, words: Mapping[str, str]) -> None:
        self.words = words

    def process_output_stream(self, chunk: Chunk, ctx: HookContext) -> Chunk | list[Chunk] | None:
        """Let complete words go, keep the rest in ``ctx.state``, which is this run's alone."""
        held: list[str] = ctx.state.setdefault("held", [])
        match chunk:
            case StepStart():
                held.clear()  # what a failed call left
                return chunk
            case TextDelta(text=text):
                held.append(text)
                whole = "".join(held)
                border = len(re.sub(r"\w+\Z", "", whole))
                ready = self.rewritten(held, border, ctx)
                held[:] = held if border == 0 else [whole[border:]]
                return chunk.replace(text=ready) if ready else None
            case TextEnd(id=block):
                rest = self.rewritten(held, len("".join(held)), ctx)
                held.clear()
                return [TextDelta(id=block, text=rest), chunk] if rest else chunk
            case _:
                return chunk

    def rewritten(self, pieces: list[str], border: int, ctx: HookContext) -> str:
        """The text of these pieces up to the border, with the words replaced."""
        cuts = set(accumulate(map(len, pieces)))

        def instead(found: re.Match[str]) -> str:
            word = found[0]
            new = self.words.get(word.lower())
            if new is None:
                return word
            new = new.capitalize() if word[0].isupper() and new.islower() else new
            came = "".join(
                f"|{letter}" if i in cuts else letter for i, letter in enumerate(word, found.start())
            )
            tell(ctx, "process_output_stream", self.id, "rewrote", came.removeprefix("|"), new)
            return new

        return re.sub(r"\w+", instead, "".join(pieces)[:border])


class CompleteAnswer(OutputProcessor):
    """Sends an answer back that is too short or breaks off; the model is told why.

    Args:
        words: how many an answer must have.
        retries: how often to send it back; then it passes, and the objection is noted.
    """

    id = "complete-answer"

    def __init__(self, *, words: int, retries: int) -> None:
        self.words = words
        self.retries = retries

    def process_output_step(self, output: OutputStep, ctx: HookContext) -> None:
        """Abort with ``retry=True``: the step is taken again."""
        problem = self.problem_of(output.text)
        if output.tool_calls or problem is None:
            return
        if ctx.retry_count < self.retries:
            ctx.abort(problem, retry=True)
        ctx.violation(problem)
        tell(
            ctx,
            "process_output_step",
            self.id,
            f"let it pass after {self.retries} retries, objecting: {problem}",
        )

    def problem_of(self, text: str) -> str | None:
        """What is wrong with an answer, in words the model can follow."""
        if len(text.split()) < self.words:
            return f"It is too short. Answer in a sentence of at least {self.words} words."
        if not text.rstrip("\"')*` \n").endswith((".", "!", "?")):
            return "It does not end with a full sentence. Answer in one short sentence."
        return None


class CleanRecord(OutputProcessor):
    """Cleans what a tool returns before the model, the client or a store sees it."""

    id = "clean-record"

    def process_tool_result(self, result: ToolResult, ctx: HookContext) -> ToolResult | None:
        """Mask personal data, and leave out fields that try to give the model orders."""
        record: dict[str, Any] = result.result
        clean = {
            name: masked(str(value)) for name, value in record.items() if not INJECTION.search(str(value))
        }
        if clean == record:
            return None
        did = f"cleaned the result of {result.tool_name}"
        tell(ctx, "process_tool_result", self.id, did, in_words(record), in_words(clean))
        return result.replace(result=clean)


def in_words(value: Any) -> str:
    """A record as a line to read, and anything else as it is."""
    if not isinstance(value, Mapping):
        return str(value)
    record = cast("Mapping[str, Any]", value)
    return "; ".join(f"{name}: {entry}" for name, entry in record.items())
