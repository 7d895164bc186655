"""Who may open each address of the console, and who may act there: written by hand, held against the addresses
themselves in `test_matrix`.

A new address has no line here, and fails the test until somebody has decided who may go there.

    login   is sent to the login
    .       is refused, with a page that names what is missing
    yes     is shown it; where it is an act, may do it

`needs` is the permission that the page of a refusal names; `act` says that a `POST` changes the record.
"""

TABLE = """
address                 anonymous  customer  staff  viewer  operator  admin  needs             act
overview                login      .         .      yes     yes       yes    view_job
jobs                    login      .         .      yes     yes       yes    view_job
list-reveals            login      .         .      .       yes       yes    view_arguments    act
job                     login      .         .      yes     yes       yes    view_job
reinstatements          login      .         .      .       yes       yes    reinstate_job     act
reruns                  login      .         .      .       yes       yes    rerun_job         act
edits                   login      .         .      .       yes       yes    edit_job          act
reveals                 login      .         .      .       yes       yes    view_arguments    act
expeditions             login      .         .      .       yes       yes    expedite_job      act
discards                login      .         .      .       yes       yes    discard_job       act
cancellations           login      .         .      .       yes       yes    cancel_job        act
quarantines             login      .         .      .       yes       yes    quarantine_job    act
reprioritisations       login      .         .      .       yes       yes    reprioritise_job  act
reschedulings           login      .         .      .       yes       yes    reschedule_job    act
many-reinstatements     login      .         .      .       yes       yes    reinstate_job     act
many-reruns             login      .         .      .       yes       yes    rerun_job         act
many-expeditions        login      .         .      .       yes       yes    expedite_job      act
many-discards           login      .         .      .       yes       yes    discard_job       act
many-cancellations      login      .         .      .       yes       yes    cancel_job        act
many-quarantines        login      .         .      .       yes       yes    quarantine_job    act
quarantine              login      .         .      yes     yes       yes    view_job
held-reinstatements     login      .         .      .       yes       yes    reinstate_job     act
held-discards           login      .         .      .       yes       yes    discard_job       act
undoings                login      .         .      .       yes       yes    reinstate_job     act
queues                  login      .         .      yes     yes       yes    view_job
queue                   login      .         .      yes     yes       yes    view_job
queue-cancellations     login      .         .      .       yes       yes    cancel_job        act
pauses                  login      .         .      .       yes       yes    pause_queue       act
resumptions             login      .         .      .       yes       yes    resume_queue      act
limits                  login      .         .      .       yes       yes    limit_queue       act
workers                 login      .         .      yes     yes       yes    view_job
worker                  login      .         .      yes     yes       yes    view_job
worker-drains           login      .         .      .       yes       yes    drain_worker      act
worker-stops            login      .         .      .       .         yes    stop_worker       act
hosts                   login      .         .      yes     yes       yes    view_job
program                 login      .         .      yes     yes       yes    view_job
log                     login      .         .      .       yes       yes    tail_program      act
program-releases        login      .         .      .       yes       yes    release_program   act
program-starts          login      .         .      .       yes       yes    start_program     act
program-restarts        login      .         .      .       yes       yes    restart_program   act
program-drains          login      .         .      .       yes       yes    drain_program     act
program-stops           login      .         .      .       .         yes    stop_program      act
program-kills           login      .         .      .       .         yes    kill_program      act
pool-scales             login      .         .      .       yes       yes    scale_pool        act
command                 login      .         .      yes     yes       yes    view_job
rolls                   login      .         .      yes     yes       yes    view_job
roll-beginnings         login      .         .      .       yes       yes    roll_pool         act
roll                    login      .         .      yes     yes       yes    view_job
roll-cancellations      login      .         .      .       yes       yes    roll_pool         act
backfills               login      .         .      yes     yes       yes    view_job
backfill                login      .         .      yes     yes       yes    view_job
backfill-pauses         login      .         .      .       yes       yes    backfill_task     act
backfill-resumptions    login      .         .      .       yes       yes    backfill_task     act
backfill-retries        login      .         .      .       yes       yes    backfill_task     act
backfill-cancellations  login      .         .      .       yes       yes    backfill_task     act
audit                   login      .         .      .       yes       yes    view_audit
login                   yes        yes       yes    yes     yes       yes    nothing
logout                  yes        yes       yes    yes     yes       yes    nothing
"""
"""Customers are operators of the project's shop who are not staff; staff have no role of Shiftboss's."""

_HEAD, *_LINES = [line.split() for line in TABLE.splitlines() if line.strip()]
PEOPLE = _HEAD[1:7]
RIGHTS: dict[str, dict[str, str]] = {line[0]: dict(zip(PEOPLE, line[1:7], strict=True)) for line in _LINES}
NEEDS: dict[str, str] = {line[0]: line[7] for line in _LINES}
ACTS = {line[0] for line in _LINES if line[8:] == ["act"]}
