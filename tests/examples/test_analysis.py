"""The plain functions of the catalogue: what a source file holds, and which files there are."""

import ast
import tokenize
from pathlib import Path

import pytest

import catalogue
from catalogue.analysis import Counts, count, decode
from catalogue.folders import source_files

pytestmark = pytest.mark.requirement("C7")

SPECIMENS = Path(catalogue.__file__).parent / "specimens"

SOURCE = b'''"""A module."""
import os
from sys import path


class Shelf:
    def take(self):
        return os.sep

    async def wait(self):
        return path
'''


def test_a_file_is_counted():
    assert count(SOURCE) == Counts(lines=11, tokens=47, functions=2, classes=1, imports=2)


def test_an_empty_file_counts_nothing_but_its_end():
    counted = count(b"")
    assert (counted.lines, counted.functions, counted.classes, counted.imports) == (0, 0, 0, 0)


def test_a_declared_encoding_and_a_byte_order_mark_are_obeyed():
    assert decode("# coding: latin-1\nx = 'é'\n".encode("latin-1")).endswith("x = 'é'\n")
    assert decode(b"\xef\xbb\xbfx = 1\r\n") == "x = 1\n"


def test_old_escapes_make_no_warning():
    """Warnings are errors here, so that one would fail."""
    assert count(b'PATTERN = "\\d"\nif 1 is 1: pass\n').lines == 2


@pytest.mark.parametrize("specimen", sorted(SPECIMENS.glob("*.py")), ids=lambda path: path.stem)
def test_every_specimen_is_broken_in_a_way_that_the_interpreter_reports(specimen):
    reported = (SyntaxError, UnicodeDecodeError, ValueError, tokenize.TokenError, MemoryError, RecursionError)
    with pytest.raises(reported) as failure:
        count(specimen.read_bytes())
    assert failure.type in reported or issubclass(failure.type, SyntaxError)


def test_the_specimens_are_broken_in_many_ways():
    def error_of(specimen: Path) -> type[BaseException]:
        with pytest.raises(Exception) as failure:  # noqa: PT011  any kind; the kinds are what is asked for
            count(specimen.read_bytes())
        return failure.type

    kinds = {error_of(specimen) for specimen in SPECIMENS.glob("*.py")}
    assert {UnicodeDecodeError, SyntaxError, IndentationError, MemoryError} <= kinds


def test_most_of_a_real_package_is_counted():
    package = Path(ast.__file__).parent / "json"
    counted = [count((package / file.path).read_bytes()) for file in source_files(package)]
    assert sum(c.functions for c in counted) > 20
    assert sum(c.tokens for c in counted) > 3000


def test_only_source_files_of_the_folder_itself_are_found(tmp_path):
    for path in (
        "b.py",
        "a/x.py",
        "a/notes.txt",
        "site-packages/y.py",
        "a/__pycache__/z.py",
        "a/odd.py/in.py",
    ):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x = 1\n")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    found = list(source_files(tmp_path))
    assert [file.path for file in found] == ["b.py", "a/x.py", "a/odd.py/in.py"]
    assert [file.package for file in found] == [".", "a", "a/odd.py"]
    assert {file.size for file in found} == {6}
