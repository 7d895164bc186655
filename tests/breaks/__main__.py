"""Does a test notice each break? `make check-tests`

    python -m tests.breaks [--list] [GUARANTEE…]

Every break of `breaks.toml` is done to a copy of the source, one at a time; the one test that it names has to fail
then, and to pass without it. What survives, or no longer fits the source, is listed, and the exit code is 1.
"""

import argparse
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.breaks.trial import PASSES, Break, Copy, Finding, breaks

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Try what was asked for; 0 where all of it is noticed."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="only name the breaks")
    parser.add_argument("guarantees", nargs="*", help="only these, as G4")
    options = parser.parse_args(argv)
    chosen = [one for one in breaks() if not options.guarantees or one.guarantee in options.guarantees]
    if options.list:
        print(*[f"{one.guarantee}: {one.name}" for one in chosen], sep="\n")
        return 0
    return try_all(chosen, source=ROOT)


def try_all(chosen: Sequence[Break], *, source: Path, processes: int = PROCESSES) -> int:
    """Try these breaks on copies of a source, and tell of each."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="shiftboss-breaks-") as folder:
        copies = [Copy(source, Path(folder) / str(number)) for number in range(processes)]
        tests = sorted({one.test for one in chosen if one.misfit(source) is None})
        if tests:
            green = copies[0].passes(tests, processes=processes)
            if green.why != PASSES:
                print(f"the tests have to be green first: {green.why}")
                return 1
            print(
                f"{len(tests)} tests are green on the source as it is, {time.monotonic() - began:.0f} s",
                flush=True,
            )
        findings = _try(chosen, copies)
    survivors = [(one, finding) for one, finding in zip(chosen, findings, strict=True) if not finding.noticed]
    print(f"\n{len(chosen)} breaks, {time.monotonic() - began:.0f} s, {len(survivors)} not noticed")
    for one, finding in survivors:
        print(f"  {one.guarantee}: {one.name}\n    {finding.why}")
    return bool(survivors)


def _try(chosen: Sequence[Break], copies: Sequence[Copy]) -> list[Finding]:
    """Share the breaks among the copies."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(chosen)):
        waiting.put(number)
    findings: dict[int, Finding] = {}

    def work(copy: Copy) -> None:
        while True:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            try:
                finding = copy.try_break(chosen[number])
            except Exception as error:
                finding = Finding(False, f"the trial itself failed: {error!r}")
            findings[number] = finding
            one, seconds = chosen[number], time.monotonic() - began
            word = "" if finding.noticed else "NOT NOTICED "
            line = f"{len(findings)}/{len(chosen)} {word}{one.guarantee}: {one.name}"
            print(f"{line}\n    {finding.why.partition(chr(10))[0]}, {seconds:.1f} s", flush=True)

    threads = [threading.Thread(target=work, args=[copy]) for copy in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [findings[number] for number in range(len(chosen))]


if __name__ == "__main__":
    sys.exit(main())
