"""One kind of harm each. Those that can be repeated log their attempts as `tests.faults.audit` reads them."""

import time
from typing import Any

from shiftboss import task
from tests.faults.witness.tasks import witnessed
from tests.runtime.tasks import write


@task(takes_context=True)
def listen_at_first(context: Any) -> None:
    """In the first attempt wait to be asked to end, however long that takes."""
    with witnessed(context):
        while context.fence == 1 and context.cancelled is None:
            time.sleep(0.01)
        if context.cancelled is not None:
            write(f"heard-{context.cancelled}", f"{context.job_id}.{context.fence}")
