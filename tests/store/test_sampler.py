"""The sampler of the maintainer: each of its duties once, over connections of its own."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.sampler import Sampler
from shiftboss.queue.store import histograms, samples
from shiftboss.queue.store.samples import Part
from shiftboss.queue.store.statement import Verb, run
from tests.store.making import SYSTEM, a_worker, address, enqueued, scalar

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B8", "B9")]


def once(*duties: Callable[[Sampler], Awaitable[None]]) -> None:
    """Do these duties, one after the other."""

    async def do() -> None:
        sampler = Sampler(address())
        try:
            for duty in duties:
                await duty(sampler)
        finally:
            await sampler.close()

    asyncio.run(do())


def test_all_duties_together_see_the_whole() -> None:
    a_worker()
    enqueued()
    once(Sampler.look, Sampler.look_long, Sampler.write_histograms, Sampler.summarize, Sampler.mark)
    seen = run(samples.samples(authority=SYSTEM))
    assert set(seen) == {*map(str, Part), histograms.PART, samples.PAUSES, samples.HOSTS, samples.HOLDS}
    assert seen[Part.COUNTS].seen[0][:3] == ["default", "available", 1]
    assert scalar("select count(*) from shiftboss_mark") == 1


def test_every_duty_has_its_loop() -> None:
    assert len(Sampler(address()).loops()) == 5


def test_a_look_that_was_cut_off_is_not_tried_again_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[Part] = []

    def look(part: Part, **_: object) -> Verb[bool]:
        tried.append(part)
        raise StoreUnavailable("canceling statement due to statement timeout")
        yield

    monkeypatch.setattr(samples, "look", look)
    monkeypatch.setattr(samples, "REST", 1e9)

    async def refused(sampler: Sampler) -> None:
        with pytest.raises(StoreUnavailable):
            await sampler.look_long()

    with caplog.at_level(logging.CRITICAL):
        once(refused, refused, refused, refused, Sampler.look_long)
    assert tried == list(samples.HEAVY)
