"""Doubles and checks for your own tests: public API."""

from interlock.testing.scripted import ScriptedCall, ScriptedModel, error, reasoning, text, tool_call

__all__ = ["ScriptedCall", "ScriptedModel", "error", "reasoning", "text", "tool_call"]
