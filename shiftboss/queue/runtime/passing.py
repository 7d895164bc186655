"""What a child process writes, passed on to this one's standard error; its last words are kept."""

import codecs
import os
import select
import threading
from contextlib import suppress

from shiftboss.queue.runtime.output import Tail

MAX_TAKEN = 1 << 20


class Passing:
    """A pipe for a child's standard output and error, emptied by a thread until nobody can write to it any more.

    Where this process's own standard error is not read, the child waits, as it would without a pipe between.
    """

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._tail = Tail()
        self._late = b""
        self._over = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """The child has its end of the pipe, or could not be started."""
        os.close(self.writer)
        threading.Thread(target=self._pass_on, name="output", daemon=True).start()

    def forget(self) -> None:
        """What was written so far is of no interest."""
        with self._lock:
            self._late += self._take()
            self._tail = Tail()

    def last_words(self) -> str:
        """The last of what was written since, up to now."""
        with self._lock:
            self._late += self._take()
            return str(self._tail)

    def _pass_on(self) -> None:
        while not self._over:
            select.select([self._reader], [], [])
            with self._lock:
                data, self._late = self._late + self._take(), b""
            with suppress(OSError):
                while data:
                    data = data[os.write(2, data) :]
        os.close(self._reader)

    def _take(self) -> bytes:
        """All that can be read now; under the lock."""
        taken = b""
        while not self._over and len(taken) < MAX_TAKEN:
            try:
                data = os.read(self._reader, 1 << 16)
            except BlockingIOError:
                break
            self._over = not data
            taken += data
        if taken:
            self._tail.add(self._decoder.decode(taken))
        return taken
