"""The record's own words as people read them. A word that is not listed is shown as it is."""

from collections.abc import Collection

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from shiftboss.console.text import stored, visible
from shiftboss.permissions import Act, Via
from shiftboss.queue.authority import Scoped, Staff
from shiftboss.queue.jobs import Kind, RetryKind
from shiftboss.queue.states import QuarantineReason, State
from shiftboss.queue.store.backfill import Standing

STATES: dict[str, Promise] = {
    State.SCHEDULED: pgettext_lazy("state of a job", "scheduled"),
    State.AVAILABLE: pgettext_lazy("state of a job", "available"),
    State.RETRYABLE: pgettext_lazy("state of a job", "retryable"),
    State.RUNNING: pgettext_lazy("state of a job", "running"),
    State.QUARANTINED: pgettext_lazy("state of a job", "quarantined"),
    State.COMPLETED: pgettext_lazy("state of a job", "completed"),
    State.CANCELLED: pgettext_lazy("state of a job", "cancelled"),
    State.DISCARDED: pgettext_lazy("state of a job", "discarded"),
}

MEANINGS: dict[str, Promise] = {
    State.SCHEDULED: gettext_lazy("Waits for its time."),
    State.AVAILABLE: gettext_lazy("Due now, waits for a free worker."),
    State.RETRYABLE: gettext_lazy("Failed or was lost; waits for its next attempt."),
    State.RUNNING: gettext_lazy("A worker holds its lease."),
    State.QUARANTINED: gettext_lazy("Held back from running again; waits for a person."),
    State.COMPLETED: gettext_lazy("Done."),
    State.CANCELLED: gettext_lazy("Ended on request."),
    State.DISCARDED: gettext_lazy("Given up for good."),
}

REASONS: dict[str, Promise] = {
    QuarantineReason.FAILURES_EXHAUSTED: gettext_lazy("it failed as often as it may"),
    QuarantineReason.LOSSES_EXHAUSTED: gettext_lazy("its worker was lost as often as it may be"),
    QuarantineReason.POISON: gettext_lazy("its process or its worker died each time, and through no other job"),
    QuarantineReason.DELIVERIES_EXHAUSTED: gettext_lazy("it was delivered as often as it may be"),
    QuarantineReason.UNKNOWN_TASK: gettext_lazy("no live worker knows its task"),
    QuarantineReason.INVALID_ARGUMENTS: gettext_lazy("its arguments do not fit its task"),
    QuarantineReason.OPERATOR: gettext_lazy("an operator holds it back"),
}

OUTCOMES: dict[str, Promise] = {
    "failed": pgettext_lazy("outcome of an attempt", "failed"),
    "lost": pgettext_lazy("outcome of an attempt", "lost"),
    "released": pgettext_lazy("outcome of an attempt", "released"),
    "snoozed": pgettext_lazy("outcome of an attempt", "snoozed"),
    "discarded": pgettext_lazy("outcome of an attempt", "discarded"),
    "cancelled": pgettext_lazy("outcome of an attempt", "cancelled"),
    "quarantined": pgettext_lazy("outcome of an attempt", "quarantined"),
}

CAUSES: dict[str, Promise] = {
    "user": gettext_lazy("on request"),
    "timeout": gettext_lazy("its time was up"),
    "deadline": gettext_lazy("its deadline passed"),
    "superseded": gettext_lazy("a newer job with its key took its place"),
    "shutdown": gettext_lazy("its worker shut down"),
}

ACTS: dict[str, Promise] = {
    Act.CANCEL: pgettext_lazy("act", "Cancel"),
    Act.EXPEDITE: pgettext_lazy("act", "Expedite"),
    Act.RERUN: pgettext_lazy("act", "Rerun"),
    Act.REINSTATE: pgettext_lazy("act", "Reinstate"),
    Act.DISCARD: pgettext_lazy("act", "Discard"),
    Act.QUARANTINE: pgettext_lazy("act", "Quarantine"),
    Act.REPRIORITISE: pgettext_lazy("act", "Change priority"),
    Act.RESCHEDULE: pgettext_lazy("act", "Reschedule"),
    Act.EDIT: pgettext_lazy("act", "Edit and rerun"),
    Act.REVEAL: pgettext_lazy("act", "Reveal arguments"),
    Act.PAUSE: pgettext_lazy("act", "Pause"),
    Act.RESUME: pgettext_lazy("act", "Resume"),
    Act.LIMIT: pgettext_lazy("act", "Limit"),
    Act.PURGE: pgettext_lazy("act", "Purge"),
    Act.PAUSE_BACKFILL: pgettext_lazy("act", "Pause backfill"),
    Act.RESUME_BACKFILL: pgettext_lazy("act", "Resume backfill"),
    Act.RETRY_BACKFILL: pgettext_lazy("act", "Retry backfill"),
    Act.CANCEL_BACKFILL: pgettext_lazy("act", "Cancel backfill"),
    Act.DRAIN_WORKER: pgettext_lazy("act", "Drain worker"),
    Act.STOP_WORKER: pgettext_lazy("act", "Stop worker"),
    Act.START_PROGRAM: pgettext_lazy("act", "Start program"),
    Act.DRAIN_PROGRAM: pgettext_lazy("act", "Drain program"),
    Act.STOP_PROGRAM: pgettext_lazy("act", "Stop program"),
    Act.KILL_PROGRAM: pgettext_lazy("act", "Kill program"),
    Act.RESTART_PROGRAM: pgettext_lazy("act", "Restart program"),
    Act.RELEASE_PROGRAM: pgettext_lazy("act", "Release program"),
    Act.TAIL_PROGRAM: pgettext_lazy("act", "Show log"),
    Act.SCALE_POOL: pgettext_lazy("act", "Scale pool"),
    Act.ROLL_POOL: pgettext_lazy("act", "Rolling restart"),
    Act.CANCEL_ROLL: pgettext_lazy("act", "Cancel rolling restart"),
    Act.CREATE_TOKEN: pgettext_lazy("act", "Create token"),
    Act.REVOKE_TOKEN: pgettext_lazy("act", "Revoke token"),
}

BACKFILL_STATES: dict[str, Promise] = {
    Standing.RUNNING: pgettext_lazy("state of a backfill", "running"),
    Standing.PAUSED: pgettext_lazy("state of a backfill", "paused"),
    Standing.FINISHED: pgettext_lazy("state of a backfill", "finished"),
}

OF_ITEMS: dict[str, Promise] = {
    "waiting": pgettext_lazy("state of an item", "waiting"),
    "live": pgettext_lazy("state of an item", "live"),
    "quarantined": pgettext_lazy("state of an item", "quarantined"),
    "completed": pgettext_lazy("state of an item", "completed"),
    "cancelled": pgettext_lazy("state of an item", "cancelled"),
    "discarded": pgettext_lazy("state of an item", "discarded"),
}

BACKFILL_BUTTONS: dict[str, Promise] = {
    Act.PAUSE_BACKFILL: pgettext_lazy("act", "Pause"),
    Act.RESUME_BACKFILL: pgettext_lazy("act", "Resume"),
    Act.RETRY_BACKFILL: pgettext_lazy("act", "Retry what failed"),
    Act.CANCEL_BACKFILL: pgettext_lazy("act", "Cancel"),
}

PROGRAM_BUTTONS: dict[str, Promise] = {
    Act.START_PROGRAM: pgettext_lazy("act", "Start"),
    Act.RESTART_PROGRAM: pgettext_lazy("act", "Restart"),
    Act.RELEASE_PROGRAM: pgettext_lazy("act", "Release"),
    Act.DRAIN_PROGRAM: pgettext_lazy("act", "Drain"),
    Act.STOP_PROGRAM: pgettext_lazy("act", "Stop"),
    Act.KILL_PROGRAM: pgettext_lazy("act", "Kill"),
    Act.TAIL_PROGRAM: pgettext_lazy("act", "Log"),
    Act.SCALE_POOL: pgettext_lazy("act", "Scale"),
}

KINDS: dict[str, Promise] = {
    Kind.RERUN: pgettext_lazy("kind of a job", "rerun"),
    Kind.BACKFILL: pgettext_lazy("kind of a job", "backfill"),
}

RETRY_KINDS: dict[str, Promise] = {
    RetryKind.INFRASTRUCTURE: gettext_lazy("infrastructure retry: worker lost"),
    RetryKind.FAILURE: gettext_lazy("failure retry"),
}

PARTS: dict[str, Promise] = {
    "traceback": pgettext_lazy("part of an attempt", "traceback"),
    "output": pgettext_lazy("part of an attempt", "output"),
    "not_storable": pgettext_lazy("part of an attempt", "evidence that could not be stored as it was"),
    "evidence": pgettext_lazy("part of an attempt", "evidence"),
}

QUEUE_STATES: dict[str, Promise] = {
    "running": pgettext_lazy("state of a job", "running"),
    "paused": pgettext_lazy("state of a queue", "paused"),
}

LIMITS: dict[str, Promise] = {
    "unlimited": pgettext_lazy("limit of a queue", "no limit"),
    "sequential": pgettext_lazy("limit of a queue", "one at a time in strict order"),
}

VIAS: dict[str, Promise] = {
    Via.CONSOLE: pgettext_lazy("through which an act came", "console"),
    Via.API: pgettext_lazy("through which an act came", "API"),
    Via.CLI: pgettext_lazy("through which an act came", "command line"),
    Via.CODE: pgettext_lazy("through which an act came", "code"),
}

WORKER_STATES: dict[str, Promise] = {
    "running": pgettext_lazy("state of a worker", "running"),
    "draining": pgettext_lazy("state of a worker", "draining"),
    "stopping": pgettext_lazy("state of a worker", "stopping"),
    "stopped": pgettext_lazy("state of a worker", "stopped"),
    "late": pgettext_lazy("state of a worker", "late"),
    "lost": pgettext_lazy("state of a worker", "lost"),
}

PROGRAM_STATES: dict[str, Promise] = {
    "RUNNING": pgettext_lazy("state of a program", "running"),
    "STARTING": pgettext_lazy("state of a program", "starting"),
    "BACKOFF": pgettext_lazy("state of a program", "ended too soon, starts again"),
    "STOPPING": pgettext_lazy("state of a program", "stopping"),
    "STOPPED": pgettext_lazy("state of a program", "stopped"),
    "EXITED": pgettext_lazy("state of a program", "ended"),
    "FATAL": pgettext_lazy("state of a program", "does not start"),
    "UNKNOWN": pgettext_lazy("state of a program", "unknown"),
}
"""The words of supervisord."""

COMMAND_STATES: dict[str, Promise] = {
    "waiting": pgettext_lazy("state of a command", "waiting"),
    "claimed": pgettext_lazy("state of a command", "under way"),
    "done": pgettext_lazy("state of a command", "done"),
    "failed": pgettext_lazy("state of a command", "failed"),
    "expired": pgettext_lazy("state of a command", "not taken in time"),
    "lost": pgettext_lazy("state of a command", "nobody knows"),
}

ROLL_STATES: dict[str, Promise] = {
    "running": pgettext_lazy("state of a rolling restart", "under way"),
    "done": pgettext_lazy("state of a rolling restart", "done"),
    "stopped": pgettext_lazy("state of a rolling restart", "stopped"),
    "cancelled": pgettext_lazy("state of a rolling restart", "cancelled"),
}

STEP_STATES: dict[str, Promise] = {
    "waiting": pgettext_lazy("turn of a worker", "waiting"),
    "draining": pgettext_lazy("turn of a worker", "finishes what it runs"),
    "starting": pgettext_lazy("turn of a worker", "starting"),
    "proving": pgettext_lazy("turn of a worker", "runs, and is to live and claim"),
    "done": pgettext_lazy("turn of a worker", "done"),
    "failed": pgettext_lazy("turn of a worker", "does not come up"),
}

EVENTS: dict[str, Promise] = {
    "expedite": gettext_lazy("Expedited"),
    "reinstate": gettext_lazy("Reinstated"),
    "quarantine": gettext_lazy("Held back"),
    "reprioritise": gettext_lazy("Priority changed"),
    "reschedule": gettext_lazy("Rescheduled"),
    "write_rejected": gettext_lazy("Late write rejected"),
}

TOLD: dict[str, Promise] = {"events_dropped": gettext_lazy("More events than are kept")}
"""Events that a handler's own words lead to."""


def spoken(words: dict[str, Promise], word: str) -> str:
    """The word for people, or the record's own where there is none."""
    return str(words.get(word, word))


def limit(word: str) -> str:
    """The limit of a queue, from `acts.limit`'s word for it."""
    return str(LIMITS[word]) if word in LIMITS else _("%(n)s at once") % {"n": word}


def event(kind: str, data: dict[str, object]) -> str | None:
    """An event in a sentence, or None where there is none for its kind."""
    if kind == "write_rejected":
        return rejection(data)
    if "by" not in data:
        return None
    said = _("by %(by)s, while %(state)s") % {"by": data["by"], "state": spoken(STATES, str(data.get("from")))}
    if "priority" in data:
        return f"{said}: {data.get('priority_before')} → {data['priority']}"
    if "due_at" in data:
        return f"{said}: {stored(data.get('due_before'))} → {stored(data['due_at'])}"
    return said


def rejection(data: dict[str, object]) -> str:
    """What a rejected write wanted, and what stands instead."""
    text = _("“%(verb)s” under fence %(offered)s was refused; the job holds fence %(held)s and is %(state)s.")
    return text % {
        "verb": data.get("verb"),
        "offered": data.get("fence_offered"),
        "held": data.get("fence_held") if data.get("fence_held") is not None else _("unknown"),
        "state": spoken(STATES, str(data.get("state"))) if data.get("state") else _("gone"),
    }


def scope(authority: Staff) -> str:
    """What somebody is narrowed to, as a sentence; nothing where they are not."""
    if not isinstance(authority, Scoped):
        return ""
    queues, owners = (_listed(names) for names in (authority.queues, authority.owners))
    if authority.owners is None:
        return _("You see the queues %(queues)s") % {"queues": queues}
    if authority.queues is None:
        return _("You see the jobs of %(owners)s") % {"owners": owners}
    return _("You see the jobs of %(owners)s in the queues %(queues)s") % {"owners": owners, "queues": queues}


NAMES_SHOWN = 5


def _listed(names: Collection[str] | None) -> str:
    shown = sorted(names or ())
    if not shown:
        return _("(none)")
    listed = ", ".join(map(visible, shown[:NAMES_SHOWN]))
    if (more := len(shown) - NAMES_SHOWN) <= 0:
        return listed
    return _("%(names)s and %(n)s more") % {"names": listed, "n": more}
