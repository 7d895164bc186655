"""The record's own words as people read them. A word that is not listed is shown as it is."""

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from shiftboss.queue.states import QuarantineReason, State

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
    QuarantineReason.POISON: gettext_lazy("its process died each time, while it ran alone"),
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

WORKER_STATES: dict[str, Promise] = {
    "running": pgettext_lazy("state of a worker", "running"),
    "draining": pgettext_lazy("state of a worker", "draining"),
    "stopped": pgettext_lazy("state of a worker", "stopped"),
    "lost": pgettext_lazy("state of a worker", "lost"),
}

EVENTS: dict[str, Promise] = {
    "write_rejected": gettext_lazy("Late write rejected"),
}


def spoken(words: dict[str, Promise], word: str) -> str:
    """The word for people, or the record's own where there is none."""
    return str(words.get(word, word))


def rejection(data: dict[str, object]) -> str:
    """What a rejected write wanted, and what stands instead."""
    text = _("“%(verb)s” under fence %(offered)s was refused; the job holds fence %(held)s and is %(state)s.")
    return text % {
        "verb": data.get("verb"),
        "offered": data.get("fence_offered"),
        "held": data.get("fence_held") if data.get("fence_held") is not None else _("unknown"),
        "state": spoken(STATES, str(data.get("state"))) if data.get("state") else _("gone"),
    }
