"""Doubles and checks for your own tests: public API."""

from interlock.testing.checks import never_sent, saved_equals_sent
from interlock.testing.cutting import all_cuts, random_cuts
from interlock.testing.scripted import ScriptedCall, ScriptedModel, error, reasoning, text, tool_call
from interlock.testing.trial import CutReport, TriedCut, check_guard

__all__ = [
    "CutReport",
    "ScriptedCall",
    "ScriptedModel",
    "TriedCut",
    "all_cuts",
    "check_guard",
    "error",
    "never_sent",
    "random_cuts",
    "reasoning",
    "saved_equals_sent",
    "text",
    "tool_call",
]
