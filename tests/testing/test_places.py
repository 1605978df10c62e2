"""Pieces of removed spans in what was sent: found in their places, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.testing.places import Leak, Span, first_leak

WHOLE = "ask bob: bob@x.org and bob.smith@y.com ok"
SPANS = [(9, 18), (23, 38)]


@pytest.mark.parametrize(
    "sent",
    [
        "ask bob: [E] and [E] ok",
        "ask bob:  and  ok",
        "ask bob: [and] and [ ok] ok",
        "ask bob: [E] and [E] o",
        "ask bob: [E] an",
        "ask bob: [E",
        "ask bob",
        "",
    ],
)
def test_replaced_spans_are_no_leak(sent: str) -> None:
    """Whatever stands for a span; also of a stream that stopped anywhere; 'bob' is in the kept text, too."""
    assert first_leak(sent, WHOLE, SPANS) is None


@pytest.mark.parametrize(
    ("sent", "piece", "span"),
    [
        ("ask bob: bob@x.org and [E] ok", "bob@x.org", 0),
        ("ask bob: bob", "bob", 0),
        ("ask bob: [E].org and [E] ok", ".org", 0),
        ("ask bob: [E] and bob.[E] ok", "bob.", 1),
        ("ask bob: [E] and [E]com ok", "com", 1),
        ("ask bob: [E] and [smith] ok", "smith", 1),
        (WHOLE, "bob@x.org", 0),
    ],
)
def test_pieces_in_place_are_leaks(sent: str, piece: str, span: int) -> None:
    """Head, tail, middle or all of a span, and which span it was."""
    leak = first_leak(sent, WHOLE, SPANS)
    assert leak is not None
    assert (sent[leak.start : leak.end], leak.span) == (piece, SPANS[span])


def test_short_pieces_are_no_leak_unless_wanted() -> None:
    """Two characters are less than min_piece."""
    assert first_leak("ask bob: [bo] and [E] ok", WHOLE, SPANS) is None
    assert first_leak("ask bob: [bo] and [E] ok", WHOLE, SPANS, min_piece=2) is not None


def test_a_short_span_leaks_whole() -> None:
    """A span shorter than min_piece is a leak when it alone stands in its place."""
    assert first_leak("in A1 now", "in A1 now", [(3, 5)]) == Leak(3, 5, (3, 5))
    assert first_leak("in [A1?] now", "in A1 now", [(3, 5)]) is None


def test_a_replacement_may_look_like_a_piece() -> None:
    """Texts that stand for spans are given, so that they raise no alarm; beside them it still leaks."""
    whole, spans = "to email@x.y ok", [(3, 12)]
    assert first_leak("to [email] ok", whole, spans) is not None
    assert first_leak("to [email] ok", whole, spans, replacements=["[email]"]) is None
    assert first_leak("to email[email] ok", whole, spans, replacements=["[email]"]) is not None


@pytest.mark.parametrize("sent", ["xask bob: [E]", "ask rob: [E] and [E] ok"])
def test_another_text_does_not_fit(sent: str) -> None:
    """What was sent is not this text with its spans replaced: that is told, no leak invented."""
    leak = first_leak(sent, WHOLE, SPANS)
    assert leak is not None
    assert leak.span is None


def test_overlapping_empty_and_neighbouring_spans() -> None:
    """Spans may overlap, touch, be empty or come in any order."""
    assert first_leak("a[E]c", "abbbbc", [(3, 5), (1, 4), (2, 2)]) is None
    assert first_leak("a[E][E]c", "abbbdddc", [(1, 4), (4, 7)]) is None
    assert first_leak("abbb[E]c", "abbbdddc", [(1, 4), (4, 7)]) is not None
    assert first_leak("abc", "abc", []) is None


@given(st.data())
def test_a_sentinel_alphabet_agrees(data: st.DataObject) -> None:
    """Spans of letters that occur nowhere else: a leak is found exactly when three of them in a row were sent."""
    kept = data.draw(st.lists(st.text("ab ", max_size=6), min_size=2, max_size=5))
    removed = [data.draw(st.text("XYZ", min_size=4, max_size=6)) for _ in kept[1:]]
    shown = [
        data.draw(st.sampled_from(["", "[E]", "*", text, text[:3], text[-3:], text[:2]])) for text in removed
    ]
    whole, sent, spans = kept[0], kept[0], list[Span]()
    for part, gone, instead in zip(kept[1:], removed, shown, strict=True):
        spans.append((len(whole), len(whole) + len(gone)))
        whole += gone + part
        sent += instead + part
    merged_gaps = all(part for part in kept[1:-1])
    leaks = any(len(text.strip("[E]*")) >= 3 for text in shown)
    if merged_gaps:
        found = first_leak(sent, whole, spans)
        assert (found is not None) == leaks
        assert found is None or found.span is not None
