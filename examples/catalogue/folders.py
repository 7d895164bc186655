"""Finding source files."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# Installed packages are not the folder's own code.
LEFT_OUT = frozenset({"site-packages", "dist-packages", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Found:
    """A source file as the folder shows it; `path` is relative, with forward slashes."""

    path: str
    size: int
    mtime_ns: int

    @property
    def package(self) -> str:
        """The path's own folder, '.' at the top."""
        return str(PurePosixPath(self.path).parent)


def source_files(folder: Path) -> Iterator[Found]:
    """All `*.py` files below a folder, in a stable order, without installed packages.

    A file that vanishes meanwhile, is no regular file, or whose name is not UTF-8 is left out.
    """
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        for name in sorted(names):
            if name.endswith(".py") and (found := _look_at(folder, Path(parent, name))):
                yield found


def _look_at(folder: Path, file: Path) -> Found | None:
    path = file.relative_to(folder).as_posix()
    try:
        path.encode()
        status = file.stat()
    except (OSError, UnicodeEncodeError):
        return None
    if not file.is_file():
        return None
    return Found(path=path, size=status.st_size, mtime_ns=status.st_mtime_ns)
