"""The tests under fault again and again, in another order each time, beside processes that want the whole machine.

    python -m tests.faults.again [--times 20] [--hogs 1] [--seed N] [PYTEST ARGUMENT…]      make faults TIMES=20

Prints the seed of each pass, and how long it took. Ends with exit status 1 at the first pass that fails, with what
pytest said; `--times 1 --seed N` repeats its order.
"""

import argparse
import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = "tests/faults"
FROM_ITS_END = 20_000
"""Characters of what pytest said that are shown where a pass fails."""


def main() -> int:
    """0 where all passes passed."""
    parser = argparse.ArgumentParser(
        description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--hogs", type=int, default=1, help="processes that do nothing but keep a core busy")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10**6), help="of the first pass; the next has one more"
    )
    given, to_pytest = parser.parse_known_args()
    with hogs(given.hogs):
        for number in range(given.times):
            seed, began = given.seed + number, time.monotonic()
            passed = one_pass(seed, to_pytest or [TESTS])
            last = passed.stdout.strip().rpartition("\n")[2]
            print(f"{number + 1}/{given.times}  seed {seed}  {time.monotonic() - began:.0f} s  {last}", flush=True)
            if passed.returncode:
                print(passed.stdout[-FROM_ITS_END:])
                return 1
    return 0


def one_pass(seed: int, to_pytest: list[str]) -> subprocess.CompletedProcess[str]:
    """All of the tests in the order that this seed gives."""
    shuffled = ["-p", "randomly", "--randomly-seed", str(seed)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", *shuffled, *to_pytest],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


@contextmanager
def hogs(number: int) -> Iterator[None]:
    """So many busy cores for the length of the block."""
    spawned = multiprocessing.get_context("spawn")
    running = [spawned.Process(target=spin, daemon=True) for _ in range(number)]
    for one in running:
        one.start()
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.join()


def spin() -> None:
    """Keep a core busy."""
    while True:
        pass


if __name__ == "__main__":
    sys.exit(main())
