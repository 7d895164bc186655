"""The console as it is served, with a clock and a counter of queries around each request."""

import time
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from shiftboss.site.settings import *  # noqa: F403
from shiftboss.site.settings import MIDDLEWARE as THEIRS

SECRET_KEY = "benchmark only, and nothing but this machine reaches it"
MIDDLEWARE = ["bench.console_settings.Measuring", *THEIRS]


class Measuring:
    """Tells of each answer how long it took here, and how many statements the database was asked."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        asked = 0

        def count(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
            nonlocal asked
            asked += 1
            return execute(sql, params, many, context)

        began = time.perf_counter()
        with connection.execute_wrapper(count):
            response = self.get_response(request)
        response["Bench-Ms"] = f"{(time.perf_counter() - began) * 1000:.2f}"
        response["Bench-Queries"] = str(asked)
        return response
