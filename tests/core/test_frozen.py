"""The prompt is frozen: an in-place change raises, and says what to do instead (R4.3)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Agent, Processor
from interlock.core.frozen import FrozenDict, FrozenList, frozen, frozen_prompt
from interlock.core.model import PromptMessage, PromptText, PromptToolCall, PromptToolResult
from interlock.testing import ScriptedModel, text

DICT_CHANGES: list[Callable[[Any], Any]] = [
    lambda d: d.__setitem__("a", 1),
    lambda d: d.__delitem__("a"),
    lambda d: d.update(a=2),
    lambda d: d.pop("a"),
    lambda d: d.popitem(),
    lambda d: d.clear(),
    lambda d: d.setdefault("b", 1),
    lambda d: d.__ior__({"b": 1}),
]
LIST_CHANGES: list[Callable[[Any], Any]] = [
    lambda x: x.__setitem__(0, 9),
    lambda x: x.__delitem__(0),
    lambda x: x.append(9),
    lambda x: x.extend([9]),
    lambda x: x.insert(0, 9),
    lambda x: x.pop(),
    lambda x: x.remove(1),
    lambda x: x.clear(),
    lambda x: x.sort(),
    lambda x: x.reverse(),
    lambda x: x.__iadd__([9]),
    lambda x: x.__imul__(2),
]


@pytest.mark.parametrize("change", DICT_CHANGES)
def test_a_frozen_dict_refuses_every_change(change: Callable[[Any], Any]) -> None:
    """R4.3: and stays what it was; the error says to return a new request."""
    value = frozen({"a": 1})
    with pytest.raises(TypeError, match="replace"):
        change(value)
    assert value == {"a": 1}


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_frozen_list_refuses_every_change(change: Callable[[Any], Any]) -> None:
    """R4.3: likewise."""
    value = frozen([2, 1])
    with pytest.raises(TypeError, match="replace"):
        change(value)
    assert value == [2, 1]


def test_it_is_frozen_all_the_way_down() -> None:
    """R4.3: also inside tuples and lists of objects."""
    value = frozen({"a": [{"b": (1, {"c": 2})}]})
    assert isinstance(value, FrozenDict)
    assert isinstance(value["a"], FrozenList)
    with pytest.raises(TypeError):
        value["a"][0]["b"][1]["c"] = 3


def test_a_frozen_value_reads_like_a_plain_one() -> None:
    """R4.3: equal, JSON-serialisable, iterable, spreadable."""
    value = frozen({"a": [1, {"b": None}]})
    assert value == {"a": [1, {"b": None}]}
    assert json.dumps(value) == '{"a": [1, {"b": null}]}'
    assert {**value, "c": 1} == {"a": [1, {"b": None}], "c": 1}
    assert [*value["a"]] == [1, {"b": None}]


def test_a_frozen_value_can_be_copied() -> None:
    """R4.3: a hook that wants to build a new request from a deep copy can; the copy shares nothing with the prompt."""
    value = frozen({"a": [1, {"b": None}]})
    assert copy.copy(value) == value
    deep = copy.deepcopy(value)
    assert deep == {"a": [1, {"b": None}]}
    assert deep is value or deep["a"] is not value["a"]


def test_freezing_does_not_touch_the_original() -> None:
    """R4.3, R3.8: the message list behind the prompt stays open to changes, which the prompt does not see."""
    original = {"a": [1]}
    value = frozen(original)
    original["a"].append(2)
    assert value == {"a": [1]}


def test_everything_in_a_prompt_is_frozen() -> None:
    """R4.3: messages, parts, tool arguments, results and provider options."""
    (message,) = frozen_prompt(
        (
            PromptMessage(
                role="assistant",
                content=(
                    PromptText(text="a", provider_options={"p": {"x": [1]}}),
                    PromptToolCall(tool_call_id="c", tool_name="t", input={"q": [1]}),
                    PromptToolResult(tool_call_id="c", tool_name="t", kind="json", value={"r": [1]}),
                ),
            ),
        )
    )
    part, call, result = message.content
    assert isinstance(part, PromptText)
    assert isinstance(call, PromptToolCall)
    assert isinstance(result, PromptToolResult)
    for change in (
        lambda: setattr(message, "role", "user"),
        lambda: setattr(part, "text", "b"),
        lambda: call.input["q"].append(2),
        lambda: result.value.update(r=2),
        lambda: part.provider_options["p"]["x"].append(2),  # type: ignore[index]
    ):
        with pytest.raises((TypeError, AttributeError)):
            change()


@pytest.mark.anyio
async def test_a_hook_that_changes_the_prompt_in_place_fails() -> None:
    """R4.3: in-place change raises, with a note of processor and hook, and no model is called."""

    class InPlace(Processor):
        id = "in-place"

        def process_llm_request(self, request: Any, ctx: Any) -> None:
            request.prompt[0].content[0].text = "other"

    model = ScriptedModel([text("ok")])
    with pytest.raises((TypeError, AttributeError)) as caught:
        await Agent(id="a", model=model, input_processors=[InPlace()]).generate("hi")
    assert any("in-place" in note and "process_llm_request" in note for note in caught.value.__notes__)
    assert model.calls == []
