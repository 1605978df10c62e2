"""The queries over messages: every one names the resource, and walks an index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    and_,
    cast,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    tuple_,
    union_all,
)

from interlock.memory.sql.tables import Moment, Tables

NOBODY = ""
_RUNS = re.compile(r"[A-Za-z0-9]+")


class Reading:
    """Builds queries over the tables of SQLite or PostgreSQL."""

    def __init__(self, tables: Tables, *, pg: bool) -> None:
        self._tables = tables
        self._messages = tables.messages
        # Times that we wrote are unique within a thread; the reference's may be equal, then it is as they came in
        self._place: ColumnElement[Any] = literal_column(
            "mastra_messages.ctid" if pg else "mastra_messages.rowid"
        )

    def owned(self, resource_id: str | None) -> ColumnElement[bool]:
        """Messages of the resource: by their own column, or, without one, by their thread's."""
        own, threads = self._messages.c["resourceId"], self._tables.threads
        mine = (
            select(threads.c["id"])
            .where(
                threads.c["id"] == self._messages.c["thread_id"],
                threads.c["resourceId"] == (resource_id or NOBODY),
            )
            .exists()
        )
        unnamed = and_(own.is_(None), mine)
        return unnamed if resource_id is None else or_(own == resource_id, unnamed)

    def last(self, thread_id: str, resource_id: str | None, last: int | None) -> Select[Any]:
        """The thread's last messages, the newest first."""
        newest = self._thread(thread_id, resource_id).order_by(*self._order(newest_first=True))
        return newest if last is None else newest.limit(last)

    def page(self, thread_id: str, resource_id: str | None, page: int, per_page: int) -> Select[Any]:
        """A page, oldest first."""
        oldest = self._thread(thread_id, resource_id).order_by(*self._order())
        return oldest.limit(per_page).offset(page * per_page)

    def count(self, thread_id: str, resource_id: str | None) -> Select[Any]:
        """How many messages the thread has."""
        return self._thread(thread_id, resource_id).with_only_columns(func.count())

    def known(self, thread_id: str, ids: Sequence[str]) -> Any:
        """The rows of these ids, and one without an id that has the time of the thread's newest message."""
        table = self._messages
        stored = select(table.c["id"], table.c["thread_id"], table.c["createdAt"]).where(
            table.c["id"].in_(ids)
        )
        newest = select(
            cast(null(), Text), literal(thread_id), func.max(table.c["createdAt"], type_=Moment)
        ).where(table.c["thread_id"] == thread_id)
        return union_all(stored, newest)

    def around(self, ids: Sequence[str], resource_id: str | None, before: int, after: int) -> Any:
        """The rows of these ids and so many before and after each, thread by thread, oldest first; some doubled."""
        table = self._messages
        here = tuple_(table.c["createdAt"], self._place)
        parts: list[Any] = []
        for message_id in dict.fromkeys(ids):
            place = literal_column(str(self._place).replace(table.name, "anchor"))
            anchor = table.alias("anchor")
            at = select(anchor.c["createdAt"], place).where(anchor.c["id"] == message_id).scalar_subquery()
            home = select(anchor.c["thread_id"]).where(anchor.c["id"] == message_id).scalar_subquery()
            thread = self._all().where(table.c["thread_id"] == home, self.owned(resource_id))
            older = thread.where(here <= at).order_by(*self._order(newest_first=True)).limit(before + 1)
            parts.append(select(older.subquery()))
            if after:
                newer = thread.where(here > at).order_by(*self._order()).limit(after)
                parts.append(select(newer.subquery()))
        rows = union_all(*parts).subquery()
        return select(rows).order_by(rows.c["createdAt"], rows.c["place"])

    def candidates(self, text: str, resource_id: str | None, thread_id: str | None) -> Select[Any]:
        """Messages that may have the text, the newest first: all its runs of plain letters are in the row."""
        table = self._messages
        found = self._all().where(self.owned(resource_id))
        if thread_id is not None:
            found = found.where(table.c["thread_id"] == thread_id)
        for run in _RUNS.findall(text):
            found = found.where(table.c["content"].icontains(run, autoescape=True))
        return found.order_by(*self._order(newest_first=True))

    def _all(self) -> Select[Any]:
        return select(self._messages, self._place.label("place"))

    def _thread(self, thread_id: str, resource_id: str | None) -> Select[Any]:
        return select(self._messages).where(
            self._messages.c["thread_id"] == thread_id, self.owned(resource_id)
        )

    def _order(self, *, newest_first: bool = False) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
        time = self._messages.c["createdAt"]
        return (time.desc(), self._place.desc()) if newest_first else (time.asc(), self._place.asc())
