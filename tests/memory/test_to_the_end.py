"""Work that a cancellation lets end."""

from __future__ import annotations

import asyncio

import pytest

from interlock.memory.to_the_end import cancelled_once, to_the_end

pytestmark = pytest.mark.anyio


class Work:
    """Begins, waits to be let go, and ends."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.failure = failure
        self.done = self.undone = False

    async def __call__(self) -> str:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.undone = True
            raise
        if self.failure:
            raise self.failure
        self.done = True
        return "done"


async def test_work_returns_and_raises_as_if_it_were_awaited() -> None:
    """Without a cancellation there is no difference."""
    work = Work()
    work.go.set()
    assert await to_the_end(work()) == "done"
    failing = Work(KeyError("x"))
    failing.go.set()
    with pytest.raises(KeyError):
        await to_the_end(failing())


async def test_a_cancellation_waits_for_the_work() -> None:
    """R8.2: what was being saved is saved, and then the cancellation is raised."""
    work = Work()
    task = asyncio.create_task(to_the_end(work()))
    await work.begun.wait()
    task.cancel()
    await asyncio.wait([task], timeout=0.01)
    assert not task.done()
    work.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.done


@pytest.mark.parametrize("times", [2, 50])
async def test_cancellations_that_follow_do_not_stop_the_work(times: int) -> None:
    """R8.2: anyio's scopes cancel again in every turn of the loop; the work is done whole all the same."""
    work = Work()
    task = asyncio.create_task(to_the_end(work()))
    await work.begun.wait()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    work.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.done


async def test_work_that_takes_too_long_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is left open: the work is undone before the cancellation is raised, and a log line tells."""
    work = Work()
    task = asyncio.create_task(to_the_end(work(), patience=0.01))
    await work.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.undone
    assert "not saved" in caplog.text


async def test_what_is_stopped_hears_of_it_once_and_cleans_up() -> None:
    """Cleaning up is not cancelled in its turn, and is over when the cancellation is raised."""
    cleaned, begun = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            cleaned.set()

    task = asyncio.create_task(cancelled_once(work()))
    await begun.wait()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    assert task.cancelled()
    assert cleaned.is_set()


async def test_a_failure_behind_a_cancellation_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The cancellation is what is raised; the failure's text stays out of the log."""
    work = Work(ValueError("secret"))
    task = asyncio.create_task(to_the_end(work()))
    await work.begun.wait()
    task.cancel()
    await asyncio.wait([task], timeout=0.01)
    work.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text
