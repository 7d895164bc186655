"""What Django asks of any backend, asked of ours: 41 of its own tests, and the 14 that only its dummy can pass."""

import unittest
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

import django
import pytest
from django.db import connections

from shiftboss import System
from tests.django_suite import source

pytestmark = [
    pytest.mark.requirement("C8"),
    pytest.mark.skipif(
        django.VERSION < (6, 1),
        reason=f"these are Django 6.1's own tests, and Django {source.VERSION} has other ones",
    ),
]

MODULES = {"TaskTestCase": "test_tasks", "DummyBackendTestCase": "test_dummy_backend"}
"""Where Django keeps its tests of any backend."""

PORTABLE = {
    "TaskTestCase": """
        test_aenqueue_with_invalid_argument test_call_async_task test_call_async_task_sync test_call_task
        test_call_task_async test_chained_using test_enqueue_with_invalid_argument test_get_incorrect_result
        test_get_incorrect_result_async test_get_missing_result test_get_result test_get_result_async
        test_invalid_function test_invalid_priority test_naive_datetime test_name test_no_backends
        test_pickle_task test_pickle_task_result test_run_after_in_decorator
        test_takes_context_without_taking_context test_task_decorator test_task_error_invalid_exception
        test_task_error_unknown_module test_unknown_queue_name test_unpickle_arbitrary_string
        test_unpickle_non_task_object test_using_creates_new_instance test_using_missing_backend
        test_using_priority test_using_queue_name test_using_run_after test_using_unknown_backend
    """,
    "DummyBackendTestCase": """
        test_check test_enqueue_logs test_errors test_get_missing_result test_get_result test_get_result_async
        test_takes_context test_validate_disallowed_async_task
    """,
}

OF_THE_DUMMY = {
    "TaskTestCase": """
        test_enqueue_task test_enqueue_task_async test_get_backend test_module_path test_refresh_result
        test_using_correct_backend
    """,
    "DummyBackendTestCase": """
        test_clear test_enqueue_task test_enqueue_task_async test_refresh_result test_refresh_result_async
        test_using_correct_backend test_validate_on_aenqueue test_validate_on_enqueue
    """,
}
"""Tests that look into the dummy's list of results, name its class, or put it back into the settings."""


def names(table: dict[str, str]) -> set[tuple[str, str]]:
    """Class and test, of all that a table names."""
    return {(case, name) for case, text in table.items() for name in text.split()}


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest) -> dict[str, type[unittest.TestCase]]:
    """Django's classes of tests, each with our backend as the default one."""
    cache = request.config.cache
    assert cache
    try:
        folder = source.tests_of_tasks(cache.mkdir("django-sources"))
    except source.NotFetched as problem:
        pytest.skip(f"the source distribution of Django {source.VERSION} cannot be fetched: {problem}")
    return {
        name: _with_our_backend(getattr(source.load(folder, module), name)) for name, module in MODULES.items()
    }


def _with_our_backend(case: Any) -> type[unittest.TestCase]:
    given = case._overridden_settings
    default = {
        **given["TASKS"]["default"],
        "BACKEND": "shiftboss.queue.backend.ShiftbossBackend",
        "OPTIONS": {"authority": System()},
    }
    changed: dict[str, Any] = {
        "_overridden_settings": {**given, "TASKS": {**given["TASKS"], "default": default}},
        "databases": {"default"},
        "setUp": lambda self: None,  # it empties the dummy
    }
    for name in unittest.defaultTestLoader.getTestCaseNames(case):
        if iscoroutinefunction(test := getattr(case, name)):
            changed[name] = _closing_its_connection(test)
    return type(case.__name__, (case,), changed)


def _closing_its_connection(test: Any) -> Any:
    @wraps(test)
    async def closing(self: unittest.TestCase) -> None:
        try:
            await test(self)
        finally:
            connections.close_all()  # of this thread, in which nothing but the coroutine ran

    return closing


def test_django_has_no_test_of_a_backend_that_is_not_listed_here(
    cases: dict[str, type[unittest.TestCase]],
) -> None:
    names_of = unittest.defaultTestLoader.getTestCaseNames
    found = {case: " ".join(names_of(kind)) for case, kind in cases.items()}
    assert names(found) == names(PORTABLE) | names(OF_THE_DUMMY)
    assert (len(names(PORTABLE)), len(names(OF_THE_DUMMY))) == (41, 14)


@pytest.mark.parametrize(("case", "name"), sorted(names(PORTABLE)))
@pytest.mark.django_db
def test_a_test_of_django_passes(
    cases: dict[str, type[unittest.TestCase]], case: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One of them reads a result from a coroutine without await, which a backend without a database allows.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    result = unittest.TestResult()
    unittest.TestSuite([cases[case](name)]).run(result)
    assert result.testsRun == 1
    assert [text for _, text in [*result.failures, *result.errors, *result.skipped]] == []
