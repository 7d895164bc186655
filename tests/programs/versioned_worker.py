"""A worker of plain functions for a supervisord, of the code version that a file says.

    python -P -m tests.programs.versioned_worker CONFIG VERSION

The version `broken` cannot be imported.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

from shiftboss.queue.runtime.config import KeeperConfig


def main(config: str, version: str) -> None:
    """Become the keeper."""
    code_version = Path(version).read_text()
    if code_version == "broken":
        sys.exit("ImportError: no module named shop")
    told = replace(KeeperConfig.from_json(Path(config).read_text()), code_version=code_version)
    reader, writer = os.pipe()
    os.write(writer, told.to_json().encode())
    os.close(writer)
    os.set_inheritable(reader, True)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "shiftboss.queue.runtime", str(reader)])


if __name__ == "__main__":
    main(*sys.argv[1:])
