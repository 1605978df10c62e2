"""The demo: an agent on a small real model, and processors that say what they do.

``processors`` has them, each short enough to read as documentation; ``agent`` puts them together; ``schema_tools``
lets a model call tools that has never learned to; ``screen`` shows a run.
"""

from interlock.demo.agent import SAMPLES, answer, demo_agent
from interlock.demo.screen import Screen

__all__ = ["SAMPLES", "Screen", "answer", "demo_agent"]
