"""Who may do what: written by hand, and held against every door in `test_rights`.

A new act has no line here, and fails the test until somebody has decided who may do it.
"""

from shiftboss.permissions import Act

TABLE = """
                stranger  customer  staff  viewer  operator  admin  superuser  inactive  revoked  token
see the jobs    .         .         .      yes     yes       yes    yes        .         .        yes
see tracebacks  .         .         .      .       yes       yes    yes        .         .        yes
see the audit   .         .         .      .       yes       yes    yes        .         .        yes
cancel          .         .         .      .       yes       yes    yes        .         .        yes
expedite        .         .         .      .       yes       yes    yes        .         .        yes
rerun           .         .         .      .       yes       yes    yes        .         .        yes
reinstate       .         .         .      .       yes       yes    yes        .         .        yes
discard         .         .         .      .       yes       yes    yes        .         .        yes
quarantine      .         .         .      .       yes       yes    yes        .         .        yes
reprioritise    .         .         .      .       yes       yes    yes        .         .        yes
reschedule      .         .         .      .       yes       yes    yes        .         .        yes
edit            .         .         .      .       yes       yes    yes        .         .        yes
reveal          .         .         .      .       yes       yes    yes        .         .        yes
pause           .         .         .      .       yes       yes    yes        .         .        yes
resume          .         .         .      .       yes       yes    yes        .         .        yes
limit           .         .         .      .       yes       yes    yes        .         .        yes
pause_backfill  .         .         .      .       yes       yes    yes        .         .        yes
resume_backfill .         .         .      .       yes       yes    yes        .         .        yes
retry_backfill  .         .         .      .       yes       yes    yes        .         .        yes
cancel_backfill .         .         .      .       yes       yes    yes        .         .        yes
purge           .         .         .      .       .         yes    yes        .         .        .
drain_worker    .         .         .      .       yes       yes    yes        .         .        yes
stop_worker     .         .         .      .       .         yes    yes        .         .        .
start_program   .         .         .      .       yes       yes    yes        .         .        yes
drain_program   .         .         .      .       yes       yes    yes        .         .        yes
stop_program    .         .         .      .       .         yes    yes        .         .        .
kill_program    .         .         .      .       .         yes    yes        .         .        .
restart_program .         .         .      .       yes       yes    yes        .         .        yes
release_program .         .         .      .       yes       yes    yes        .         .        yes
tail_program    .         .         .      .       yes       yes    yes        .         .        yes
scale_pool      .         .         .      .       yes       yes    yes        .         .        yes
roll_pool       .         .         .      .       yes       yes    yes        .         .        yes
cancel_roll     .         .         .      .       yes       yes    yes        .         .        yes
create_token    .         .         .      .       .         yes    yes        .         .        .
revoke_token    .         .         .      .       .         yes    yes        .         .        .
"""
"""Strangers are not logged in. Customers are operators who are not staff; staff have no role; the inactive one is
an operator; the tokens are an operator's, one of them revoked."""

SEE_JOBS = "see the jobs"
SEE_TRACEBACKS = "see tracebacks"
SEE_AUDIT = "see the audit"
LOOKS = (SEE_JOBS, SEE_TRACEBACKS, SEE_AUDIT)

ROLLS = frozenset({Act.ROLL_POOL, Act.CANCEL_ROLL})
"""Rolling restarts, which are of all hosts."""

ON_HOSTS = frozenset(act for act in Act if act.endswith(("_program", "_pool"))) - ROLLS
"""The acts on the programs of hosts."""

ABSENT: dict[str, set[str]] = {
    "console": {Act.PURGE, Act.CREATE_TOKEN, Act.REVOKE_TOKEN},
    "api": {Act.PURGE, Act.CREATE_TOKEN, Act.REVOKE_TOKEN},
    "cli": {Act.CREATE_TOKEN, Act.REVOKE_TOKEN},
    "many": {*LOOKS, *Act} - {Act.CANCEL, Act.EXPEDITE, Act.RERUN, Act.REINSTATE, Act.DISCARD, Act.QUARANTINE},
    "code": set(LOOKS),
}
"""What cannot be done through a door at all. Tokens are made and revoked by a command of the shell's own. `many`:
the API's acts on many jobs."""

_HEAD, *_LINES = [line for line in TABLE.splitlines() if line.strip()]
PEOPLE = _HEAD.split()
_START = _HEAD.index(PEOPLE[0])
RIGHTS: dict[str, dict[str, bool]] = {
    line[:_START].strip(): {
        person: mark == "yes" for person, mark in zip(PEOPLE, line[_START:].split(), strict=True)
    }
    for line in _LINES
}
