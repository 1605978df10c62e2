"""Runs scenarios (VOCABULARY.md) against the library's public API and writes what happened down (EXPECTED.md)."""
