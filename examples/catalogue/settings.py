"""The bundled project with the catalogue in it. Needs `examples/` on the import path."""

import sysconfig
from pathlib import Path

from shiftboss.site.settings import *  # noqa: F403
from shiftboss.site.settings import INSTALLED_APPS, SHIFTBOSS

INSTALLED_APPS = [*INSTALLED_APPS, "catalogue"]
SHIFTBOSS = {**SHIFTBOSS, "POOLS": {"default": {"workers": 2, "processes": 1, "threads": 4}}}

# What `catalogue_scan` walks: files that are broken on purpose, because some Pythons come without their tests and
# so without any broken file, and the standard library of this Python.
CATALOGUE_FOLDERS = [str(Path(__file__).parent / "specimens"), sysconfig.get_paths()["stdlib"]]
# Without its tests a standard library is small; below so many files the installed packages are walked too.
CATALOGUE_ENOUGH_FILES = 1500
CATALOGUE_MORE_FOLDERS = [sysconfig.get_paths()["purelib"]]
CATALOGUE_OVERVIEW_SECONDS = 120
