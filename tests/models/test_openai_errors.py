"""What providers say when they fail; the forms themselves are in test_openai_compatible's tables."""

from __future__ import annotations

import pytest

from interlock.models.openai_errors import EXCERPT, excerpt, retry_after, stream_error


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "7", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Mon, 01 Jan 2024 00:00:00 GMT"}, 0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds and dates are understood, a date gone by is 0, nonsense is nothing."""
    assert retry_after(headers) == seconds


def test_long_bodies_are_cut() -> None:
    """An error's text quotes only the beginning of a body, on one line."""
    text = excerpt("a\n" * EXCERPT)
    assert text.startswith("a a a")
    assert len(text) == EXCERPT + 3


def test_status_in_the_stream() -> None:
    """A status as the code of an error in the stream tells whether a retry makes sense."""
    assert stream_error({"message": "x", "code": 429}, "").retryable
    assert not stream_error({"message": "x", "code": 400}, "").retryable
    assert stream_error({"message": "x", "code": 429}, "").status == 429
