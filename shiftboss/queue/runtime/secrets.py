"""What a run may ask for of its secrets: those that its task names, one at a time, while it runs."""

import asyncio
import json
from collections.abc import Callable, Collection
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from shiftboss.queue.errors import LeaseLost, NotAllowed, SecretUnavailable
from shiftboss.queue.redaction import rewritten, walked
from shiftboss.queue.secrets import MASK, Secret

SHORTEST_HIDDEN = 4
"""A shorter value is found in any text: it is not looked for."""

Provide = Callable[[str], object]


def _nobody(name: str) -> object:
    raise SecretUnavailable(f"there is nobody to give the secret {name!r} in a run without a worker")


class Secrets:
    """`context.secrets["name"]`: the value as a `Secret`, asked of the project's provider each time.

    Only names that the task's option `secrets` lists are given out, and only while the run goes on. In a
    coroutine, `await context.secrets.aget("name")` holds up nobody.
    """

    __slots__ = ("__weakref__", "_given", "_is_over", "_names", "_provide")

    def __init__(
        self,
        names: Collection[str] = (),
        *,
        provide: Provide = _nobody,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._names = frozenset(names)
        self._provide = provide
        self._is_over = is_over
        self._given: set[str] = set()

    def __getitem__(self, name: str) -> Secret:
        """The secret of this name. Raises NotAllowed where the task does not list it, LeaseLost once the run is
        over, SecretUnavailable, and whatever the project's provider raises."""
        if name not in self._names:
            raise NotAllowed(f"the task does not list the secret {name!r} in its option `secrets`")
        if self._is_over():
            raise LeaseLost("this run is over: its secrets are given out no more")
        value = self._provide(name)
        if isinstance(value, Secret):
            value = value.reveal()
        if not isinstance(value, str | bytes):
            raise SecretUnavailable(
                f"the provider of secrets gave a {type(value).__name__} for {name!r}: text or bytes are due"
            )
        self._given |= _forms(value)
        _given_out[id(self)] = self
        return Secret(name, value)

    async def aget(self, name: str) -> Secret:
        """As `secrets[name]`, from a coroutine."""
        return await asyncio.to_thread(partial(self.__getitem__, name))

    def hidden(self, text: str) -> str:
        """The text with a mask in the place of each value that was given out."""
        for value in sorted(self._given, key=len, reverse=True):
            text = text.replace(value, MASK)
        return text

    def hidden_in_json(self, text: str) -> str:
        """As `hidden`, of a JSON text; what comes out is one too, whatever the values are."""
        if self.hidden(text) == text:
            return text
        try:
            return rewritten(text, self._without)
        except (ValueError, RecursionError):
            return json.dumps(MASK)

    def _without(self, value: Any) -> Any:
        return walked(value, leaf=self._leaf, hides=lambda key: False)

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hidden(value)
        text = json.dumps(value, ensure_ascii=False)
        return value if value is None or isinstance(value, bool) or self.hidden(text) == text else MASK


_given_out: WeakValueDictionary[int, Secrets] = WeakValueDictionary()
"""Those that have given something, as long as somebody can still ask them."""


def hidden_in_all(text: str) -> str:
    """The text with a mask in the place of each value that a run of this process was given.

    Of all runs that go on: a log line does not tell for which of them it was written, in a thread that a handler
    has started least of all.
    """
    for known in _given_out.valuerefs():
        if (secrets := known()) is not None:
            text = secrets.hidden(text)
    return text


def _forms(value: str | bytes) -> set[str]:
    """How a value may stand in a text: as it is, and within JSON."""
    text = value if isinstance(value, str) else value.decode(errors="replace")
    if len(text) < SHORTEST_HIDDEN:
        return set()
    return {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
