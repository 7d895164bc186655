"""Lengths of time counted in buckets, so that percentiles of many minutes can be had from those of one.

Percentiles do not add, counts do. Each bucket is `GROWTH` times as wide as the one before it, from a millisecond
to a week: bucket 0 holds what took a millisecond or less, bucket n what took more than `GROWTH ** (n - 1)` and at
most `GROWTH ** n` milliseconds, the last one whatever took longer. A length is told as the middle of its bucket;
none between a millisecond and a week is told more than `ERROR` too long or too short. (The same idea as in
HdrHistogram and DDSketch; the store counts by the same rule.)
"""

import math
from collections.abc import Iterable, Mapping, Sequence

GROWTH = 1.2
"""How much wider each bucket is than the one before it."""

LAST = 112
"""The bucket of a week and more."""

ERROR = math.sqrt(GROWTH) - 1
"""The largest relative error of a length told as the middle of its bucket: 9.5 %."""


def bucket_of(milliseconds: float) -> int:
    """The number of the bucket that holds this length."""
    if milliseconds <= 1:
        return 0
    return min(LAST, math.ceil(math.log(milliseconds) / math.log(GROWTH)))


def middle(bucket: int) -> float:
    """The length, in milliseconds, as which all lengths of this bucket are told."""
    return 0.5 if bucket == 0 else float(GROWTH ** (bucket - 0.5))


def merged(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """All together: for each bucket the jobs in it."""
    total: dict[int, int] = {}
    for histogram in histograms:
        for bucket, jobs in histogram.items():
            total[bucket] = total.get(bucket, 0) + jobs
    return total


def percentiles(histogram: Mapping[int, int], shares: Sequence[float]) -> list[float | None]:
    """For each share, the length in milliseconds that so many took at most; None where nothing was counted.

    By nearest rank, as the middle of the bucket that it falls into.
    """
    count = sum(histogram.values())
    if not count:
        return [None] * len(shares)
    ordered = sorted((bucket, jobs) for bucket, jobs in histogram.items() if jobs)
    found: list[float | None] = []
    for share in shares:
        left = max(1, math.ceil(share * count))
        for bucket, jobs in ordered:
            left -= jobs
            if left <= 0:
                found.append(middle(bucket))
                break
    return found


def share_within(histogram: Mapping[int, int], milliseconds: float) -> float | None:
    """The share of jobs that took at most so long, with the bucket of the limit itself counted as within."""
    count = sum(histogram.values())
    limit = bucket_of(milliseconds)
    return sum(jobs for bucket, jobs in histogram.items() if bucket <= limit) / count if count else None
