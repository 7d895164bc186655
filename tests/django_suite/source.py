"""The tests in Django's source distribution of the installed version, fetched once and kept by pytest's cache."""

import subprocess
import sys
import tarfile
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import django

VERSION = django.get_version()
PACKAGE = "djangos_tests_of_tasks"


class NotFetched(Exception):
    """The source distribution cannot be had; the text says why."""


def tests_of_tasks(cache: Path) -> Path:
    """The folder `tests/tasks` of the installed Django, in a folder of its version. Raises NotFetched."""
    kept = cache / VERSION
    if not kept.is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _unpack(_download(Path(folder)), into=Path(folder) / "tests")
            (Path(folder) / "tests").rename(kept)
    return kept


def _download(folder: Path) -> Path:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--no-deps",
        "--no-binary",
        "django",
    ]
    done = subprocess.run(
        # The environment has setuptools, so that pip need not fetch a second one to look at the archive.
        [*pip, "--no-build-isolation", "--dest", str(folder), f"django=={VERSION}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotFetched((done.stderr.strip() or "pip failed").splitlines()[-1])
    [archive] = folder.glob("*.tar.gz")
    return archive


def _unpack(archive: Path, *, into: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            _, *rest = Path(member.name).parts
            if rest[:2] == ["tests", "tasks"] and member.isfile():
                member.name = str(Path(*rest[2:]))
                tar.extract(member, into, filter="data")


def load(folder: Path, module: str) -> ModuleType:
    """A module of the folder, which is a package of its own name here: others are called `tasks` too."""
    if PACKAGE not in sys.modules:
        _execute(PACKAGE, folder / "__init__.py", search=[str(folder)])
    name = f"{PACKAGE}.{module}"
    return sys.modules.get(name) or _execute(name, folder / f"{module}.py")


def _execute(name: str, path: Path, search: list[str] | None = None) -> ModuleType:
    spec = spec_from_file_location(name, path, submodule_search_locations=search)
    assert spec
    assert spec.loader
    sys.modules[name] = made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
