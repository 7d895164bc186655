"""The state machine against a table written by hand from the design."""

import pytest

from shiftboss.queue.states import FINAL, LIVE, TRANSITIONS, WAITING, Actor, State, Verb, legal_verbs

S, V = State, Verb

# (state before, verb) → (to, at the limit, if a cancel is requested)
TABLE = {
    (None, V.ENQUEUE): (S.AVAILABLE, None, None),
    (None, V.BACKFILL): (S.AVAILABLE, None, None),
    (None, V.RERUN): (S.AVAILABLE, None, None),
    (S.SCHEDULED, V.STAGE): (S.AVAILABLE, None, None),
    (S.SCHEDULED, V.EXPEDITE): (S.AVAILABLE, None, None),
    (S.SCHEDULED, V.CANCEL): (S.CANCELLED, None, None),
    (S.SCHEDULED, V.QUARANTINE): (S.QUARANTINED, None, None),
    (S.SCHEDULED, V.REPRIORITISE): (S.SCHEDULED, None, None),
    (S.SCHEDULED, V.RESCHEDULE): (S.SCHEDULED, None, None),
    (S.RETRYABLE, V.STAGE): (S.AVAILABLE, None, None),
    (S.RETRYABLE, V.EXPEDITE): (S.AVAILABLE, None, None),
    (S.RETRYABLE, V.CANCEL): (S.CANCELLED, None, None),
    (S.RETRYABLE, V.QUARANTINE): (S.QUARANTINED, None, None),
    (S.RETRYABLE, V.REPRIORITISE): (S.RETRYABLE, None, None),
    (S.RETRYABLE, V.RESCHEDULE): (S.RETRYABLE, None, None),
    (S.AVAILABLE, V.CLAIM): (S.RUNNING, None, None),
    (S.AVAILABLE, V.CANCEL): (S.CANCELLED, None, None),
    (S.AVAILABLE, V.QUARANTINE): (S.QUARANTINED, None, None),
    (S.AVAILABLE, V.REPRIORITISE): (S.AVAILABLE, None, None),
    (S.AVAILABLE, V.RESCHEDULE): (S.SCHEDULED, None, None),
    (S.RUNNING, V.HEARTBEAT): (S.RUNNING, None, None),
    (S.RUNNING, V.PROGRESS): (S.RUNNING, None, None),
    (S.RUNNING, V.CHECKPOINT): (S.RUNNING, None, None),
    (S.RUNNING, V.EVENT): (S.RUNNING, None, None),
    (S.RUNNING, V.CANCEL): (S.RUNNING, None, None),
    (S.RUNNING, V.COMPLETE): (S.COMPLETED, None, None),
    (S.RUNNING, V.QUARANTINE): (S.QUARANTINED, None, S.CANCELLED),
    (S.RUNNING, V.SNOOZE): (S.SCHEDULED, None, S.CANCELLED),
    (S.RUNNING, V.RELEASE): (S.AVAILABLE, None, S.CANCELLED),
    (S.RUNNING, V.DISCARD): (S.DISCARDED, None, S.CANCELLED),
    (S.RUNNING, V.FAIL): (S.RETRYABLE, S.QUARANTINED, S.CANCELLED),
    (S.RUNNING, V.REAP): (S.RETRYABLE, S.QUARANTINED, S.CANCELLED),
    (S.QUARANTINED, V.CANCEL): (S.CANCELLED, None, None),
    (S.QUARANTINED, V.REINSTATE): (S.AVAILABLE, None, None),
    (S.QUARANTINED, V.DISCARD): (S.DISCARDED, None, None),
}


@pytest.mark.parametrize("before", [None, *State])
@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.requirement("L5", "L17")
def test_a_verb_does_to_a_state_what_the_design_says_and_nothing_else(before: State | None, verb: Verb) -> None:
    rule = TRANSITIONS.get((before, verb))
    found = rule and (rule.to, rule.at_limit, rule.if_cancel_requested)
    assert found == TABLE.get((before, verb))


@pytest.mark.requirement("L19")
def test_final_states_have_no_way_out() -> None:
    assert {S.COMPLETED, S.CANCELLED, S.DISCARDED} == FINAL
    assert [before for before, _ in TRANSITIONS if before in FINAL] == []
    assert all(legal_verbs(state) == frozenset() for state in FINAL)


def test_every_state_is_waiting_working_held_or_final() -> None:
    assert WAITING | {S.RUNNING, S.QUARANTINED} | FINAL == set(State)
    assert set(State) - FINAL == LIVE


@pytest.mark.requirement("L2")
def test_only_a_worker_claims_and_reports() -> None:
    of_a_worker = {
        V.CLAIM,
        V.HEARTBEAT,
        V.PROGRESS,
        V.CHECKPOINT,
        V.EVENT,
        V.COMPLETE,
        V.FAIL,
        V.SNOOZE,
        V.RELEASE,
    }
    for (_, verb), rule in TRANSITIONS.items():
        if verb in of_a_worker:
            assert rule.by == {Actor.WORKER}


@pytest.mark.requirement("N14")
def test_staging_and_reaping_are_the_maintainers_and_the_keepers() -> None:
    for (_, verb), rule in TRANSITIONS.items():
        if verb in {V.STAGE, V.REAP}:
            assert rule.by == {Actor.MAINTAINER, Actor.KEEPER}


@pytest.mark.requirement("C4")
def test_legal_verbs_are_those_of_the_table() -> None:
    for state in State:
        assert legal_verbs(state) == {verb for before, verb in TABLE if before is state}
