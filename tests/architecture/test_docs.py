"""What the documentation says is what the code says."""

import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = runpy.run_path(str(DOCS / "generate.py"))["PAGES"]
TEXTS = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
LINK = re.compile(r"""\]\(([^)#\s]+)(?:#[^)]*)?\)|src(?:set)?="([^"]+)\"""")


@pytest.mark.requirement("R11")
@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_code_prints(name):
    """When this fails, run `.venv/bin/python docs/generate.py`."""
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name]()


@pytest.mark.requirement("R11")
@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(text):
    found = ("".join(groups) for groups in LINK.findall(text.read_text(encoding="utf-8")))
    targets = [target for target in found if ":" not in target]
    assert [target for target in targets if not (text.parent / target).exists()] == []


@pytest.mark.requirement("R11")
@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_pages_import_public_names_only(text):
    """The reference holds all of them, which test_public_surface.py sees to."""
    found = re.findall(r"from (shiftboss[\w.]*) import ([\w, ]+)", text.read_text(encoding="utf-8"))
    taken = [(module, name.strip()) for module, names in found for name in names.split(",")]
    public = {"shiftboss", "shiftboss.testing"}
    assert [one for one in taken if one[0] not in public or one[1] not in import_module(one[0]).__all__] == []
