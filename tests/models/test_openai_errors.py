"""What providers say when they fail; the forms themselves are in test_openai_compatible's tables."""

from __future__ import annotations

from interlock.models.openai_errors import EXCERPT, excerpt, stream_error


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
