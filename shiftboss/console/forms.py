"""What people fill in before an act: a reason, and what the act itself wants to know."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import ProhibitNullCharactersValidator
from django.utils.translation import gettext_lazy as _

from shiftboss.acts import LARGEST_ID, MAX_REASON_LENGTH, MAX_REQUEST_LENGTH, LimitWord, Revision
from shiftboss.acts.jobs import arguments
from shiftboss.acts.programs import MAX_COUNT, MAX_NAME_LENGTH
from shiftboss.conf import ConfigError, check_queue
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.payload import args_digest
from shiftboss.queue.store.queues import MAX_CONCURRENCY


class ReasonForm(forms.Form):
    """A reason for the audit, which some acts insist on.

    `request_id` is made anew for every form that is shown, so that one that is sent twice is done once.
    """

    reason = forms.CharField(
        max_length=MAX_REASON_LENGTH, error_messages={"required": _("Say in a few words why; the audit keeps it.")}
    )
    request_id = forms.CharField(max_length=MAX_REQUEST_LENGTH, required=False)

    def __init__(self, typed: Any = None, *, needs_reason: bool, initial: dict[str, Any] | None = None) -> None:
        super().__init__(typed, initial={"request_id": str(uuid4()), **(initial or {})})
        self.fields["reason"].required = needs_reason

    @property
    def wish(self) -> dict[str, Any]:
        """What was filled in, as the acts take it."""
        return {**self.cleaned_data, "request_id": self.cleaned_data["request_id"] or None}

    def facts(self) -> dict[str, str]:
        """What was filled in, as the sentence about the act says it."""
        return {}


class EditForm(ReasonForm):
    """Other arguments. `confirmed` is the digest of those whose difference was shown: only they are taken."""

    args = forms.CharField(widget=forms.Textarea, strip=False, validators=[ProhibitNullCharactersValidator()])
    confirmed = forms.CharField(max_length=64, required=False)

    def clean_args(self) -> str:
        """A JSON text that the record can hold."""
        try:
            return arguments(self.cleaned_data["args"])
        except InvalidJob as problem:
            raise ValidationError(str(problem)) from None

    @property
    def digest(self) -> str:
        """What these arguments are told by."""
        return args_digest(self.cleaned_data["args"])

    @property
    def wish(self) -> dict[str, Any]:
        """The arguments and the reason."""
        return {name: value for name, value in super().wish.items() if name != "confirmed"}


class RerunForm(ReasonForm):
    """By which revision of its task's configuration; nothing said is the same one."""

    revision = forms.ChoiceField(
        required=False,
        choices=[
            (Revision.SAME.value, _("as it was when the job was enqueued")),
            (Revision.CURRENT.value, _("as the task's code says now")),
        ],
    )

    @property
    def wish(self) -> dict[str, Any]:
        """What was filled in, as the act takes it."""
        return {**super().wish, "revision": self.cleaned_data["revision"] or Revision.SAME}


class PriorityForm(ReasonForm):
    """Another priority."""

    priority = forms.IntegerField(min_value=-100, max_value=100)

    def facts(self) -> dict[str, str]:
        """The priority wished for."""
        return {"priority": str(self.cleaned_data["priority"])}


class MomentField(forms.Field):
    """A moment in UTC, as a browser's field for a date and a time sends it."""

    default_error_messages = {"invalid": _("Write a date and a time of day, in UTC.")}

    def to_python(self, value: Any) -> datetime | None:
        """The moment; an offset in the text itself counts."""
        if not value:
            return None
        try:
            moment = datetime.fromisoformat(str(value).strip())
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValidationError(self.error_messages["invalid"], code="invalid") from None


class DueForm(ReasonForm):
    """Another time to be due at."""

    due_at = MomentField()

    def facts(self) -> dict[str, str]:
        """The time wished for."""
        return {"due_at": f"{self.cleaned_data['due_at']:%Y-%m-%d %H:%M:%S} UTC"}


class ScaleForm(ReasonForm):
    """How many workers of a pool run on a host."""

    count = forms.IntegerField(min_value=0, max_value=MAX_COUNT)

    def facts(self) -> dict[str, str]:
        """How many are wished for."""
        return {"count": str(self.cleaned_data["count"])}


class RollForm(ReasonForm):
    """Which pool's workers are restarted (none: all), and which version they are to come up with."""

    pool = forms.CharField(required=False, strip=False, max_length=MAX_NAME_LENGTH)
    code_wanted = forms.CharField(required=False, max_length=MAX_NAME_LENGTH)

    @property
    def wish(self) -> dict[str, Any]:
        """What was filled in, as the act takes it."""
        return {name: value if name == "reason" else value or None for name, value in super().wish.items()}


def _is_a_queue(name: str) -> None:
    try:
        check_queue(name)
    except ConfigError as problem:
        raise ValidationError(str(problem)) from None


class QueueForm(ReasonForm):
    """The queue that is meant: a name may hold any character, so it never stands in the path of an address."""

    queue = forms.CharField(strip=False, validators=[ProhibitNullCharactersValidator(), _is_a_queue])


class PreviewForm(ReasonForm):
    """What was previewed of an act on all that waits: how many jobs, and the newest live job then."""

    expected = forms.IntegerField(min_value=0, max_value=LARGEST_ID, required=False)
    newest = forms.IntegerField(min_value=0, max_value=LARGEST_ID - 1, required=False)


NUMBER = "number"
"""The choice beside `LimitWord`'s: a number of its own."""

SO_MANY = _("at most so many jobs at once")


class LimitForm(QueueForm):
    """How many jobs of a queue run at once: a number, or one of the words for what is none."""

    limit = forms.ChoiceField(
        choices=[
            (NUMBER, SO_MANY),
            (LimitWord.SEQUENTIAL.value, _("one job at a time in strict order")),
            (LimitWord.NONE.value, _("as many as the workers can")),
            (LimitWord.SETTINGS.value, _("what the settings say")),
        ],
    )
    concurrency = forms.IntegerField(min_value=1, max_value=MAX_CONCURRENCY, required=False)

    def clean(self) -> dict[str, Any]:
        """A number is asked for where one is chosen, and beside another choice it is not known what is meant."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if "concurrency" in self.errors or "limit" in self.errors:
            return given
        if given["limit"] == NUMBER and given["concurrency"] is None:
            self.add_error("concurrency", _("Say how many."))
        elif given["limit"] != NUMBER and given["concurrency"] is not None:
            self.add_error(
                "concurrency",
                _("A number is for “%(choice)s”: choose that, or empty this field.") % {"choice": SO_MANY},
            )
        return given

    @property
    def wish(self) -> dict[str, Any]:
        """What was filled in, as the act takes it."""
        wish = super().wish
        concurrency, limit = wish.pop("concurrency"), wish.pop("limit")
        return {**wish, "limit": concurrency if limit == NUMBER else LimitWord(limit)}
