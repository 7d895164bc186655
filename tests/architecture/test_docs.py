"""What the documentation says is what the code says."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = runpy.run_path(str(DOCS / "generate.py"))["PAGES"]
TEXTS = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.requirement("R11")
@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_code_prints(name):
    """When this fails, run `.venv/bin/python docs/generate.py`."""
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name]()


@pytest.mark.requirement("R11")
@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(text):
    targets = [target for target in LINK.findall(text.read_text(encoding="utf-8")) if ":" not in target]
    assert [target for target in targets if not (text.parent / target).exists()] == []
