"""Handlers that tell what they should not: each text that is to be seen nowhere holds `planted`."""

import logging
import threading
from typing import Any

from shiftboss import task

log = logging.getLogger("leaky")


def provide(name: str, *, job_id: int, task: str) -> str:
    """As a project's own function."""
    return "planted-by-hand"


def without_names(text: str) -> str:
    """As a project's own function."""
    return text.replace("bob", "somebody")


@task(takes_context=True, max_attempts=1, secrets=["key"])
def leak(context: Any) -> None:
    """Tell all of it, in every way."""
    given = context.secrets["key"].reveal()
    context.event("signed_in", token="planted-1", at={"api_key": ["planted-2"], "user": "bob"})
    context.event("asked password=planted-3", url="https://bob:planted-4@host/", seen=given)
    context.progress({"line": "Authorization: Bearer planted-5", "token": "planted-6", "n": 1})
    log.warning("signing in with token=%s", "planted-7", extra={"password": "planted-8"})
    log.warning("asked with %s", given)
    thread = threading.Thread(
        target=log.warning, args=("asked in a thread with %s",), kwargs={"extra": {"it": given}}
    )
    thread.start()
    thread.join()
    try:
        raise ConnectionError("cannot reach https://bob:planted-9@host/")
    except ConnectionError:
        log.exception("no answer for %(secret)s", {"secret": "planted-10"})
        raise ValueError(f"refused for bob: {{'password': 'planted-11', 'n': 1}}, {given}") from None


@task(takes_context=True)
def give_up(context: Any) -> None:
    """Discard the job, with a reason that says too much."""
    context.discard("refused: password=planted-12")
