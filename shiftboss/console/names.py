"""Names of hosts and programs as parts of an address: any text, also one with a slash in it, or of dots alone."""

from urllib.parse import quote, unquote

from django.urls import register_converter


class Name:
    """A converter of paths. What would be taken for more than one part, or for none, is written as its code."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        """The name that is meant."""
        return unquote(value)

    def to_url(self, value: str) -> str:
        """The name as a part of an address."""
        if not value.strip("."):
            return value.replace(".", "%2E")
        return "".join(quote(one, safe="") if one in "%/" else one for one in value)


register_converter(Name, "name")
