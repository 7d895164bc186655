"""One break: what is broken, by which test it has to be noticed, and whether it is."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BREAKS = Path(__file__).with_name("breaks.toml")
TRIAL_SECONDS = 240.0
"""A test that does not notice within this time does not notice."""

PASSES = "its test passes"

NO_CODE = re.compile(
    r"\b(SyntaxError|IndentationError|ImportError|UndefinedColumn|UndefinedTable|AmbiguousColumn)\b"
)
"""What is told where a replacement is no code at all: that is no break, for any test would notice it."""

NOT_INHERITED = ("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "SHIFTBOSS_TEST_DATABASE_URL", "PYTEST_ADDOPTS")
"""Each trial has its own settings, and a server of its own."""

IGNORED = shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "bench", "staticfiles")


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Break:
    """The text `old` of a file becomes `new`, and `test` has to fail. `name` says what is lost."""

    guarantee: str
    name: str
    file: str
    old: str
    new: str
    test: str

    def misfit(self, root: Path) -> str | None:
        """Why it cannot be done to the source as it is; None where it can."""
        path = root / self.file
        if not path.is_file():
            return f"there is no file {self.file}"
        text = path.read_text(encoding="utf-8")
        if (found := text.count(self.old)) != 1:
            return f"its text stands {found} times in {self.file}, and not once"
        if path.suffix == ".py":
            try:
                ast.parse(text.replace(self.old, self.new))
            except SyntaxError as error:
                return f"broken, {self.file} is no Python: {error}"
        return None if exists(self.test, root) else f"there is no test {self.test}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a trial came to: `noticed` by the test, or why not."""

    noticed: bool
    why: str


def breaks(file: Path = BREAKS) -> list[Break]:
    """All breaks, in the order of the file."""
    return [Break(**one) for one in tomllib.loads(file.read_text(encoding="utf-8"))["break"]]


def exists(test: str, root: Path) -> bool:
    """Whether pytest would find this test, `path::function` or `path::Class::method`, by the names it goes by."""
    path, *names = test.split("::")
    file = root / path
    if not (file.is_file() and file.name.startswith("test_") and names and names[-1].startswith("test")):
        return False
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for name in names:
        found = [one for one in body if isinstance(one, DEFINITIONS) and one.name == name]
        if len(found) != 1:
            return False
        body = found[0].body
    return isinstance(found[0], FUNCTIONS)


class Copy:
    """A copy of the source in which things may be broken. Nothing is ever written to the source itself."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.root = folder
        shutil.copytree(source, folder, ignore=IGNORED)

    def passes(self, tests: Sequence[str], *, processes: int) -> Finding:
        """Run tests on the copy as it is; `noticed` where one fails."""
        shared = ["-n", str(processes)] if processes > 1 else []
        return self._run([*shared, *tests], seconds=TRIAL_SECONDS * len(tests))

    def try_break(self, one: Break) -> Finding:
        """Break it, run its test, and mend it."""
        if (misfit := one.misfit(self.root)) is not None:
            return Finding(False, misfit)
        path = self.root / one.file
        text = path.read_text(encoding="utf-8")
        self._write(path, text.replace(one.old, one.new))
        try:
            return self._run(["-x", one.test], seconds=TRIAL_SECONDS)
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # Within one second, and with the same length, what was compiled before would still count as new.
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()

    def _run(self, arguments: Sequence[str], *, seconds: float) -> Finding:
        report = self.root / "report.xml"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
        environment = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
        environment["PYTHONPATH"] = str(self.root)
        process = subprocess.Popen(
            command, cwd=self.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            return Finding(False, f"its test had not noticed after {seconds:g} s")
        if process.returncode == 0:
            return Finding(False, PASSES)
        if process.returncode != 1 or not report.is_file():
            return Finding(False, f"its test did not run:\n{output[-3000:]}")
        return _judged(report)


def _end(process: "subprocess.Popen[str]") -> None:
    """End a run of tests; it is given the time to end what it has started."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _judged(report: Path) -> Finding:
    cases = ElementTree.parse(report).getroot().iter("testcase")
    failures = [(case, failure) for case in cases for kind in ("failure", "error") for failure in case.iter(kind)]
    told = [(failure.get("message") or "") + (failure.text or "") for _, failure in failures]
    if no_code := [text for text in told if NO_CODE.search(text)]:
        return Finding(False, f"what it makes is no code:\n{no_code[0][-1000:]}")
    names = ", ".join(sorted({f"{case.get('classname')}::{case.get('name')}" for case, _ in failures}))
    return Finding(True, f"{names}: {told[0].strip().splitlines()[0][:150] if told and told[0].strip() else ''}")
