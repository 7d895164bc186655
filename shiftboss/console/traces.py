"""A traceback laid out for reading: the application's own frames stand out from those of libraries."""

import re
from dataclasses import dataclass, field

_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]*)", line (?P<line>\d+)(?:, in (?P<name>.*))?$')
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/shiftboss/queue/", "<frozen ")
_STANDARD = re.compile(r"/lib/python3\.\d+[a-z]*/")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together: a frame with its source, or text between frames."""

    lines: list[str] = field(default_factory=list)
    is_frame: bool = False
    is_own: bool = False

    @property
    def text(self) -> str:
        """The lines as they were."""
        return "\n".join(self.lines)


def blocks(traceback: str) -> list[Block]:
    """The traceback's frames and the text between them, in order; nothing is left out."""
    found: list[Block] = []
    for line in traceback.rstrip("\n").split("\n"):
        frame = _FRAME.match(line)
        if frame:
            found.append(Block([line], is_frame=True, is_own=_is_own(frame["file"])))
        elif found and _continues(found[-1], line):
            found[-1].lines.append(line)
        else:
            found.append(Block([line]))
    return found


def _continues(block: Block, line: str) -> bool:
    # A frame's source, its markers and "[Previous line repeated …]" stand deeper than its own line does.
    return line.startswith(("    ", "  [Previous")) if block.is_frame else True


def _is_own(file: str) -> bool:
    return not (any(part in file for part in _LIBRARIES) or _STANDARD.search(file))
