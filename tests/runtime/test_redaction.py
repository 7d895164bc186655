"""What handlers tell without thinking, through a real worker to the record, the page and the log."""

import json
import logging
import sys
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from shiftboss.queue.authority import System
from shiftboss.queue.redaction import Redactor
from shiftboss.queue.runtime.logs import FieldFormatter, Hiding
from shiftboss.queue.runtime.secrets import Secrets
from shiftboss.queue.secrets import MASK
from shiftboss.queue.states import State
from shiftboss.queue.store import read
from shiftboss.queue.store.statement import run
from tests.console import scenes
from tests.runtime.leaky import tasks
from tests.runtime.programs import House, attempts, wait_for_state
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("L24")

APPS = "tests.runtime,tests.runtime.leaky"


def tables_that_hold(words: str) -> list[str]:
    """Tables with a row in which these words stand."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'select exists (select from "{table}" t where t::text like %s)', [f"%{words}%"])
            if cursor.fetchone() == (True,):
                found.append(table)
    return found


def test_what_stands_behind_such_a_name_is_neither_in_the_record_nor_on_the_page_nor_in_the_log(
    house: House,
) -> None:
    worker = house.worker(
        apps=APPS,
        REDACTOR="tests.runtime.leaky.tasks.without_names",
        SECRET_PROVIDER="tests.runtime.leaky.tasks.provide",
    )
    job_id, other_id = tasks.leak.enqueue().id, tasks.give_up.enqueue().id
    wait_for_state(job_id, State.QUARANTINED)
    wait_for_state(other_id, State.DISCARDED)
    wait_for(lambda: worker.says("job.failed"), seconds=20)
    browser = Client()
    browser.force_login(scenes.person("kim", role="admin"))
    pages = [browser.get(reverse("shiftboss:job", args=[one])).content.decode() for one in (job_id, other_id)]
    assert worker.stop() == 0

    # All was told, and is there.
    [attempt] = attempts(job_id)
    assert attempt.error_message == f"refused for somebody: {{'password': '{MASK}', 'n': 1}}, {MASK}"
    told = [json.loads(event.data) for event in run(read.events(authority=System(), job_id=int(job_id)))]
    assert {"name": "signed_in", "data": {"token": MASK, "at": {"api_key": [MASK], "user": "somebody"}}} in told
    output = worker.log.read_text()
    for line in (
        "signing in with token=",
        "asked with",
        "asked in a thread with",
        "no answer for",
        "cannot reach",
    ):
        assert line in output
    assert "refused for somebody" in pages[0]
    assert f"password={MASK}" in pages[1]
    # And nothing of what was planted.
    assert tables_that_hold(MASK) != []
    assert tables_that_hold("planted") == []
    assert "planted" not in output
    assert [page for page in pages if "planted" in page] == []


def written(*args: Any, redactor: Redactor | None = None, **more: Any) -> str:
    """A log line as an executor would write it."""
    made = logging.getLogger("x").makeRecord("x", logging.WARNING, __file__, 1, *args, **more)
    assert Hiding(lambda: redactor or Redactor()).filter(made)
    return FieldFormatter().format(made)


class Shown:
    """Something whose text says too much."""

    def __repr__(self) -> str:
        return "Shown(token='hunter2')"


class Mute:
    """Something without a text."""

    def __str__(self) -> str:
        raise ValueError("hunter2")

    __repr__ = __str__


def test_a_log_line_is_hidden_in_its_message_its_fields_and_its_traceback() -> None:
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        caught = sys.exc_info()
    lines = [
        written("token=%s", ("hunter2",), None),
        written("%(token)s is it", ({"token": "hunter2"},), None),
        written({"token": "hunter2"}, (), None),
        written("not %d a number", ("token=hunter2",), None),
        written("%s", (Shown(),), None),
        written("%s", (Mute(),), None),
        written(
            "plain",
            (),
            None,
            extra={"token": "hunter2", "pin": 77001234, "shown": Shown(), "rows": ({"jwt": "hunter2"},)},
        ),
        written("plain", (), None, extra={"mute": Mute()}),
        written("plain", (), caught, sinfo="Stack: token=hunter2"),
    ]
    for line in lines:
        assert MASK in line
        assert "hunter2" not in line
        assert "77001234" not in line
    assert "Traceback" in lines[-1]


def test_a_log_line_without_anything_to_hide_stays_as_it_is() -> None:
    try:
        raise ValueError("n=7")
    except ValueError:
        caught = sys.exc_info()
    rows = ({"n": 1},)
    made = logging.getLogger("x").makeRecord(
        "x", logging.WARNING, __file__, 1, "n=%s", (7,), caught, extra={"rows": rows, "none": None}
    )
    before = dict(made.__dict__)
    assert Hiding(Redactor).filter(made)
    assert made.__dict__ == before


def test_a_value_that_a_run_was_given_is_hidden_in_all_lines_while_the_run_is_there() -> None:
    secrets = Secrets(["key"], provide=lambda name: "hunter2-of-the-run")
    assert "hunter2-of" in written("hunter2-of-the-run", (), None)
    secrets["key"]
    assert written("hunter2-of-the-run", (), None).endswith(MASK)


@pytest.mark.parametrize("value", ["null", "12345", '","n', "hunter2", "true"])
def test_a_result_without_the_values_of_secrets_is_json_still(value: str) -> None:
    secrets = Secrets(["key"], provide=lambda name: value)
    secrets["key"]
    given = {"a": None, "b": True, "n": 12345, "c": f"is {value}", "token": "kept", "id": {"$decimal": "12345"}}
    seen = json.loads(secrets.hidden_in_json(json.dumps(given, separators=(",", ":"))))
    assert seen["c"] == f"is {MASK}"
    assert (seen["a"], seen["b"], seen["token"]) == (None, True, "kept")
    assert (seen["n"], seen["id"]) == ((MASK, MASK) if value == "12345" else (12345, {"$decimal": "12345"}))
