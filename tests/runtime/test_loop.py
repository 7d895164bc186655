"""The one Loop: when it runs what is looped again."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.runtime import loop
from shiftboss.queue.runtime.loop import Loop

LONG = 600.0


def looped(run_once: Callable[[int], Awaitable[bool | None]], *, hint: asyncio.Event, times: int) -> None:
    """Loop with a long wait, until it has run so often."""

    async def main() -> None:
        stop, runs = asyncio.Event(), 0

        async def once() -> bool | None:
            nonlocal runs
            runs += 1
            if runs == times:
                stop.set()
            return await run_once(runs)

        await asyncio.wait_for(Loop("test", once, every_seconds=LONG, hint=hint).run(stop), 20)
        assert runs == times

    asyncio.run(main())


def test_where_there_is_more_to_do_it_is_done_at_once() -> None:
    async def more(runs: int) -> bool:
        return runs < 3

    looped(more, hint=asyncio.Event(), times=3)


def test_a_hint_ends_the_wait_also_one_that_comes_meanwhile_and_counts_once() -> None:
    hint = asyncio.Event()

    async def hinted(runs: int) -> None:
        if runs == 1:
            asyncio.get_running_loop().call_later(0.01, hint.set)
        elif runs == 2:
            hint.set()

    looped(hinted, hint=hint, times=3)
    assert not hint.is_set()


def test_after_an_error_no_hint_shortens_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LONGEST_PAUSE_SECONDS", LONG)
    hint = asyncio.Event()

    async def fails(runs: int) -> None:
        hint.set()
        raise StoreUnavailable("away")

    async def main() -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(Loop("test", lambda: fails(1), every_seconds=LONG, hint=hint).run(stop))
        done, _ = await asyncio.wait([running], timeout=0.05)
        assert not done
        assert hint.is_set()
        stop.set()
        await asyncio.wait_for(running, 20)

    asyncio.run(main())
