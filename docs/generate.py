"""Prints the pages of `PAGES` from the code: `.venv/bin/python docs/generate.py`.

A test fails where a file and the code say different things.
"""

import json
import os
import runpy
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from importlib.resources import files
from pathlib import Path
from textwrap import fill as wrapped
from typing import Any

import django

from shiftboss.acts import legal
from shiftboss.checks import KNOWN
from shiftboss.conf import Config, Pool, QueueOptions
from shiftboss.console.query import FIELDS, MAX_CHARACTERS, MAX_TERMS
from shiftboss.permissions import NEED_REASON, PERMISSIONS, ROLES, VIEW, VIEW_AUDIT, VIEW_TRACEBACK, Act
from shiftboss.queue.states import FINAL, TRANSITIONS, WAITING, QuarantineReason, State, Verb
from shiftboss.queue.store.search import ROWS, SECONDS

STATES_HEAD = """\
# The states of a job

Printed from `TRANSITIONS` in `shiftboss/queue/states.py` by `docs/generate.py`; do not edit.

A pair of state and verb that is not in the table is refused. *At limit* is the state instead of *to* when
the job has used up its failures or losses; *if cancelled* is the state instead of both when somebody
has asked for the running job's end. Verbs without a tick are part of the state machine but not of this
version: nothing carries them out yet.
"""

SETTINGS_HEAD = """\
# Settings

Printed from `shiftboss/conf.py` by `docs/generate.py`; do not edit.

All settings are keys of one dictionary, `SHIFTBOSS`, in Django's settings. Each is optional. An unknown key
or a value that cannot work is an error of `manage.py check` (`shiftboss.E001`); the text names the key and
the fix. Durations are in seconds, sizes in bytes. `LEASE_SECONDS` must be at least three times
`HEARTBEAT_SECONDS`.

```python
SHIFTBOSS = {
    "LEASE_SECONDS": 60,
    "POOLS": {
        "default": {"queues": ["default", "mail"], "threads": 16},
        "reports": {"queues": ["reports"], "workers": 2, "processes": 2, "threads": 1},
    },
}
```
"""

CHECKS_HEAD = """\
# System checks

Printed from `shiftboss/checks.py` by `docs/generate.py`; do not edit.

`manage.py check`, and Django itself before most commands, finds setups that cannot work (E) or that leave a door
open or a feature out (W). Those marked *deploy* run with `manage.py check --deploy` only. Django's own
deployment checks stand beside them and are not repeated here. A check that does not fit your project is
silenced by its id in `SILENCED_SYSTEM_CHECKS`.
"""

PERMISSIONS_HEAD = """\
# Permissions

Printed from `shiftboss/permissions.py` by `docs/generate.py`; do not edit.

Every act is one permission of Django's, asked for by the console, the [API](api.md) and the command line alike,
and every act leaves an entry in the audit: who, through which door, why, and what it changed. Acts marked *reason*
are not done without one.

Only active **staff accounts** (`is_staff`) may do or see anything at all, superusers included. What they may
beyond that is given by permissions, to a person or to a group:

```sh
manage.py shiftboss_roles          # makes the groups "Shiftboss viewer", "… operator" and "… admin"
manage.py shiftboss_roles --format json
```

Run it again after an upgrade: it gives the groups what has been added, and touches neither their members nor other
apps' permissions in them. Superusers who are staff may do everything. An API token may do what its user may.

Whoever runs `shiftboss` or `manage.py` in a shell holds the database's password, so nothing is refused to them;
the audit names the account of the operating system. With `--as USER` a command is done as a user of the project's,
and with their permissions.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def is_built(verb: Verb) -> bool:
    """Whether the record has a statement for the verb."""
    return files("shiftboss.queue.store").joinpath("sql", f"{verb}.sql").is_file()


def states() -> str:
    """The text of `docs/states.md`."""
    rows = [
        (
            f"`{before}`" if before else "–",
            f"{verb}{' ✓' if is_built(verb) else ''}",
            f"`{rule.to}`",
            f"`{rule.at_limit}`" if rule.at_limit else "",
            f"`{rule.if_cancel_requested}`" if rule.if_cancel_requested else "",
            ", ".join(sorted(rule.by)),
        )
        for (before, verb), rule in TRANSITIONS.items()
    ]
    groups = [
        ("Waiting", _in_order(WAITING)),
        ("Working", "`running`"),
        ("Held back until an operator decides", "`quarantined`"),
        ("Final", _in_order(FINAL)),
    ]
    return "\n".join(
        [
            STATES_HEAD,
            *(f"- {name}: {members}" for name, members in groups),
            "",
            "A new job whose time has not come yet is `scheduled` instead of `available`.",
            "",
            table(("from", "verb", "to", "at limit", "if cancelled", "by"), rows),
            "",
            "A quarantined job names its reason: " + ", ".join(f"`{reason}`" for reason in QuarantineReason) + ".",
            "",
        ]
    )


def _in_order(some: frozenset[State]) -> str:
    return ", ".join(f"`{state}`" for state in State if state in some)


def settings() -> str:
    """The text of `docs/settings.md`."""
    return "\n".join(
        [
            SETTINGS_HEAD,
            table(("key", "default", "meaning"), _settings_of(Config, key=str.upper)),
            "",
            "## Keys of a pool",
            "",
            table(("key", "default", "meaning"), _settings_of(Pool, key=str)),
            "",
            "## Keys of a queue",
            "",
            table(("key", "default", "meaning"), _settings_of(QueueOptions, key=str)),
            "",
        ]
    )


def _settings_of(
    kind: type[Config] | type[Pool] | type[QueueOptions], key: Callable[[str], str]
) -> list[tuple[str, str, str]]:
    return [
        (f"`{key(field.name)}`", _default(field), field.metadata["help"])
        for field in fields(kind)
        if "help" in field.metadata
    ]


def _default(field: Field[Any]) -> str:
    value = field.default if field.default_factory is MISSING else field.default_factory()
    match value:
        case Mapping():
            return "`{" + ", ".join(f'"{name}": {{}}' for name in value) + "}`"
        case tuple():
            return "`[" + ", ".join(f'"{item}"' for item in value) + "]`"
        case str():
            return f'`"{value}"`'
        case float():
            return f"`{value:g}`"
    return f"`{value}`"


def checks() -> str:
    """The text of `docs/checks.md`."""
    rows = [(f"`{one.id}`{' (deploy)' if one.deploy else ''}", one.when, one.hint) for one in KNOWN]
    return "\n".join([CHECKS_HEAD, table(("id", "it speaks when", "what to do"), rows), ""])


def permissions() -> str:
    """The text of `docs/permissions.md`."""
    held = [
        ("*see the console, jobs, queues, workers*", "", VIEW, ""),
        ("*see tracebacks and what handlers have written*", "", VIEW_TRACEBACK, ""),
        ("*see the audit*", "", VIEW_AUDIT, ""),
        *((f"**{act}**", _legal_in(act), PERMISSIONS[act], "reason" if act in NEED_REASON else "") for act in Act),
    ]
    rows = [
        (what, of, f"`{needed}`", reason, *("✓" if needed in role else "" for role in ROLES.values()))
        for what, of, needed, reason in held
    ]
    head = ("act", "jobs that are", "permission", "", *ROLES)
    return "\n".join([PERMISSIONS_HEAD, table(head, rows), ""])


def _legal_in(act: Act) -> str:
    return ", ".join(f"`{state}`" for state in State if act in legal(state))


def openapi() -> str:
    """The text of `docs/openapi.json`."""
    from shiftboss.console.api.mount import schema

    return json.dumps(schema("/api/v1/"), indent=1, ensure_ascii=False) + "\n"


def reference() -> str:
    """The text of `docs/reference.md`."""
    text: str = runpy.run_path(str(Path(__file__).with_name("reference.py")))["text"]()
    return text


def reliability() -> str:
    """The text of `docs/reliability.md`."""
    return _with("reliability.md", {"guarantees": guarantees(), "scenarios": scenarios()})


def console() -> str:
    """The text of `docs/console.md`."""
    return _with("console.md", {"scenarios": _scenarios_of("console")})


def operating() -> str:
    """The text of `docs/operating.md`."""
    return _with("operating.md", {"scenarios": _scenarios_of("programs")})


def _scenarios_of(folder: str) -> str:
    found = tomllib.loads((TESTS / folder / "scenarios.toml").read_text(encoding="utf-8"))["scenario"]
    return table(("what goes wrong", "held by"), [(one["what"], _held_by(one)) for one in found])


def _with(page: str, tables: Mapping[str, str]) -> str:
    """What is written on a page, with the tables that are printed into it."""
    text = Path(__file__).with_name(page).read_text(encoding="utf-8")
    for name, printed in tables.items():
        begin, end = f"<!-- {name}, printed by docs/generate.py -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{printed}\n\n{end}{rest.partition(end)[2]}"
    return text


SEARCH_HEAD = """\
# The search for jobs

Printed from `FIELDS` in `shiftboss/console/query.py` and the limits in `shiftboss/queue/store/search.py` by
`docs/generate.py`; do not edit.

The same language in the console's list of jobs, in `GET jobs?q=` and in `shiftboss jobs list --query`: terms with
spaces between them, all of which must hold.

- A term is `field:value`, a comparison (`>`, `<`, `>=`, `<=`), or a word alone, which is looked for in task and
  error without regard to case. A number alone is an id.
- Of several values with commas between them one is enough: `queue:mail,reports`.
- A minus before a term turns it round: `-task:cleanup`. What a job lacks is then met too.
- A text is met as a whole, but for `error:` and words, which are met anywhere. `*` stands for anything; no other
  sign is a wildcard. Quotes keep spaces and commas together; in them `\\"`, `\\\\` and `\\*` stand for the signs
  themselves.
- A length of time is `250ms`, `30s`, `5m`, `2h`, `1d` or several of them. A time is `2h` (so long ago), `+2h` (to
  come), a day or an ISO time, in UTC where no zone is said.
- `args.NAME` is an argument by its name, `args.0` by its position, more dots lead further in; to search in
  arguments, or to show them as columns, one needs `shiftboss.view_arguments`.
- A query that cannot be read finds nothing; each mistake is pointed at.
"""


def search() -> str:
    """The text of `docs/search.md`."""
    rows = [(f"`{one.example}`", str(one.finds)) for one in FIELDS.values()]
    limits = (
        "By id, by the key of live jobs (but for quarantined ones), by owner, by reason, by backfill, by the job"
        " that was rerun, and in the states running, quarantined, cancelled or discarded alone, jobs are found by"
        " an index. For the rest the search looks at jobs from the newest down (or the oldest up), at most"
        f" {ROWS:,} of them or about {SECONDS * 1000:.0f} ms long; it says how far it came, and goes on from"
        f" there. A query has at most {MAX_TERMS} terms and {MAX_CHARACTERS:,} characters."
    )
    orders = (
        "Newest and oldest first are the orders of the ids, in which jobs are enqueued. By due time scheduled and"
        " retryable jobs can be sorted, and the available jobs of one queue as workers take them (by priority,"
        " then by due time); elsewhere no index gives these orders, and the page says so."
    )
    return (
        f"{SEARCH_HEAD}\n{table(('term', 'finds'), rows)}\n\n## How far is looked\n\n{wrapped(limits, 118)}\n"
        f"\n## Orders\n\n{wrapped(orders, 118)}\n"
    )


TESTS = Path(__file__).resolve().parents[1] / "tests"


def guarantees() -> str:
    """What is broken on purpose, and the test that has to fail."""
    breaks = tomllib.loads((TESTS / "breaks" / "breaks.toml").read_text(encoding="utf-8"))["break"]
    rows = [(one["guarantee"], one["name"], _sentence(one["test"])) for one in breaks]
    return table(("", "broken on purpose", "and noticed by"), rows)


def scenarios() -> str:
    """What goes wrong, area by area, with the tests that hold that it does no harm."""
    areas = tomllib.loads((TESTS / "faults" / "scenarios.toml").read_text(encoding="utf-8"))["area"]
    found = [f"### {area['title']}\n\n{_table_of_scenarios(area['scenario'])}" for area in areas]
    return "\n\n".join(found)


def _table_of_scenarios(some: Iterable[Mapping[str, Any]]) -> str:
    rows = [(one["what"], ", ".join(one["holds"]), _held_by(one)) for one in some]
    return table(("what goes wrong", "", "held by"), rows)


def _held_by(scenario: Mapping[str, Any]) -> str:
    """The tests of a scenario, how they do it, and what is open."""
    held = [_sentence(test) for test in scenario.get("tests", ())]
    note = [f"({scenario['note']})"] if "note" in scenario else []
    open_ = [f"**open:** {scenario['open']}"] if "open" in scenario else []
    return "<br>".join([*held, *note, *open_])


def _sentence(test: str) -> str:
    """A test as what its name says, with a link to where it stands."""
    path, *names = test.split("::")
    return f"[{names[-1].removeprefix('test_').replace('_', ' ')}](../{path})"


PAGES = {
    "reference.md": reference,
    "states.md": states,
    "settings.md": settings,
    "checks.md": checks,
    "permissions.md": permissions,
    "openapi.json": openapi,
    "reliability.md": reliability,
    "search.md": search,
    "console.md": console,
    "operating.md": operating,
}

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shiftboss.site.settings")
    os.environ.setdefault("SHIFTBOSS_SECRET_KEY", "only to print pages")
    django.setup()
    for name, text in PAGES.items():
        Path(__file__).with_name(name).write_text(text(), encoding="utf-8")
