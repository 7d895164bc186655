"""The keeper's notebook: what handlers tell, until the record holds it.

A page for each lease that has told something. Pages are written in batches; the notes of a page in order, and the
run's outcome after them: it is handed on to be reported once nothing is left on the page.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shiftboss.queue.contract import Lease, Note, NoteKind, Settlement
from shiftboss.queue.outcomes import Outcome
from shiftboss.queue.runtime.budget import Budget
from shiftboss.queue.runtime.holdings import Held, Holdings
from shiftboss.queue.runtime.notes import DROPPED
from shiftboss.queue.runtime.ports import QueueClient

log = logging.getLogger("shiftboss.notebook")

MAX_BATCH = 1000
MAX_BATCH_CHARACTERS = 8 * 1024 * 1024
MAX_EVENTS = 10_000
"""Of all jobs; while so many wait, those that come are counted, and the count is told in their place."""

BUSY_SECONDS = 0.2

Answer = Callable[[str], None]


@dataclass(slots=True)
class _Page:
    """What is still to be written under one lease: the first `writing` of the notes are under way."""

    held: Held
    notes: list[tuple[Note | None, Answer | None]] = field(default_factory=list)
    writing: int = 0
    dropped: int = 0
    outcome: Outcome | None = None

    @property
    def lease(self) -> Lease:
        """Whose notes these are."""
        return self.held.lease

    @property
    def waits(self) -> bool:
        """Whether there is something to write now."""
        return bool(self.notes or self.dropped) and not self.writing


class Notebook:
    """`run_once()` writes one batch. `report(held, outcome)` is called for each outcome whose turn has come.

    While the record cannot be written `trouble` is set: checkpoints wait, of each job's progress the last word
    waits, and events wait in a bounded number. Only what the record refuses for its own sake is given up.
    """

    def __init__(
        self, client: QueueClient, holdings: Holdings, *, report: Callable[[Held, Outcome], None]
    ) -> None:
        self.trouble = False
        self._client = client
        self._holdings = holdings
        self._report = report
        self._pages: dict[Lease, _Page] = {}
        self._busy: set[Lease] = set()
        self._budget = Budget(MAX_BATCH, MAX_BATCH_CHARACTERS)
        self._some = asyncio.Event()
        self._events = 0

    @property
    def pending(self) -> int:
        """Outcomes that wait for the notes before them."""
        return sum(page.outcome is not None for page in self._pages.values())

    def add(self, held: Held, note: Note, answer: Answer | None = None) -> None:
        """Take a note. `answer`, where given, is told "ok" once it is durable, "lost" or "refused" where not."""
        if (page := self._pages.get(held.lease)) is None:
            page = self._pages[held.lease] = _Page(held)
        if note.kind is NoteKind.EVENT:
            if self._events >= MAX_EVENTS:
                page.dropped += 1
                return
            self._events += 1
        elif note.kind is NoteKind.PROGRESS:
            waiting = page.notes[page.writing :]
            page.notes[page.writing :] = [item for item in waiting if _kind(item[0]) is not NoteKind.PROGRESS]
        page.notes.append((note, answer))
        self._some.set()

    def after(self, held: Held, answer: Answer) -> None:
        """Answer once all that was told under this lease so far is settled."""
        if (page := self._pages.get(held.lease)) is None:
            answer("ok")
        else:
            page.notes.append((None, answer))
            self._some.set()

    def end(self, held: Held, outcome: Outcome) -> None:
        """The run has ended: reported at once, or after what it has told."""
        if not self._pages or (page := self._pages.get(held.lease)) is None:
            self._report(held, outcome)
        else:
            page.outcome = outcome
            self._some.set()

    def forget(self, held: Held) -> None:
        """The lease is over: what has not been written is not written."""
        if (page := self._pages.pop(held.lease, None)) is not None:
            self._answer(page, len(page.notes), "lost")

    def give_up(self) -> None:
        """There is no more time: hand on the outcomes that wait, without the notes before them."""
        for lease, page in list(self._pages.items()):
            if page.outcome is not None:
                del self._pages[lease]
                self._answer(page, len(page.notes), "lost")
                self._report(page.held, page.outcome)

    async def run_once(self) -> bool:
        """Wait for notes and write a batch; what could not be written stays. Raises what the record raises."""
        await self._some.wait()
        self._some.clear()
        self._busy.clear()
        batch = self._take()
        try:
            if batch:
                await self._write(batch)
        finally:
            for page in batch:
                page.writing = 0
            self._turn_pages()
        return True

    def _take(self) -> list[_Page]:
        """Pages whose notes are to be written now, bounded in number and in size."""
        batch: list[_Page] = []
        number = characters = 0
        for page in [page for page in self._pages.values() if page.waits]:
            if number >= self._budget.rows or (batch and characters >= self._budget.characters):
                break
            if page.held.lost or self._holdings.get(page.lease) is None:
                # Nothing is submitted after the lease is lost.
                self._answer(page, len(page.notes), "lost")
                page.dropped = 0
                continue
            if page.dropped:
                told = Note(NoteKind.EVENT, f'{{"dropped":{page.dropped}}}', DROPPED)
                page.notes.append((told, None))
                page.dropped, self._events = 0, self._events + 1
            page.writing = min(len(page.notes), self._budget.rows - number)
            batch.append(page)
            number += page.writing
            characters += sum(len(note.data) for note, _ in page.notes[: page.writing] if note is not None)
        return batch

    async def _write(self, batch: Sequence[_Page]) -> None:
        items = [
            (page.lease, note) for page in batch for note, _ in page.notes[: page.writing] if note is not None
        ]
        try:
            settlement = await self._client.note(items) if items else Settlement()
        except Exception:
            self.trouble = True
            self._budget.failed()
            raise
        self.trouble = False
        self._budget.passed()
        for page in batch:
            told = {"job": page.lease.job_id, "fence": page.lease.fence}
            if page.lease in settlement.busy:
                continue
            if page.lease in settlement.lost:
                log.warning("notes.rejected", extra=told)
                self._answer(page, page.writing, "lost")
            elif page.lease in settlement.refused:
                log.warning("notes.refused", extra=told)
                self._answer(page, page.writing, "refused")
            else:
                self._answer(page, page.writing, "ok")
        self._busy |= settlement.busy
        if settlement.busy:
            asyncio.get_running_loop().call_later(BUSY_SECONDS, self._some.set)

    def _answer(self, page: _Page, number: int, word: str) -> None:
        """The first so many notes of a page are dealt with."""
        done, page.notes = page.notes[:number], page.notes[number:]
        page.writing = max(0, page.writing - number)
        for note, answer in done:
            self._events -= _kind(note) is NoteKind.EVENT
            if answer is not None:
                answer(word)

    def _turn_pages(self) -> None:
        """Hand on the outcomes behind pages on which nothing is left."""
        for lease, page in list(self._pages.items()):
            if page.notes or page.dropped:
                continue
            del self._pages[lease]
            if page.outcome is not None:
                self._report(page.held, page.outcome)
        if self._pages.keys() - self._busy:
            self._some.set()


def _kind(note: Note | None) -> NoteKind | None:
    return note.kind if note is not None else None
