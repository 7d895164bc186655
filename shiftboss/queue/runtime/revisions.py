"""What a keeper knows of the configurations that its jobs were enqueued with."""

from collections.abc import Iterable

from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.ports import QueueClient


class Revisions:
    """Configurations by number. One that was read is kept for ever: it never changes."""

    def __init__(self, client: QueueClient) -> None:
        self._client = client
        self._known: dict[int, TaskConfig] = {}

    async def read(self, numbers: Iterable[int | None]) -> None:
        """Read those that are not known yet. Raises StoreUnavailable; one that the record lacks stays unknown."""
        missing = {number for number in numbers if number is not None} - self._known.keys()
        if missing:
            found = await self._client.revisions(sorted(missing))
            self._known.update((number, TaskConfig.from_json(text)) for number, text in found.items())

    def get(self, number: int | None) -> TaskConfig | None:
        """The configuration, or None where the task's present one counts."""
        return self._known.get(number) if number is not None else None
