"""Rules of the house that neither the linter nor import-linter can hold."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "shiftboss"
COMMANDS = sorted((PACKAGE / "management" / "commands").glob("shiftboss_*.py"))
LONGEST_COMMAND = 25
"""Lines of code in the functions of a management command: a starter, not a program."""


def loaded_by(*modules: str) -> set[str]:
    """The modules that a new interpreter holds after importing these."""
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    told = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd="/", env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    return set(told.stdout.split())


def modules_below(folder: Path) -> list[str]:
    """The dotted names of all modules in a folder, but not of those that start a program when imported."""
    files = [file for file in folder.rglob("*.py") if file.name != "__main__.py"]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return sorted(name.removesuffix(".__init__") for name in names)


def test_importing_shiftboss_imports_no_django() -> None:
    loaded = loaded_by("shiftboss")
    assert "django" not in loaded
    assert "psycopg" not in loaded


@pytest.mark.requirement("N1")
def test_the_runtime_loads_neither_django_nor_the_store() -> None:
    loaded = loaded_by(*modules_below(PACKAGE / "queue" / "runtime"))
    assert "django" not in loaded
    assert "shiftboss.queue.store" not in loaded
    assert "psycopg" not in loaded


@pytest.mark.requirement("L1")
@pytest.mark.parametrize("client", ["shiftboss.queue.clients.local", "shiftboss.queue.maintainer"])
def test_what_a_keeper_and_the_maintainer_load_is_free_of_django(client: str) -> None:
    assert "django" not in loaded_by(client)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda file: file.stem)
def test_a_management_command_only_starts_something(command: Path) -> None:
    functions = [node for node in ast.walk(ast.parse(command.read_text())) if isinstance(node, ast.FunctionDef)]
    lines = sum((node.end_lineno or node.lineno) - node.body[0].lineno for node in functions)
    assert lines <= LONGEST_COMMAND


def test_only_the_store_reads_its_statements() -> None:
    store = PACKAGE / "queue" / "store"
    # The migration names the statements that its indexes are for.
    elsewhere = (store, PACKAGE / "migrations")
    others = [file for file in PACKAGE.rglob("*.py") if not set(elsewhere) & set(file.parents)]
    assert [file.name for file in others if ".sql" in file.read_text() or "sql_text" in file.read_text()] == []


def test_every_statement_is_a_file_and_every_file_a_statement() -> None:
    store = PACKAGE / "queue" / "store"
    named = {
        str(call.args[0].value)
        for file in store.glob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call)
        and getattr(call.func, "id", "") == "Statement"
        and isinstance(call.args[0], ast.Constant)
    }
    assert named == {file.stem for file in (store / "sql").glob("*.sql")}


def test_no_module_has_a_name_that_says_nothing() -> None:
    nothing = {"utils", "util", "helpers", "base", "common", "misc", "manager", "managers"}
    assert [name for name in modules_below(PACKAGE) if name.rpartition(".")[2] in nothing] == []


def test_no_folder_of_ours_hides_a_module_of_the_standard_library() -> None:
    folders = {child.name for child in ROOT.iterdir() if child.is_dir() and (child / "__init__.py").exists()}
    assert not folders & sys.stdlib_module_names
    assert not (ROOT / "tests" / "queue").exists()


def test_no_statement_changes_whose_a_job_is_or_where_it_waits() -> None:
    """So that who may see a job may be asked before it is changed, and holds until it is."""
    assignment = re.compile(r"(?:\bset|,)\s+(queue|owner|id)\s*=[^=]", re.IGNORECASE)
    for file in sorted((PACKAGE / "queue/store/sql").rglob("*.sql")):
        for update in re.findall(r"update shiftboss_job\b.*?\bwhere\b", file.read_text(), re.DOTALL):
            assert not assignment.search(update), file.name
    assert assignment.search("set state = 'x', owner = 'y'")


def test_the_console_and_its_api_read_and_act_in_the_name_of_a_person() -> None:
    """`System()` there would be a way around the scope of who asks; where it stands is said here, and why."""
    expected = {
        "console/whole.py": "what it saw is narrowed where it is asked for",
        "console/revealing.py": "whether the reader's own request was kept",
        "console/conditions.py": "the form of a key, which reads nothing",
        "console/views/audit.py": "whether the reader is narrowed at all",
        "cli/bulk.py": "how many its own operation has changed",
    }
    of_them = [*(PACKAGE / "console").rglob("*.py"), *(PACKAGE / "cli").rglob("*.py")]
    found = {str(file.relative_to(PACKAGE)) for file in of_them if "System()" in file.read_text()}
    assert found == set(expected)
    narrowed = {
        str(file.relative_to(PACKAGE))
        for file in of_them
        if re.search(r"\bwhole\.(whole|looked)\(", file.read_text())
    }
    assert narrowed == {"console/narrowing.py"}
