"""An app whose programs find the disk of their logs full: whatever they say from now on cannot be written."""

import os

_full = os.open("/dev/full", os.O_WRONLY)
for _fd in (1, 2):
    os.dup2(_full, _fd)
os.close(_full)
