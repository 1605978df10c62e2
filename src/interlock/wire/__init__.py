"""Chunks as JSON for clients, and back: the reference's envelope ``{type, runId, from, payload}``.

Inside the library a chunk is flat and typed (:mod:`interlock.chunks`); camelCase and the envelope exist only here.
Keys whose value is unset are left out, and so are flags that are false. Custom ``data-*`` chunks have no envelope:
``{type, data}`` is the whole of them.
"""

from interlock.wire.envelope import from_wire, to_wire

__all__ = ["from_wire", "to_wire"]
