"""One name is right, one is not."""

from typing import Any

from shiftboss import Resource, task

Resource("browser", create=object)


@task(takes_context=True, resource="browser")
def take_picture(context: Any) -> None:
    """Its resource is there."""


@task(takes_context=True, resource="browsr")
def take_film(context: Any) -> None:
    """Its resource is not."""
