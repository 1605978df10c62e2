"""Built-in processors and compositions of processors."""

from interlock.processors.chain import Chain
from interlock.processors.parallel import Parallel
from interlock.processors.regex_filter import RegexFilter
from interlock.processors.when import When
from interlock.release.guard import Detection, SpanGuard

__all__ = ["Chain", "Detection", "Parallel", "RegexFilter", "SpanGuard", "When"]
