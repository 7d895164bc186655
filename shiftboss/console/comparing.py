"""Two attempts of a job side by side: what is known of each, and where they differ. Plain functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from django.utils.translation import gettext as _

from shiftboss.console import evidence, text, words
from shiftboss.console.filters import BadFilter
from shiftboss.console.sight import Seen

LONGEST_TRACE = 2000
"""Lines of a traceback that are compared."""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that is known of both, or of one of them; `differs` where it is not the same."""

    name: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        """Whether the two are unlike."""
        return self.left != self.right


@dataclass(frozen=True, slots=True)
class Line:
    """A line of both tracebacks: `same`, or of the `left` or the `right` one alone."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two attempts by their fences, the earlier one on the left."""

    left: int
    right: int
    rows: list[Row]
    trace: list[Line]


def compare(attempts: Sequence[Seen], query: Mapping[str, str], *, args_sha256: str) -> Comparison | None:
    """The two attempts whose fences `?compare=3,5` names; None where it is not asked for. Raises BadFilter."""
    asked = query.get("compare")
    if not asked:
        return None
    by_fence = {str(one.row.fence): one for one in attempts}
    wanted = asked.split(",")
    if len(wanted) != 2 or len(set(wanted)) != 2 or not set(wanted) <= by_fence.keys():
        raise BadFilter("compare names the fences of two attempts that did not succeed, as in compare=3,5")
    left, right = sorted((by_fence[fence] for fence in wanted), key=lambda one: one.row.fence)
    known = [_facts(one, args_sha256) for one in (left, right)]
    names = list(dict.fromkeys([*known[0], *known[1]]))
    return Comparison(
        left=left.row.fence,
        right=right.row.fence,
        rows=[Row(name, known[0].get(name, ""), known[1].get(name, "")) for name in names],
        trace=_trace(left.row.traceback or "", right.row.traceback or ""),
    )


def _facts(one: Seen, args_sha256: str) -> dict[str, str]:
    row = one.row
    told = {
        _("Outcome"): words.spoken(words.OUTCOMES, row.outcome),
        _("Error"): row.error_type or "",
        _("Message"): row.error_message or "",
        _("Error code"): row.error_code or "",
        _("Fingerprint"): row.error_fingerprint or "",
        _("Worker"): "" if row.worker_id is None else f"#{row.worker_id}",
        _("Ran"): "" if row.run_ms is None else text.duration(row.run_ms / 1000),
    }
    kept = evidence.read(row.evidence, args_sha256=args_sha256)
    told |= {fact.name: fact.value for fact in kept.facts}
    if kept.output:
        told[_("Last output")] = kept.output[-evidence.LONGEST_FACT :].strip()
    return {name: value for name, value in told.items() if value}


def _trace(left: str, right: str) -> list[Line]:
    """Both tracebacks in one, where they differ; none where they are alike or there is none."""
    old, new = left.splitlines()[-LONGEST_TRACE:], right.splitlines()[-LONGEST_TRACE:]
    if old == new:
        return []
    lines: list[Line] = []
    for kind, from_old, to_old, from_new, to_new in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += [Line("same", line) for line in old[from_old:to_old]]
        else:
            lines += [Line("left", line) for line in old[from_old:to_old]]
            lines += [Line("right", line) for line in new[from_new:to_new]]
    return lines
