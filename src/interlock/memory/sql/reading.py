"""The queries: every one names the resource, and walks an index.

A statement is built once for all calls, with names for what changes: building one takes longer than its execution.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    func,
    literal_column,
    null,
    or_,
    select,
    tuple_,
    union_all,
)

from interlock.memory.sql.tables import Moment, Tables

NOBODY = ""
"""The ``resourceId`` of threads without a resource: the reference's column cannot be NULL."""

Query: TypeAlias = tuple[Any, Mapping[str, Any]]
"""A statement and its values."""

AROUND = 20
"""Anchors in one query: SQLite takes 500 parts in one at most, and each anchor has two."""

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
        self._last = cache(self._build_last)
        self._around = cache(self._build_around)
        self._page = cache(self._build_page)
        self._count = cache(self._build_count)
        self._these = cache(self._build_these)
        threads = tables.threads
        self._thread = select(threads).where(threads.c["id"] == bindparam("thread"))
        self._thread_locked = self._thread.with_for_update()  # nothing in SQLite, where one writes at a time
        self._known = self._build_known()

    def thread(self, thread_id: str, *, lock: bool = False) -> Query:
        """The thread's row, whosever it is."""
        return self._thread_locked if lock else self._thread, {"thread": thread_id}

    def threads(self, resource_id: str | None, page: int, per_page: int) -> tuple[Any, Any]:
        """How many threads the resource has, and a page of them, the last updated first."""
        table = self._tables.threads
        own = table.c["resourceId"] == (resource_id or NOBODY)
        order = (table.c["updatedAt"].desc(), table.c["id"].desc())
        shown = select(table).where(own).order_by(*order).limit(per_page).offset(page * per_page)
        return select(func.count()).select_from(table).where(own), shown

    def last(self, thread_id: str, resource_id: str | None, last: int | None) -> Query:
        """The thread's last messages, the newest first."""
        values = {"thread": thread_id, **whose(resource_id)}
        if last is not None:
            values["last"] = last
        return self._last(resource_id is None, last is not None), values

    def page(self, thread_id: str, resource_id: str | None, page: int, per_page: int) -> Query:
        """A page, oldest first."""
        values = {"thread": thread_id, "size": per_page, "skipped": page * per_page}
        return self._page(resource_id is None), values | whose(resource_id)

    def count(self, thread_id: str, resource_id: str | None) -> Query:
        """How many messages the thread has."""
        return self._count(resource_id is None), {"thread": thread_id, **whose(resource_id)}

    def known(self, thread_id: str, ids: Sequence[str]) -> Query:
        """The rows of these ids, and one without an id that has the time of the thread's newest message."""
        return self._known, {"thread": thread_id, "ids": ids}

    def around(self, ids: Sequence[str], resource_id: str | None, before: int, after: int) -> Query:
        """The rows of these ids and so many before and after each, with their place; some doubled.

        Args:
            ids: not more than ``AROUND``.
            resource_id: whose.
            before: how many before each.
            after: how many after each.
        """
        if not before and not after:
            return self._these(resource_id is None), {"ids": ids, **whose(resource_id)}
        named = {f"id_{n}": message_id for n, message_id in enumerate(ids)}
        statement = self._around(resource_id is None, len(named), after > 0)
        return statement, named | {"before": before + 1, "after": after} | whose(resource_id)

    def candidates(self, text: str, resource_id: str | None, thread_id: str | None) -> Select[Any]:
        """Messages that may have the text, the newest first: all its runs of plain letters are in the row."""
        table = self._messages
        found = select(table).where(self.owned(resource_id is None)).params(whose(resource_id))
        if thread_id is not None:
            found = found.where(table.c["thread_id"] == thread_id)
        for run in _RUNS.findall(text):
            found = found.where(table.c["content"].icontains(run, autoescape=True))
        return found.order_by(*self._order(newest_first=True))

    # ------------------------------------------------------------------------------------------------ built once each

    def _build_last(self, unowned: bool, limited: bool) -> Select[Any]:
        newest = self._of_thread(unowned).order_by(*self._order(newest_first=True))
        return newest.limit(bindparam("last", type_=Integer)) if limited else newest

    def _build_page(self, unowned: bool) -> Select[Any]:
        oldest = self._of_thread(unowned).order_by(*self._order())
        return oldest.limit(bindparam("size", type_=Integer)).offset(bindparam("skipped", type_=Integer))

    def _build_count(self, unowned: bool) -> Select[Any]:
        return self._of_thread(unowned).with_only_columns(func.count())

    def _build_known(self) -> Any:
        table, thread = self._messages, bindparam("thread", type_=Text)
        columns = (table.c["id"], table.c["thread_id"], table.c["createdAt"])
        stored = select(*columns).where(table.c["id"].in_(bindparam("ids", type_=Text, expanding=True)))
        newest = select(cast(null(), Text), thread, func.max(table.c["createdAt"], type_=Moment))
        return union_all(stored, newest.where(table.c["thread_id"] == thread))

    def _build_around(self, unowned: bool, ids: int, later: bool) -> Any:
        table = self._messages
        here = tuple_(table.c["createdAt"], self._place)
        place: ColumnElement[Any] = literal_column(str(self._place).replace(table.name, "anchor"))
        anchor = table.alias("anchor")
        parts: list[Any] = []
        for n in range(ids):
            named = anchor.c["id"] == bindparam(f"id_{n}", type_=Text)
            at = select(anchor.c["createdAt"], place).where(named).scalar_subquery()
            home = select(anchor.c["thread_id"]).where(named).scalar_subquery()
            thread = select(table, self._place.label("place"))
            thread = thread.where(table.c["thread_id"] == home, self.owned(unowned))
            older = thread.where(here <= at).order_by(*self._order(newest_first=True))
            parts.append(select(older.limit(bindparam("before", type_=Integer)).subquery()))
            if later:
                newer = thread.where(here > at).order_by(*self._order())
                parts.append(select(newer.limit(bindparam("after", type_=Integer)).subquery()))
        return union_all(*parts)

    def _build_these(self, unowned: bool) -> Select[Any]:
        table = self._messages
        these = table.c["id"].in_(bindparam("ids", type_=Text, expanding=True))
        return select(table, self._place.label("place")).where(these, self.owned(unowned))

    def owned(self, unowned: bool) -> ColumnElement[bool]:
        """Messages of the resource of ``whose``: by their own column, or, without one, by their thread's."""
        own, threads = self._messages.c["resourceId"], self._tables.threads
        resource = bindparam("resource", type_=Text)
        mine = (
            select(threads.c["id"])
            .where(threads.c["id"] == self._messages.c["thread_id"], threads.c["resourceId"] == resource)
            .exists()
        )
        unnamed = and_(own.is_(None), mine)
        return unnamed if unowned else or_(own == resource, unnamed)

    def _of_thread(self, unowned: bool) -> Select[Any]:
        table = self._messages
        return select(table).where(
            table.c["thread_id"] == bindparam("thread", type_=Text), self.owned(unowned)
        )

    def _order(self, *, newest_first: bool = False) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
        time = self._messages.c["createdAt"]
        return (time.desc(), self._place.desc()) if newest_first else (time.asc(), self._place.asc())


def whose(resource_id: str | None) -> dict[str, Any]:
    """The value of :meth:`Reading.owned`."""
    return {"resource": resource_id or NOBODY}
