"""Lengths of time in buckets: how wrong a percentile of them can be."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftboss.queue.buckets import ERROR, LAST, bucket_of, merged, middle, percentiles, share_within

pytestmark = pytest.mark.requirement("B9")

WEEK = 7 * 86_400_000
lengths = st.lists(st.floats(1, WEEK), min_size=1, max_size=200)


def counted(values: list[float]) -> dict[int, int]:
    return dict(Counter(map(bucket_of, values)))


@given(st.floats(1, WEEK))
def test_a_length_is_told_at_most_a_tenth_too_long_or_too_short(length: float) -> None:
    assert ERROR < 0.1
    assert middle(bucket_of(length)) == pytest.approx(length, rel=ERROR + 1e-9) or length == 1


@given(lengths, lengths, st.sampled_from([0.5, 0.95, 0.99]))
def test_percentiles_of_merged_histograms_are_those_of_all_jobs_together(
    some: list[float], others: list[float], share: float
) -> None:
    ordered = sorted(some + others)
    exact = ordered[max(1, math.ceil(share * len(ordered))) - 1]
    [told] = percentiles(merged([counted(some), counted(others)]), [share])
    assert told == pytest.approx(exact, rel=ERROR + 1e-9) or exact == 1


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_a_longer_time_is_in_no_earlier_bucket(one: float, other: float) -> None:
    assert (bucket_of(min(one, other)) <= bucket_of(max(one, other))) is True


@pytest.mark.parametrize(("length", "bucket"), [(-5, 0), (0, 0), (1, 0), (1.1, 1), (WEEK, 111), (1e15, LAST)])
def test_what_is_too_short_or_too_long_for_the_buckets_is_in_the_first_or_the_last(
    length: float, bucket: int
) -> None:
    assert bucket_of(length) == bucket


def test_without_jobs_there_is_no_percentile_and_no_share() -> None:
    assert percentiles({}, [0.5, 0.99]) == [None, None]
    assert share_within({}, 100) is None


def test_a_share_within_a_time_counts_what_took_at_most_so_long() -> None:
    assert share_within(counted([10, 20, 30_000, 40_000]), 1000) == 0.5
