"""What the documentation says is what the code says."""

import re
import runpy
from pathlib import Path

import pytest

import shiftboss

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
def test_the_public_names_are_those_that_the_documentation_tells_of():
    text = "\n".join(path.read_text(encoding="utf-8") for path in TEXTS)
    imported = {
        name.strip() for names in re.findall(r"from shiftboss import (.+)", text) for name in names.split(",")
    }
    assert imported <= set(shiftboss.__all__)
    assert [name for name in shiftboss.__all__ if not re.search(rf"`{name}\b|@{name}\b", text)] == []
