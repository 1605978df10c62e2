"""Working memory's text after changes: replaced or merged."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.result import MemoryChange
from interlock.memory.working_text import changed, merged, parsed

VALUES = st.recursive(
    st.one_of(st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2)),
    lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=2), VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_a_change_made_twice_is_a_change_made_once(current: dict[str, Any], patch: dict[str, Any]) -> None:
    """Merging is idempotent, and keeps what the change does not name."""
    once = merged(current, patch)
    assert merged(once, patch) == once
    assert all(once[key] == value for key, value in current.items() if key not in patch)


def test_texts_replace_and_objects_merge() -> None:
    """A template's text replaces everything; an object is merged, also into what no object was."""
    text = MemoryChange(scope="thread", value="# new")
    patch = MemoryChange(scope="thread", value={"a": 1})
    assert changed("# old", [text]) == "# new"
    assert changed(None, []) is None
    assert json.loads(changed("# old", [patch]) or "") == {"a": 1}
    assert parsed("[1]") == parsed("not json") == parsed(None) == {}


@given(st.text(st.characters()), st.dictionaries(st.text(st.characters()), st.text(st.characters())))
def test_every_database_can_keep_it(text: str, values: dict[str, str]) -> None:
    """R8.1: what a model writes may hold NUL or half of a surrogate pair; the turn must not be lost for that."""
    for value in (text, values):
        kept = changed(None, [MemoryChange(scope="resource", value=value)])
        assert kept is not None
        assert "\0" not in kept
        kept.encode()
