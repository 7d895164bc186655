"""What jobs are lent while they run: declared in a module, named by tasks."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from shiftboss.queue.errors import InvalidJob, UnknownResource

MAX_NAME_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Resource:
    """Something costly that jobs are lent one after the other: a browser, a session, a device.

        browser = Resource("browser", create=launch, destroy=Browser.close, maximum=2)

        @task(takes_context=True, resource="browser")
        def take_picture(context, address):
            page = context.resource.new_page()

    Declared in a module that is imported with the tasks, such as the app's `tasks`. Each executor process makes
    its own, with `create`, when a job needs one and none is idle, at most `maximum` (None: as many as it has
    threads; it never has more). Jobs get theirs in the order in which they began, and give it back whatever
    becomes of them. One that was lent before is lent again after `validate`: where that raises, or answers
    something false other than None, it is destroyed and another made. `destroy` is called for idle ones when the
    executor ends; one that is killed cannot.

    All three may be plain or coroutine functions, for plain and for coroutine tasks: coroutine functions run on
    the executor's event loop, plain ones in a thread. A `create` that raises is a failure of the job that wanted
    it, with the code `resource_failed`. Raises InvalidJob for what cannot be, and for a name that is taken.
    """

    name: str
    _: KW_ONLY
    create: Callable[[], Any]
    destroy: Callable[[Any], Any] | None = None
    validate: Callable[[Any], Any] | None = None
    maximum: int | None = None

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable():
            raise InvalidJob(f"a resource's name is 1 to {MAX_NAME_LENGTH} printable characters, not {name!r:.80}")
        for use in ("create", "destroy", "validate"):
            function = getattr(self, use)
            if not callable(function) and (function is not None or use == "create"):
                raise InvalidJob(f"the resource {name!r}: {use} must be a function, not {function!r:.80}")
        if self.maximum is not None and (type(self.maximum) is not int or self.maximum < 1):
            raise InvalidJob(
                f"the resource {name!r}: maximum is a whole number from 1 on, not {self.maximum!r:.80}"
            )
        other = _declared.get(name)
        if other is not None and _place(other) != _place(self):
            raise InvalidJob(f"there is a resource {name!r} already, made by {'.'.join(_place(other))}")
        _declared[name] = self


_declared: dict[str, Resource] = {}


def _place(resource: Resource) -> tuple[str, str]:
    # The same module may be executed twice.
    create = resource.create
    return str(getattr(create, "__module__", "")), str(getattr(create, "__qualname__", type(create).__qualname__))


def declared() -> list[str]:
    """The names of the resources that this process has seen declared, in their order."""
    return sorted(_declared)


def resource(name: str) -> Resource:
    """The resource of this name. Raises UnknownResource."""
    if (found := _declared.get(name)) is None:
        raise UnknownResource(
            f"there is no resource {name!r}: declare it with shiftboss.Resource in a module that is imported with "
            "the tasks"
        )
    return found
