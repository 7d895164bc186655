"""Rolling restarts for programs: the facts of one and its workers, as the API and the command line give them."""

from typing import Any

from shiftboss.queue.store.rolls import RollRow, StepRow


def facts(row: RollRow) -> dict[str, Any]:
    """A roll."""
    return {
        "id": str(row.id),
        "pool": row.pool,
        "state": row.state,
        "why": row.why,
        "workers": row.steps,
        "done": row.done,
        "reason": row.reason,
        "asked_by": row.asked_by,
        "asked_at": row.asked_at,
        "ended_at": row.ended_at,
        "code_wanted": row.code_wanted,
        "code_before": row.code_before or [],
        "code_after": row.code_after or [],
        "silent": row.silent,
        "silent_seconds": row.silent_seconds,
    }


def step_facts(step: StepRow) -> dict[str, Any]:
    """One worker of it."""
    return {
        "number": step.number,
        "host": step.host,
        "program": step.program,
        "pool": step.pool,
        "state": step.state,
        "worker_id": None if step.worker_after is None else str(step.worker_after),
        "code_before": step.code_before,
        "code_after": step.code_after,
        "began_at": step.began_at,
        "moved_at": step.moved_at,
        "why": step.why,
    }
