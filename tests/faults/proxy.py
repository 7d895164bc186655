"""A road between workers and PostgreSQL that a test can break: latency, reset, half-open, blackhole, lost answers.

It listens on a port of the loopback and knows each connection by its `application_name`, and each statement by
the verb in its first line (`-- complete: …`). Data that vanishes is acknowledged by this machine's kernel all the
same: only who waits for an answer can notice.
"""

import asyncio
import itertools
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from psycopg.conninfo import conninfo_to_dict, make_conninfo

T = TypeVar("T")
CHUNK = 65536
PARSE, BIND, QUERY, READY = b"P"[0], b"B"[0], b"Q"[0], b"Z"[0]
STARTUP = 196608
RST = struct.pack("ii", 1, 0)


class Frames:
    """Cuts a stream of PostgreSQL's messages; the client's begins with some that have no type."""

    def __init__(self, *, typed: bool) -> None:
        self._typed = typed
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[tuple[int | None, bytes]]:
        """Whole messages: type and body."""
        self._buffer += data
        while True:
            head = 1 if self._typed else 0
            if len(self._buffer) < head + 4:
                return
            [length] = struct.unpack_from("!I", self._buffer, head)
            if len(self._buffer) < head + length:
                return
            body = self._buffer[head + 4 : head + length]
            kind = self._buffer[0] if self._typed else None
            self._buffer = self._buffer[head + length :]
            if not self._typed:
                self._typed = struct.unpack_from("!I", body)[0] == STARTUP
            yield kind, body


class Link:
    """One connection: who it is, and what becomes of its bytes."""

    def __init__(self, number: int, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.number = number
        self.name = ""
        self.client, self.server = client, server
        self.vanishes = {"to server": False, "to client": False}
        self.loses = False
        self._asked = Frames(typed=False)
        self._answered: Frames | None = None
        self._named: dict[bytes, str] = {}

    def verbs(self, data: bytes) -> list[str]:
        """The verbs of the statements that the client asks for by these bytes."""
        found = []
        for kind, body in self._asked.feed(data):
            if kind is None:
                words = body[4:].split(b"\0")
                self.name = dict(zip(words[::2], words[1::2], strict=False)).get(b"application_name", b"").decode()
            elif kind == PARSE:
                name, text, _ = body.split(b"\0", 2)
                self._named[name] = _verb(text)
            elif kind == BIND:
                found.append(self._named.get(body.split(b"\0", 2)[1], ""))
            elif kind == QUERY:
                found.append(_verb(body))
        return found

    def lose_the_answer(self) -> None:
        """What the server answers next is not passed on, and then the connection is reset."""
        self.loses, self._answered = True, Frames(typed=True)

    def has_answered(self, data: bytes) -> bool:
        """Whether the answer that is to be lost is at its end: it has been committed."""
        assert self._answered is not None
        return any(kind == READY for kind, _ in self._answered.feed(data))

    def reset(self) -> None:
        """Both sides learn at once."""
        for side in (self.client, self.server):
            opened = side.get_extra_info("socket")
            if opened.fileno() >= 0 and opened.family != socket.AF_UNIX:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
            side.transport.abort()


def _verb(text: bytes) -> str:
    """`complete` of `-- complete: …`; else the first word."""
    line = text.decode("utf-8", "replace").strip("\0 \n").partition("\n")[0].removeprefix("-- ")
    return line.partition(":")[0].partition(" ")[0]


class Proxy:
    """The road. Its methods may be called from any thread; `which` is a part of the names of those meant."""

    def __init__(self, dsn: str) -> None:
        self._server = conninfo_to_dict(dsn)
        self._loop = asyncio.new_event_loop()
        self._links: set[Link] = set()
        self._numbers = itertools.count(1)
        self._losing: Counter[str] = Counter()
        self._held = ""
        self._holds = False
        self._lifted = asyncio.Event()
        self._latency = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self.lost: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.port = 0
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def dsn(self) -> str:
        """The address of the same database by this road."""
        return make_conninfo(**{**self._server, "host": "127.0.0.1", "port": self.port, "sslmode": "disable"})

    @contextmanager
    def open(self) -> Iterator["Proxy"]:
        """Listen for the length of the block."""
        self._thread.start()
        try:
            listening = asyncio.run_coroutine_threadsafe(
                asyncio.start_server(self._accept, "127.0.0.1", 0), self._loop
            ).result(20)
            self.port = listening.sockets[0].getsockname()[1]
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._end(listening), self._loop).result(20)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(20)
            self._loop.close()

    async def _end(self, listening: asyncio.Server) -> None:
        listening.close()
        self._holds = False
        self._lifted.set()
        for link in self._links:
            link.reset()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _do(self, act: Callable[[], T]) -> T:
        async def done() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(20)

    # -- faults --------------------------------------------------------------------------------------------

    def leads_to(self, dsn: str) -> None:
        """New connections go to another server."""
        self._do(lambda: setattr(self, "_server", conninfo_to_dict(dsn)))

    def delay(self, seconds: float) -> None:
        """Each piece of data takes so much longer, both ways."""
        self._do(lambda: setattr(self, "_latency", seconds))

    def reset(self, which: str = "") -> int:
        """Reset connections; answers how many."""
        return self._do(lambda: len([link.reset() for link in self._of(which)]))

    def half_open(self, which: str = "", *, direction: str = "to client") -> int:
        """From now on, what goes in this direction on present connections vanishes; new ones are well."""

        def vanish() -> int:
            links = self._of(which)
            for link in links:
                link.vanishes[direction] = True
            return len(links)

        return self._do(vanish)

    def blackhole(self, which: str = "") -> None:
        """Nothing passes any more, on new connections neither; all stay."""

        def hold() -> None:
            self._lifted = asyncio.Event()
            self._held, self._holds = which, True

        self._do(hold)

    def lift(self) -> None:
        """End of the blackhole; what it has held goes on its way."""

        def let_go() -> None:
            self._holds = False
            self._lifted.set()

        self._do(let_go)

    def lose_answer(self, verb: str, times: int = 1) -> None:
        """Let the next statement of this verb be committed, lose the answer and reset the connection."""
        self._do(lambda: self._losing.update({verb: times}))

    def open_links(self, which: str = "") -> set[int]:
        """The connections that are open, each by a number of its own."""
        return self._do(lambda: {link.number for link in self._of(which)})

    def _of(self, which: str) -> list[Link]:
        return [link for link in self._links if which in link.name]

    # -- traffic -------------------------------------------------------------------------------------------

    async def _accept(self, client_reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self._tasks.add(me)
        link: Link | None = None
        try:
            server_reader, server = await self._dial()
            link = Link(next(self._numbers), client, server)
            self._links.add(link)
            await asyncio.wait(
                [
                    asyncio.ensure_future(self._carry(link, client_reader, server, "to server")),
                    asyncio.ensure_future(self._carry(link, server_reader, client, "to client")),
                ],
                return_when=asyncio.ALL_COMPLETED,
            )
        except OSError:
            client.transport.abort()
        finally:
            if link is not None:
                self._links.discard(link)
                link.reset()
            self._tasks.discard(me)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._server.get("host", "127.0.0.1")), str(self._server.get("port", 5432))
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))

    async def _carry(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: str
    ) -> None:
        me: Any = asyncio.current_task()
        self._tasks.add(me)
        try:
            while data := await reader.read(CHUNK):
                if direction == "to server":
                    for verb in link.verbs(data):
                        self.asked[verb] += 1
                        if self._losing[verb] > 0:
                            self._losing[verb] -= 1
                            self.lost[verb] += 1
                            link.lose_the_answer()
                elif link.loses:
                    if link.has_answered(data):
                        link.reset()
                        return
                    continue
                await self._passes(link)
                if self._latency:
                    await asyncio.sleep(self._latency)
                if not link.vanishes[direction]:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        finally:
            await self._passes(link)
            self._tasks.discard(me)
            if not link.vanishes[direction]:
                writer.close()  # the end of one side is told to the other

    async def _passes(self, link: Link) -> None:
        while self._holds and self._held in link.name:
            await self._lifted.wait()
