"""Built-in processors and compositions of processors."""

from interlock.processors.chain import Chain
from interlock.processors.compat_rules import CompatRule
from interlock.processors.keyword_filter import KeywordFilter
from interlock.processors.parallel import Parallel
from interlock.processors.prefill_error_handler import PrefillErrorHandler
from interlock.processors.provider_history_compat import ProviderHistoryCompat
from interlock.processors.regex_filter import RegexFilter
from interlock.processors.stream_error_retry import (
    StreamErrorMatcher,
    StreamErrorRetry,
    is_bad_request,
    is_retryable_stream_error,
)
from interlock.processors.structured_output import StructuredOutput
from interlock.processors.structuring import StructuredOutputProcessor
from interlock.processors.when import When
from interlock.release.channels import Detection
from interlock.release.guard import SpanGuard
from interlock.release.unit_guard import UnitGuard
from interlock.release.unit_track import Unit, Verdict

__all__ = [
    "Chain",
    "CompatRule",
    "Detection",
    "KeywordFilter",
    "Parallel",
    "PrefillErrorHandler",
    "ProviderHistoryCompat",
    "RegexFilter",
    "SpanGuard",
    "StreamErrorMatcher",
    "StreamErrorRetry",
    "StructuredOutput",
    "StructuredOutputProcessor",
    "Unit",
    "UnitGuard",
    "Verdict",
    "When",
    "is_bad_request",
    "is_retryable_stream_error",
]
