"""How pages of acts on many jobs write what they hand on."""

from urllib.parse import parse_qsl

from django import template

register = template.Library()


@register.filter
def fields(query: str) -> list[tuple[str, str]]:
    """The parts of an address's query, names and values, for hidden fields."""
    return parse_qsl(query.removeprefix("?"))
