"""Processors: what they are without any set-up."""

from __future__ import annotations

import pytest

from interlock import ErrorProcessor, InputProcessor, OutputProcessor, Processor, ProcessorViolation
from interlock.core.hooks import HOOKS, LANES
from interlock.core.processor import BaseProcessor


class Named(Processor):
    id = "named"


def test_the_name_falls_back_to_the_id() -> None:
    """R2.1: a processor without a name is called by its id; a class or an object may give a name."""
    assert Named().name == "named"
    assert Named.name == "named"
    own = Named()
    own.name = "Ada"
    assert own.name == "Ada"

    class InClass(Processor):
        id = "in-class"
        name = "By class"

    assert InClass().name == "By class"


def test_the_defaults_of_a_processor() -> None:
    """R2.1, R2.7: no data parts, no failed tools, closed on errors, no index before it stands in a list."""
    processor = Named()
    assert processor.process_data_parts is False
    assert processor.process_tool_errors is False
    assert processor.on_error == "closed"
    assert processor.processor_index is None
    assert processor.description is None


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.name)
def test_each_hook_is_declared_in_its_lane_only(hook) -> None:
    """R2.4: the base class of a lane declares the hooks of that lane, Processor declares all nine."""
    for lane, base in LANES.items():
        assert hasattr(base, hook.name) == (lane == hook.lane)
    assert hasattr(Processor, hook.name)


@pytest.mark.parametrize("base", [InputProcessor, OutputProcessor, ErrorProcessor, Processor])
def test_every_lane_is_a_processor(base: type[BaseProcessor]) -> None:
    """R2.4: a processor of any lane can be told of violations and of the end."""
    violation = ProcessorViolation(processor_id="x", message="no")
    assert issubclass(base, BaseProcessor)
    assert base().on_violation(violation) is None
