"""RequestContext: a mapping that travels with one call (R10.1, R10.5)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from interlock import RequestContext


def test_it_is_made_of_a_mapping_and_names() -> None:
    """R10.5: both at once; names win; keys may be any text, also one that is no name."""
    context = RequestContext({"a": 1, "b c": 2, "values": 3}, a=9)
    assert dict(context) == {"a": 9, "b c": 2, "values": 3}
    assert dict(RequestContext(values=1, self=2)) == {"values": 1, "self": 2}


def test_it_is_a_mapping() -> None:
    """R10.5: get with a default, in, len, iteration, pop, update, and ``set`` as the reference has it."""
    context = RequestContext(tenant="acme")
    assert isinstance(context, Mapping)
    assert context["tenant"] == context.get("tenant") == "acme"
    assert context.get("nope") is None
    assert context.get("nope", 5) == 5
    assert "tenant" in context
    assert "nope" not in context
    context.set("a", 1)
    context["b"] = 2
    context.update(c=3)
    del context["b"]
    assert list(context) == ["tenant", "a", "c"]
    assert len(context) == 3
    assert context.pop("a") == 1
    with pytest.raises(KeyError, match="nope"):
        context["nope"]


def test_a_mapping_given_to_it_is_copied() -> None:
    """R6: what a processor writes does not reach the caller's dict, nor another context made from it."""
    given = {"a": 1}
    one, two = RequestContext(given), RequestContext(given)
    one["a"] = 2
    assert given == {"a": 1}
    assert two["a"] == 1


def test_its_text_shows_names_only() -> None:
    """R0.3: values may be secrets, and contexts end up in logs."""
    context = RequestContext(api_key="sk-secret")
    for shown in (repr(context), str(context), f"{context}"):
        assert "api_key" in shown
        assert "sk-secret" not in shown
