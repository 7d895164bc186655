"""What all schemas share: strict input, and ids as text, which no reader rounds."""

from typing import Annotated, Any

from ninja import Schema
from pydantic import ConfigDict, Field

Id = Annotated[str, Field(pattern=r"^[0-9]+$", examples=["4711"])]
"""An id as it is given out."""


Json = Annotated[Any, Field(description="JSON, as it is stored")]


class Given(Schema):
    """What comes in; a field that is not known is an error, not a wish that nobody hears."""

    model_config = ConfigDict(extra="forbid")


class Shown(Schema):
    """What goes out."""

    model_config = ConfigDict(coerce_numbers_to_str=True)
