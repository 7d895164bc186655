"""A task outside of any app's `tasks` module: workers find it when a job asks for it."""

from shiftboss import task
from tests.logbook import write


@task
def hidden(name: str) -> None:
    """Be run all the same."""
    write("ran", name)
