"""The parent of a program under supervisord: `python -I -S launcher.py [--answers-apart] FOLDER NAME -- COMMAND…`.

supervisord loses how a program ended: it reports -1 for every signal and 0 for one that ended too soon. The
launcher waits for the program and notes in FOLDER/NAME/ when it started, when and how it ended, and what it took.
To both sides it looks as if it were not there: signals are passed on, the process group is the same, and it ends
as the program did. With --answers-apart the standard output, on which a listener of events answers supervisord, is
the program's descriptor 3, and what anybody prints goes to the standard error.

It is run as a file and imports little, because there is one for each program. So it knows nothing of Shiftboss.
"""

import os
import resource
import signal
import sys
import time

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)

MOST_NOTES = 50
"""Notes that a program leaves where nobody takes them."""

CANNOT_BE_RUN = 127
APART = "--answers-apart"


def main(words: "list[str]") -> None:
    """Run the command to its end, then end in the same way."""
    moved = ((os.POSIX_SPAWN_DUP2, 1, 3), (os.POSIX_SPAWN_DUP2, 2, 1)) if words[:1] == [APART] else ()
    words = words[1:] if moved else words
    if len(words) < 4 or words[2] != "--":
        sys.exit(f"usage: launcher.py [{APART}] FOLDER NAME -- COMMAND [WORD…]")
    folder, name, command = os.path.join(words[0], words[1]), words[1], words[3:]
    # What arrives before there is a program waits until there is one.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    note: dict[str, object] = {"program": name, "launcher": os.getpid(), "started": f"{time.time():.3f}"}
    began = time.monotonic()
    try:
        pid = os.posix_spawnp(command[0], command, os.environ, setsigmask=[], file_actions=moved)
    except OSError as problem:
        print(f"launcher: {command[0]} cannot be run: {problem.strerror}", file=sys.stderr, flush=True)
        pid, status, usage = 0, None, resource.getrusage(resource.RUSAGE_CHILDREN)
    file = _place(folder, note)
    if pid:
        note["pid"] = pid
        _write(file + ".running", note)
        for number in PASSED_ON:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        # Once it is reaped its pid may be another's, which no signal of ours must reach.
        for number in PASSED_ON:
            signal.signal(number, signal.SIG_IGN)
        _, status, usage = os.wait4(pid, 0)
    code = CANNOT_BE_RUN if status is None else os.waitstatus_to_exitcode(status)
    note |= {"code": code} if code >= 0 else {"signal": -code}
    note |= {
        "ended": f"{time.time():.3f}",
        "uptime": f"{time.monotonic() - began:.3f}",
        "cpu": f"{usage.ru_utime + usage.ru_stime:.3f}",
        "peak_kb": usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1),
    }
    if _write(file + ".ended", note):
        _remove(file + ".running")
    _end(code)


def _end(code: int) -> None:
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left one, where it was to
        try:
            signal.signal(-code, signal.SIG_DFL)
        except OSError:
            pass  # SIGKILL cannot be otherwise
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
        os.kill(os.getpid(), -code)
        code = 128 - code
    os._exit(code)


def _place(folder: str, note: "dict[str, object]") -> str:
    """Where the notes of this run go; old ones that nobody has taken make room."""
    milliseconds = int(float(str(note["started"])) * 1000)
    try:
        for missing in (os.path.dirname(folder), folder):
            _make(missing)
        for old in sorted(os.listdir(folder))[: -MOST_NOTES + 1]:
            _remove(os.path.join(folder, old))
    except OSError:
        pass  # told when it is written
    return os.path.join(folder, f"{milliseconds}-{os.getpid()}")


def _make(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass  # others begin at the same moment


def _write(file: str, note: "dict[str, object]") -> bool:
    """Write a note whole; a program is not ended for the sake of a note."""
    text = "".join(f"{key}={value}\n" for key, value in note.items())
    try:
        with open(f"{file}.new", "w", encoding="utf-8") as output:
            output.write(text)
        os.replace(f"{file}.new", file)
    except OSError as problem:
        print(f"launcher: {file} cannot be written: {problem.strerror}", file=sys.stderr, flush=True)
        return False
    return True


def _remove(file: str) -> None:
    try:
        os.unlink(file)
    except OSError:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
