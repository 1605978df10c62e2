"""Built-in processors and compositions of processors."""

from interlock.processors.chain import Chain
from interlock.processors.keyword_filter import KeywordFilter
from interlock.processors.parallel import Parallel
from interlock.processors.regex_filter import RegexFilter
from interlock.processors.when import When
from interlock.release.channels import Detection
from interlock.release.guard import SpanGuard
from interlock.release.unit_guard import Unit, UnitGuard, Verdict

__all__ = [
    "Chain",
    "Detection",
    "KeywordFilter",
    "Parallel",
    "RegexFilter",
    "SpanGuard",
    "Unit",
    "UnitGuard",
    "Verdict",
    "When",
]
