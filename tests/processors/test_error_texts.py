"""What a failed call says: an error with its causes."""

from __future__ import annotations

from itertools import pairwise

from interlock import ModelError
from interlock.processors.error_texts import causes, texts_of


def chained(*errors: Exception) -> Exception:
    """The first error, caused by the second, and so on."""
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


def test_an_error_and_its_causes_each_once() -> None:
    """Also in a circle, which code of others may make."""
    first, second = ValueError("a"), ModelError("b")
    assert list(causes(chained(first, second))) == [first, second]
    assert list(causes(chained(first, second, first))) == [first, second]


def test_messages_and_bodies() -> None:
    """Both may say what went wrong."""
    error = chained(RuntimeError("outer"), ModelError("Bad Request", status=400, body='{"why": "prefill"}'))
    assert texts_of(error) == ["outer", "Bad Request (400)", '{"why": "prefill"}']
    assert texts_of(ModelError("no body")) == ["no body"]
