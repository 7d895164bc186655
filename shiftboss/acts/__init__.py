"""What people do. Each act is a permission, a reason, an entry of the audit and a verb, in one transaction.

Console, API and command line call only these. Staff act as `System`, after the check; the person is recorded.
"""

from shiftboss.acts.backfills import cancel_backfill as cancel_backfill
from shiftboss.acts.backfills import pause_backfill as pause_backfill
from shiftboss.acts.backfills import resume_backfill as resume_backfill
from shiftboss.acts.backfills import retry_backfill as retry_backfill
from shiftboss.acts.history import purge as purge
from shiftboss.acts.jobs import Revision as Revision
from shiftboss.acts.jobs import cancel as cancel
from shiftboss.acts.jobs import discard as discard
from shiftboss.acts.jobs import edit as edit
from shiftboss.acts.jobs import expedite as expedite
from shiftboss.acts.jobs import legal as legal
from shiftboss.acts.jobs import quarantine as quarantine
from shiftboss.acts.jobs import reinstate as reinstate
from shiftboss.acts.jobs import reprioritise as reprioritise
from shiftboss.acts.jobs import rerun as rerun
from shiftboss.acts.jobs import reschedule as reschedule
from shiftboss.acts.jobs import reveal as reveal
from shiftboss.acts.jobs import reveal_in_lists as reveal_in_lists
from shiftboss.acts.many import Sweep as Sweep
from shiftboss.acts.many import Swept as Swept
from shiftboss.acts.many import cancel_matching as cancel_matching
from shiftboss.acts.many import cancellation as cancellation
from shiftboss.acts.many import discard_matching as discard_matching
from shiftboss.acts.many import reinstate_matching as reinstate_matching
from shiftboss.acts.many import sweep as sweep
from shiftboss.acts.named import MOST as MOST
from shiftboss.acts.named import ON_MANY as ON_MANY
from shiftboss.acts.named import Many as Many
from shiftboss.acts.named import on_many as on_many
from shiftboss.acts.performing import LARGEST_ID as LARGEST_ID
from shiftboss.acts.performing import MAX_REASON_LENGTH as MAX_REASON_LENGTH
from shiftboss.acts.performing import MAX_REQUEST_LENGTH as MAX_REQUEST_LENGTH
from shiftboss.acts.performing import Acted as Acted
from shiftboss.acts.performing import Deed as Deed
from shiftboss.acts.performing import perform as perform
from shiftboss.acts.programs import drain_program as drain_program
from shiftboss.acts.programs import release_program as release_program
from shiftboss.acts.programs import restart_program as restart_program
from shiftboss.acts.programs import scale_pool as scale_pool
from shiftboss.acts.programs import start_program as start_program
from shiftboss.acts.programs import stop_program as stop_program
from shiftboss.acts.programs import tail_program as tail_program
from shiftboss.acts.queues import LimitWord as LimitWord
from shiftboss.acts.queues import limit as limit
from shiftboss.acts.queues import pause as pause
from shiftboss.acts.queues import resume as resume
from shiftboss.acts.undoing import UNDO_SECONDS as UNDO_SECONDS
from shiftboss.acts.undoing import UNDOES as UNDOES
from shiftboss.acts.undoing import undo as undo
from shiftboss.acts.undoing import undone_by as undone_by
from shiftboss.acts.workers import drain_worker as drain_worker
from shiftboss.acts.workers import stop_worker as stop_worker
