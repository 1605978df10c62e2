"""Memory's options for recall and working memory."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.errors import UsageError
from interlock.memory import InMemoryStore, Memory, NumpyIndex
from memory.meanings import Meanings


def test_the_processors_stand_in_the_references_order() -> None:
    """MemoryInputFilter, WorkingMemory, MessageHistory, SemanticRecall, as the reference's own list has them."""
    memory = Memory(semantic_recall=True, working_memory=True, embedder=Meanings())
    ids = [processor.id for processor in memory.input_processors()]
    assert ids == ["memory-input-filter", "working-memory", "message-history", "semantic-recall"]
    assert [processor.id for processor in Memory().input_processors()] == [
        "memory-input-filter",
        "message-history",
    ]


class OnlyWhatARunNeeds:
    """A store that does not look after its threads."""

    def __init__(self) -> None:
        store = InMemoryStore()
        self.messages = store.messages
        self.save_turn = store.save_turn


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"semantic_recall": {"topk": 3}}, "no option topk; it takes top_k"),
        ({"semantic_recall": "yes"}, "semantic_recall must be True"),
        ({"working_memory": {"schem": 1}}, "no option schem"),
        ({"embedder": Meanings()}, "semantic_recall=True"),
        ({"vector_index": NumpyIndex()}, "semantic_recall=True"),
        ({"semantic_recall": True, "embedder": Meanings(), "vector_index": 3}, "VectorIndex"),
        ({"working_memory": True, "store": OnlyWhatARunNeeds()}, "ConversationStore"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], said: str) -> None:
    """What cannot work is said when the memory is made, with what to write instead."""
    with pytest.raises(UsageError, match=said):
        Memory(**options)
