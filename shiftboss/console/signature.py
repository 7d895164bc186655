"""What a view is."""

from collections.abc import Callable

from django.http.response import HttpResponseBase

View = Callable[..., HttpResponseBase]
