"""The text of `docs/reference.md`: every public name, with its signature, its promise and an example.

Signatures are taken from the source, promises are the docstrings; here stand only the examples and the chapters.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from enum import EnumMeta
from importlib import import_module
from textwrap import dedent, indent
from types import ModuleType
from typing import Any

HEAD = """\
# Reference

Printed from signatures and docstrings by `docs/generate.py`; do not edit.

These are all names that a project may import, and all that is kept as it is from one version to the next. Tasks,
results and errors of Django's own are in [its documentation](https://docs.djangoproject.com/en/stable/topics/tasks/);
what is told there holds here too. How it all goes together is told by [tasks](tasks.md) and
[reliability](reliability.md); settings are in [settings](settings.md), the HTTP API in [api](api.md), the command
line in [cli](cli.md).
"""

MODULES = {
    "shiftboss": "",
    "shiftboss.testing": "For a project's own tests; [testing](testing.md) says which of them when.\n\n",
}
"""Modules with public names, each with the sentence that begins its chapter."""

EXAMPLES = {
    "Functions": """
        functions = shiftboss.Functions()
        functions.add(resize, name="resize", timeout_seconds=30)
        store.enqueue(functions.job("resize", "cat.png", priority=5), authority=System())
        """,
    "MemoryStore": """
        store = shiftboss.MemoryStore()
        store.enqueue(functions.job("resize", "cat.png"), authority=System())
        store.save("jobs.json")
        store = shiftboss.MemoryStore.load("jobs.json")
        """,
    "UnknownTask": """
        try:
            job = functions.job(name)
        except shiftboss.UnknownTask:
            ...  # no function was added under this name
        """,
    "Worker": """
        with shiftboss.Worker(store.client(), functions, wakeups=store.wakeups(), threads=8) as worker:
            worker.drain()
        """,
    "WorkerEnded": """
        try:
            worker.start()
        except shiftboss.WorkerEnded:
            worker = make_worker()  # this one was aborted
        """,
    "Authority": "def reports_of(who: shiftboss.Authority): ...",
    "Backfilled": """
        begun: shiftboss.Backfilled = shiftboss.backfill(send_receipt, ids, name="receipts 2026")
        print(begun.new, "orders that it lacked")
        """,
    "Busy": """
        try:
            result.cancel()
        except shiftboss.Busy:
            ...  # somebody else is changing it: try again
        """,
    "Cancelled": """
        @task(takes_context=True)
        def export(context):
            try:
                for row in rows:
                    context.raise_if_cancelled()
                    write(row)
            except shiftboss.Cancelled:
                remove_the_half_written_file()
                raise
        """,
    "Cause": """
        if context.cancelled is shiftboss.Cause.SHUTDOWN:
            ...  # it will run again: nothing to clean up
        """,
    "Checkpoint": """
        @task(takes_context=True)
        def import_pages(context, count):
            done: int = context.checkpoint.data or 0  # a shiftboss.Checkpoint
            for number in range(done, count):
                import_page(number)
                context.checkpoint.save(number + 1)
        """,
    "Context": """
        @task(takes_context=True)
        def poll(context: shiftboss.Context, export_id):
            if not is_ready(export_id):
                context.snooze(60)
        """,
    "DummyBackend": """
        TASKS = {"default": {"BACKEND": "shiftboss.testing.DummyBackend", "QUEUES": []}}
        """,
    "EnqueuedJob": """
        [job] = enqueued(send_receipt)  # an EnqueuedJob
        assert job.priority == 10
        """,
    "ImmediateBackend": """
        TASKS = {"default": {"BACKEND": "shiftboss.testing.ImmediateBackend", "QUEUES": []}}
        """,
    "InTransaction": """
        with transaction.atomic():
            result = send_receipt.enqueue(order.id)
        result.wait_end(seconds=10)  # inside the block it would raise InTransaction
        """,
    "InvalidJob": """
        try:
            report.using(deadline=deadline).enqueue(month)
        except shiftboss.InvalidJob as problem:
            form.add_error("deadline", str(problem))
        """,
    "JobFacts": """
        class Metrics:
            def on_success(self, facts: shiftboss.JobFacts):
                statsd.timing(facts.task, facts.seconds)
        """,
    "JobRun": """
        [done] = run_jobs()  # a JobRun
        assert (done.outcome, done.result) == ("completed", 3)
        """,
    "KeyHeld": """
        try:
            reindex.using(on_conflict="refuse").enqueue(document.id)
        except shiftboss.KeyHeld as held:
            print("job", held.holder, "is at it already")
        """,
    "LeaseLost": """
        try:
            with context.complete_in_transaction():
                account.withdraw(amount)
        except shiftboss.LeaseLost:
            raise  # rolled back: the job is somebody else's by now
        """,
    "MovedOn": """
        try:
            result.cancel()
        except shiftboss.MovedOn as ended:
            print("too late, it is", ended.state)
        """,
    "NoSuchJob": """
        try:
            result.cancel()
        except shiftboss.NoSuchJob:
            ...  # pruned with its day, or another owner's
        """,
    "NotAllowed": """
        try:
            report.using(queue_name="urgent").enqueue(month)
        except shiftboss.NotAllowed:
            report.enqueue(month)
        """,
    "NotStorable": """
        try:
            resize.enqueue(photo)
        except shiftboss.NotStorable:
            resize.enqueue(photo.id)  # an id is what JSON can hold
        """,
    "OnConflict": "reindex.using(on_conflict=shiftboss.OnConflict.REPLACE).enqueue(document.id)",
    "Owner": 'send_receipt.using(authority=Owner(f"user_{user.id}")).enqueue(order.id)',
    "SchemaTooOld": """
        try:
            send_receipt.enqueue(order.id)
        except shiftboss.SchemaTooOld:
            ...  # run `manage.py migrate`
        """,
    "Resource": """
        browser = shiftboss.Resource("browser", create=launch, destroy=close, maximum=2)


        @task(takes_context=True, resource="browser")
        def take_picture(context, address):
            return context.resource.screenshot(address)
        """,
    "RunningWorker": """
        with running_worker() as worker:  # a RunningWorker
            assert "keeper.started" in worker.output
        """,
    "Scope": """
        @task(key="nightly-cleanup", key_scope=shiftboss.Scope.GLOBAL)
        def clean_up(): ...
        """,
    "Scoped": """
        def staff_scope(user):  # SHIFTBOSS["STAFF_SCOPE"] = "shop.staff.staff_scope"
            if user.is_superuser:
                return shiftboss.System()
            return shiftboss.Scoped(queues=[group.name for group in user.groups.all()])
        """,
    "Secret": """
        @task(takes_context=True, secrets=["mail_password"])
        def send_receipt(context, order_id):
            password = context.secrets["mail_password"]  # a Secret
            mailer.login("shop", password.reveal())
        """,
    "SecretUnavailable": """
        try:
            password = context.secrets["mail_password"]
        except shiftboss.SecretUnavailable:
            context.snooze(600)
        """,
    "ShiftbossError": """
        try:
            result.cancel()
        except shiftboss.ShiftbossError as error:
            messages.error(request, str(error))
        """,
    "ShiftbossResult": """
        result = send_receipt.enqueue(order.id)
        result.wait_end(seconds=10)
        print(result.return_value)
        """,
    "ShiftbossTask": """
        send_receipt.using(priority=10, run_after=tomorrow).enqueue(order.id)
        """,
    "StillRunning": """
        try:
            result.wait_end(seconds=5)
        except shiftboss.StillRunning:
            return HttpResponse(status=202)
        """,
    "StoreUnavailable": """
        try:
            result.wait_end(seconds=10)
        except shiftboss.StoreUnavailable:
            ...  # the connection broke while it waited: look again
        """,
    "System": """
        TASKS = {
            "default": {
                "BACKEND": "shiftboss.queue.backend.ShiftbossBackend",
                "OPTIONS": {"authority": System()},
            }
        }
        """,
    "UnsupportedDatabase": """
        try:
            send_receipt.enqueue(order.id)
        except shiftboss.UnsupportedDatabase:
            ...  # the settings name another database than PostgreSQL 15 or newer
        """,
    "WorkerFacts": """
        class Metrics:
            def on_drain(self, facts: shiftboss.WorkerFacts):
                log.info("worker %s drains %d jobs", facts.worker_id, facts.in_hand)
        """,
    "assert_enqueued": """
        assert_enqueued(send_receipt, args=[order.id], queue="mail", count=1)
        """,
    "assert_not_enqueued": """
        assert_not_enqueued(send_receipt)
        """,
    "backfill": """
        orders = Order.objects.values_list("id", flat=True).iterator()
        shiftboss.backfill(send_receipt, orders, name="receipts 2026", concurrency=5)
        """,
    "enqueued": """
        assert [job.args for job in enqueued(queue="mail")] == [(order.id,)]
        """,
    "enqueue_many": "enqueue_many(send_receipt.with_arguments(order.id) for order in orders)",
    "owner_of_request": "send_receipt.using(authority=shiftboss.owner_of_request(request)).enqueue(order.id)",
    "owner_of_user": "send_receipt.using(authority=shiftboss.owner_of_user(order.customer)).enqueue(order.id)",
    "run_jobs": """
        send_receipt.enqueue(order.id)
        [done] = run_jobs()
        assert done.outcome == "completed"
        """,
    "running_worker": """
        with running_worker() as worker:
            result.wait_end(seconds=60)
        """,
    "task": """
        @task(max_attempts=3, backoff=[1, 10])
        def send_receipt(order_id): ...
        """,
    "worker_of_settings": """
        with shiftboss.worker_of_settings("default", threads=2) as worker:
            worker.drain(60)
        """,
}
"""One for each name, as it would stand in a project."""


def text() -> str:
    """The page."""
    return HEAD + "".join(_chapter(import_module(name), about) for name, about in MODULES.items())


def _chapter(module: ModuleType, about: str) -> str:
    names = sorted(module.__all__, key=str.lower)
    listed = " · ".join(f"[{name}](#{_anchor(module, name)})" for name in names)
    entries = "".join(_entry(module, name) for name in names)
    return f"\n## `{module.__name__}`\n\n{about}{listed}\n{entries}"


def _anchor(module: ModuleType, name: str) -> str:
    return f"{module.__name__}{name}".replace(".", "").lower()


def _entry(module: ModuleType, name: str) -> str:
    thing = getattr(module, name)
    parts = [f"\n### `{module.__name__}.{name}`\n", _code(_head(name, thing)), _prose(thing)]
    if inspect.isclass(thing):
        parts += [_member(name, *member) for member in members(thing)]
    return "\n".join([*parts, f"For example:\n\n{_code(dedent(EXAMPLES[name]).strip())}"])


def _code(code: str) -> str:
    return f"```python\n{code}\n```\n"


def _prose(thing: Any) -> str:
    if not (inspect.isclass(thing) or inspect.isroutine(thing) or isinstance(thing, property)):
        return "A type, for annotations.\n"
    return f"{inspect.cleandoc(thing.__doc__ or '')}\n"


def _head(name: str, thing: Any) -> str:
    """The line that says how the name is used."""
    if isinstance(thing, EnumMeta):
        return f"class {name}(StrEnum)"
    if inspect.isclass(thing):
        kind = f"class {name}({thing.__base__.__name__})" if issubclass(thing, BaseException) else f"class {name}"
        return kind + "".join(f"\n    {line}" for line in _fields(thing))
    if inspect.isroutine(thing):
        return _signature(thing)
    return f"{name} = {thing}".replace("shiftboss.queue.authority.", "")


def _fields(kind: type) -> list[str]:
    """Its fields as the source has them, without those that are its own affair and those of Django's classes."""
    lines = []
    for node in _body(kind):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
            default = "" if node.value is None else f" = {ast.unparse(node.value)}"
            lines.append(f"{node.target.id}: {ast.unparse(node.annotation)}{default}")
    return lines


def _body(kind: type) -> list[ast.stmt]:
    [node] = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    return node.body


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods, properties and values of a class, as far as Shiftboss wrote them."""
    if isinstance(kind, EnumMeta):
        yield from ((name, getattr(kind, name)) for name in kind.__members__)
        return
    for owner in kind.__mro__:
        if owner.__module__.partition(".")[0] == "shiftboss":
            for name, value in vars(owner).items():
                if name[0] != "_" and (inspect.isroutine(value) or isinstance(value, property | classmethod)):
                    yield name, value


def _member(of: str, name: str, value: Any) -> str:
    if isinstance(value, str):
        return f"- `{of}.{name}` = `{str(value)!r}`\n"
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    said = f"{name}: {_returns(function)}" if isinstance(value, property) else _signature(function)
    return f"- **`{said}`**\n\n{indent(_prose(function), '  ')}"


def _signature(function: Any) -> str:
    """`name(parameters) -> type`, in the words of the source."""
    node = _definition(function)
    arguments = node.args
    for group in (arguments.posonlyargs, arguments.args):
        group[:] = [argument for argument in group if argument.arg not in ("self", "cls")]
    start = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    # As one writes it, and not as it is unparsed: with room around the default of what has a type.
    told = re.sub(r"(: [^=]+?)=", r"\1 = ", ast.unparse(arguments))
    return f"{start}{node.name}({told}) -> {ast.unparse(node.returns or ast.Constant(None))}"


def _returns(function: Any) -> str:
    return ast.unparse(_definition(function).returns or ast.Constant(None))


def _definition(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    [node] = ast.parse(dedent(inspect.getsource(inspect.unwrap(function)))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node
