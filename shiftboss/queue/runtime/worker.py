"""A worker within a program: its own threads over any client and any handlers."""

from collections.abc import Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from threading import RLock
from types import TracebackType

from shiftboss.queue.errors import WorkerEnded
from shiftboss.queue.runtime.ports import Handlers, QueueClient, Wakeups
from shiftboss.queue.runtime.shift import Plan, Shift

STOP_SECONDS = 20.0
START_SECONDS = 30.0


class Worker:
    """Runs jobs in threads of this process, coroutines on an event loop.

    `client` leads to the record, `handlers` to the tasks; `wakeups` spares it the waiting for the next poll.
    `lease_seconds` is that of the client, at least three heartbeats. `prefetch` jobs are leased ahead of free
    threads. Tasks with isolation `process` are left to others, and a handler that does not poll its
    token cannot be ended: a program that needs that runs `manage.py shiftboss_worker`.

    All methods may be called from any thread. As a context manager it starts, and destroys itself at the end.
    """

    def __init__(
        self,
        client: QueueClient,
        handlers: Handlers,
        *,
        wakeups: Wakeups | None = None,
        queues: Sequence[str] = ("default",),
        threads: int = 4,
        prefetch: int = 0,
        lease_seconds: float = 30.0,
        heartbeat_seconds: float = 5.0,
        poll_seconds: float = 1.0,
    ) -> None:
        if not queues or isinstance(queues, str):
            raise ValueError("queues is a list of at least one name")
        if not 1 <= threads <= 1024 or not 0 <= prefetch <= 1024:
            raise ValueError("threads is a whole number from 1 to 1024, prefetch one from 0 to 1024")
        if heartbeat_seconds <= 0 or lease_seconds < 3 * heartbeat_seconds:
            raise ValueError("lease_seconds must be at least three heartbeats")
        if poll_seconds <= 0:
            raise ValueError("poll_seconds must be above 0")
        self._client = client
        self._handlers = handlers
        self._wakeups = wakeups
        self._plan = Plan(
            queues=tuple(queues),
            threads=threads,
            prefetch=prefetch,
            lease_seconds=lease_seconds,
            heartbeat_seconds=heartbeat_seconds,
            poll_seconds=poll_seconds,
        )
        self._turn = RLock()
        self._shift: Shift | None = None
        self._stopped = True
        self._paused = False
        self._ended = False

    @property
    def count(self) -> int:
        """Jobs in hand: leased and waiting for a thread, running, or about to be reported."""
        return self._shift.count if self._shift is not None else 0

    @property
    def active(self) -> int:
        """Jobs whose handlers run now."""
        return self._shift.active if self._shift is not None and not self._shift.over else 0

    @property
    def paused(self) -> bool:
        """Whether it claims nothing until `resume`."""
        return self._paused

    @property
    def stopped(self) -> bool:
        """Whether it claims nothing until `start`, if it may start at all: it was stopped, or a person has ordered
        it to drain or to stop. Runs may outlive that; see `active`.
        """
        return self._stopped or (self._shift is not None and self._shift.stopping)

    def start(self) -> None:
        """Begin to work; nothing happens where it does already. Returns once it is known to the record.

        Raises what the client raises where it cannot work there, TimeoutError where the record does not answer,
        WorkerEnded after `abort` or `destroy`, or while a run of before `stop` has not ended.
        """
        with self._turn:
            if self._ended:
                raise WorkerEnded("this worker was aborted or destroyed: make a new one")
            if not self.stopped:
                return
            if self._shift is not None and not self._shift.over:
                raise WorkerEnded("a run of before has not ended yet: wait for it with stop()")
            shift = Shift(client=self._client, wakeups=self._wakeups, handlers=self._handlers, plan=self._plan)
            shift.paused = self._paused
            self._shift = shift
            shift.start()
            try:
                shift.opened.result(START_SECONDS)
            except FutureTimeout:
                shift.stop()
                raise TimeoutError(f"the record has not answered within {START_SECONDS:g} s") from None
            self._stopped = False

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """Stop: claim no more, give back what has not begun, set the tokens of the others (cause `shutdown`), and
        wait at most so long until they have ended and the record knows. What ends because of its token is given
        back too.

        False where a run has not ended in time. It keeps its lease and its thread, is heartbeaten until it ends,
        and reported then; nobody else runs it meanwhile. It may be started again afterwards.
        """
        with self._turn:
            self._stopped = True
            shift = self._shift
        if shift is None:
            return True
        shift.stop()
        return shift.wait(seconds)

    def pause(self) -> None:
        """Claim no more until `resume`; what is in hand goes on."""
        self._set_paused(True)

    def resume(self) -> None:
        """Claim again after `pause`."""
        self._set_paused(False)

    def _set_paused(self, paused: bool) -> None:
        with self._turn:
            self._paused = paused
            if self._shift is not None:
                self._shift.set_paused(paused)

    def clear(self) -> None:
        """Give back what is leased and has not begun, unharmed; what runs goes on.

        Unless it is paused, it may claim the same jobs again.
        """
        if (shift := self._shift) is not None:
            shift.clear()

    def drain(self, seconds: float | None = None) -> bool:
        """Work until the queues hold nothing that it could run and nothing is in hand; it goes on working then.

        Jobs that are due later are not waited for. False where that has not come in time, or where it was stopped
        meanwhile; a worker that is paused never gets there.
        """
        with self._turn:
            shift = None if self.stopped else self._shift
        if shift is None:
            return False
        answer = shift.drained()
        try:
            return answer.result(seconds)
        except FutureTimeout:
            return False

    def abort(self) -> None:
        """Stop at once, for good, and wait for nothing: as `stop(0)`, and it never starts again."""
        with self._turn:
            self._ended = True
        self.stop(0)

    def destroy(self, seconds: float = STOP_SECONDS) -> bool:
        """`abort`, and wait at most so long until all its threads have ended. Again and again without harm.

        False where a run has not ended in time; it keeps its lease and its thread until it does.
        """
        self.abort()
        return self.stop(seconds)

    def __enter__(self) -> "Worker":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()
