"""The tests mirror the sources: a reader of ``core/x.py`` finds its tests in ``tests/core/test_x.py``."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "src" / "interlock"

COVERED_ELSEWHERE = {
    "__main__.py": "one line that calls cli, run by test_cli.py",
    "call_options.py": "what generate and stream take: test_agent.py",
    "chunks.py": "names of core/chunks: test_chunks.py, test_exports.py",
    "messages.py": "names of core/messages: test_messages.py",
    "prompt.py": "names of core/model: test_prompt.py",
    "core/attempt.py": "plain data of the loop: test_loop.py",
    "core/edges.py": "protocols and plain data: test_loop.py runs with edges of its own",
    "core/step_records.py": "steps of results: test_loop.py, test_conduct.py",
    "core/hooks.py": "a table: test_pipeline.py goes through it",
    "core/model.py": "types of the prompt and a protocol: test_prompt.py, tests/models",
    "core/blocks.py": "the transcript's open blocks: test_transcript.py",
    "core/calling.py": "how hooks are called, seen through the loop: test_stages.py, test_loop.py, test_conduct.py",
    "core/run.py": "the run's state, seen through the loop: test_loop.py, test_conduct.py",
    "core/result.py": "plain data: test_conduct.py",
    "core/returns.py": "what hooks may return: test_stages.py",
    "core/rewriting.py": "held chunks as they then stand: test_delivery.py",
    "core/shapes.py": "type guards, and the text of errors: test_given.py",
    "memory/vectors.py": "a contract and its records: index_laws.py, test_numpy_index.py",
    "models/connections.py": "clients of event loops: test_openai_compatible.py, test_embeddings.py",
    "models/http.py": "what the adapters share: test_openai_compatible.py, test_embeddings.py",
    "memory/sql/reading.py": "the store's queries: memory/test_store.py, memory/sql/test_store.py",
    "memory/sql/writing.py": "the store's INSERTs: memory/test_store.py, memory/sql/test_turns.py",
    "memory/sql/tables.py": "the tables: memory/sql/test_schema.py looks at what they become",
    "memory/sql/versions/v0001_first.py": "a step of the schema: memory/sql/test_schema.py",
    "release/read.py": "what is known of patterns and pieces of them: release/test_reading.py",
    "core/tool_jobs.py": "plain data between loop and toolbox: test_toolbox.py",
}
"""Sources without a test file of their own, and why."""


def _modules() -> list[str]:
    return sorted(
        str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if path.name != "__init__.py"
    )


def _mirrored(module: str) -> list[Path]:
    """Where the tests of a module may be: its own file, or one of its package (``wire/x.py``: ``test_wire.py``)."""
    path = Path(module)
    package = [TESTS / path.parent.parent / f"test_{path.parent.name}.py"] if len(path.parts) > 1 else []
    return [TESTS / path.parent / f"test_{path.name}", *package]


def test_every_module_has_its_test_file() -> None:
    """A module without one is either missing its tests or stands on the short list, with the reason."""
    missing = [
        module
        for module in _modules()
        if module not in COVERED_ELSEWHERE and not any(path.exists() for path in _mirrored(module))
    ]
    assert missing == []


def test_the_exceptions_are_few_and_still_needed() -> None:
    """The list does not rot: each module on it exists and has no test file."""
    modules = set(_modules())
    assert [module for module in COVERED_ELSEWHERE if module not in modules] == []
    doubled = [m for m in COVERED_ELSEWHERE if (TESTS / Path(m).parent / f"test_{Path(m).name}").exists()]
    assert doubled == []


def test_no_test_file_is_orphaned_in_the_mirrored_folders() -> None:
    """A test file in a mirrored folder belongs to a module that exists."""
    orphans = [
        str(path.relative_to(TESTS))
        for folder in ("core", "memory", "models", "sse", "testing")
        for path in sorted((TESTS / folder).glob("test_*.py"))
        if not (SOURCES / folder / path.name.removeprefix("test_")).exists()
    ]
    assert orphans == []
