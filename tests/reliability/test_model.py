# SPDX-License-Identifier: MIT
"""The model of a session believes right histories, and none with a lie in it."""

import copy

import pytest

from .model import Model, State, Step, Told, after_silence, replay, unique


def told(number, value=None, error=None, lost="none", **more):
    """What an answer says: of success, when it has a value."""
    return Told(error, value, {"created": number == 1, "lost": lost, "execution_count": number,
                               "checkpoint": None, **more})


def holds(**changed):
    """A value: the variables and files that a call finds, all of them written as text."""
    return [changed, {key: str(value) for key, value in changed.items()}]


def step(key, value, end="success"):
    """A call that changes the variable and the file `key`."""
    return Step(key, value, end)


ONE = (step("k1", 1), told(1, holds(k1=1)))
TWO = (step("k2", 2), told(2, holds(k1=1, k2=2), checkpoint=1))
RIGHT = {
    "calls in a row": [ONE, TWO, (step("k1", 3), told(3, holds(k1=3, k2=2), checkpoint=1))],
    "an error of the code": [
        ONE, (step("k1", 2, "error"), told(2, error="ZeroDivisionError")),
        (step("k2", 3), told(3, holds(k1=2, k2=3)))],
    "a crash, and the session goes on from its checkpoint": [
        ONE, TWO, (step("k1", 3, "crash"), told(3, error="crash", checkpoint=2, restored_to=2)),
        (step("k3", 4), told(4, [{"k1": 1, "k2": 2, "k3": 4},
                                 {"k1": "3", "k2": "2", "k3": "4"}], checkpoint=2))],
    "a crash, and the checkpoint is older": [
        ONE, TWO, (step("k1", 3, "crash"), told(3, error="crash", lost="variables", checkpoint=1,
                                                restored_to=1)),
        (step("k3", 4), told(4, [{"k1": 1, "k3": 4},
                                 {"k1": "3", "k2": "2", "k3": "4"}], checkpoint=1))],
    "a crash without a checkpoint": [
        ONE, (step("k1", 2, "crash"), told(2, error="crash", lost="variables")),
        (step("k2", 3), told(3, [{"k2": 3}, {"k1": "2", "k2": "3"}]))],
    "killed before it has changed anything": [
        ONE, (step("k1", 2), told(2, error="crash", lost="variables")),
        (step("k2", 3), told(3, [{"k2": 3}, {"k1": "1", "k2": "3"}]))],
    "lost between calls": [
        ONE, TWO, (step("k3", 3), told(3, [{"k1": 1, "k3": 3}, {"k1": "1", "k2": "2", "k3": "3"}],
                                       lost="variables", checkpoint=1, restored_to=1))],
    "lost between calls, and nothing missing": [
        ONE, TWO, (step("k3", 3), told(3, holds(k1=1, k2=2, k3=3), checkpoint=2, restored_to=2))],
    "the sandbox lost": [
        ONE, (step("k2", 2), told(2, holds(k2=2), lost="all")),
        (step("k3", 3), told(3, holds(k2=2, k3=3), checkpoint=2))],
    "the sandbox lost in a call": [
        ONE, (step("k2", 2), told(2, error="crash", lost="all")),
        (step("k3", 3), told(3, holds(k3=3)))],
    "the sandbox lost before a call that crashes": [
        ONE, (step("k2", 2, "crash"), told(2, error="crash", lost="all")),
        (step("k3", 3), told(3, [{"k3": 3}, {"k2": "2", "k3": "3"}]))],
    "the first call crashes": [
        (step("k1", 1, "crash"), told(1, error="crash", lost="variables")),
        (step("k2", 2), told(2, [{"k2": 2}, {"k1": "1", "k2": "2"}]))],
    "a time-out": [
        ONE, (step("k2", 2, "time-out"), told(2, error="timeout", checkpoint=1)),
        (step("k3", 3), told(3, holds(k1=1, k2=2, k3=3), checkpoint=2))],
    "a time-out of what had to be killed": [
        ONE, (step("k2", 2, "time-out in C"), told(2, error="timeout", checkpoint=1,
                                                   restored_to=1)),
        (step("k3", 3), told(3, [{"k1": 1, "k3": 3}, {"k1": "1", "k2": "2", "k3": "3"}],
                             checkpoint=1))],
    "no answer, and it has run": [
        ONE, (step("k2", 2), None), (step("k3", 3), told(3, holds(k1=1, k2=2, k3=3)))],
    "no answer, and it has not run": [
        ONE, (step("k2", 2), None), (step("k3", 3), told(2, holds(k1=1, k3=3)))],
    "no answer, and it was interrupted": [
        ONE, (step("k2", 2), None),
        (step("k3", 3), told(3, [{"k1": 1, "k2": 2, "k3": 3}, {"k1": "1", "k3": "3"}]))],
    "no answer, and it has crashed": [
        ONE, (step("k2", 2, "crash"), None),
        (step("k3", 3), told(3, [{"k1": 1, "k3": 3}, {"k1": "1", "k2": "2", "k3": "3"}],
                             checkpoint=1, restored_to=1))],
    "variables lost before a call, which its lost answer told": [
        ONE, (step("k2", 2), None),
        (step("k2", 3), told(3, [{"k2": 3}, {"k1": "1", "k2": "3"}], checkpoint=2))],
    "restored before a call, which had no answer to tell it": [
        ONE, TWO, (step("k3", 3), None),
        (step("k4", 4), told(4, holds(k1=1, k2=2, k3=3, k4=4), checkpoint=3, restored_to=2))],
    "the sandbox lost, which a lost answer told": [
        ONE, TWO, (step("k3", 3, "crash"), None),
        (step("k4", 4), told(4, [{"k4": 4}, {"k3": "3", "k4": "4"}]))],
    "the sandbox lost, and the call that would have told it had no answer": [
        ONE, TWO, (step("k3", 3), None),
        (step("k4", 4), told(4, holds(k3=3, k4=4), lost="all", checkpoint=3))],
    "the sandbox lost, and the call that would have told it crashed without an answer": [
        ONE, TWO, (step("k3", 3, "crash"), None),
        (step("k4", 4), told(4, [{"k4": 4}, {"k3": "3", "k4": "4"}], lost="all")),
        (step("k1", 5), told(5, [{"k4": 4, "k1": 5}, {"k3": "3", "k4": "4", "k1": "5"}]))],
    "forgotten, which a lost answer told": [
        ONE, TWO, (step("k3", 3, "crash"), None),
        (step("k4", 4), told(2, [{"k4": 4}, {"k3": "3", "k4": "4"}], lost="variables"))],
    "forgotten, which is told": [ONE, TWO, (step("k3", 3), told(1, holds(k3=3)))],
}
WRONG = {
    "a variable missing": [ONE, (step("k2", 2), told(2, [{"k2": 2}, {"k1": "1", "k2": "2"}]))],
    "a file missing": [ONE, (step("k2", 2), told(2, [{"k1": 1, "k2": 2}, {"k2": "2"}]))],
    "an older value": [
        ONE, (step("k1", 2), told(2, holds(k1=2))), (step("k2", 3), told(3, holds(k1=1, k2=3)))],
    "somebody else's variable": [ONE, (step("k2", 2), told(2, holds(k1=1, k2=2, k9=9)))],
    "a crash that takes nothing and gives nothing back": [
        ONE, (step("k2", 2, "crash"), told(2, error="crash", checkpoint=1))],
    "files lost, and only variables told": [
        ONE, (step("k2", 2), told(2, holds(k2=2), lost="variables"))],
    "back to a call that had crashed": [
        ONE, (step("k2", 2, "crash"), told(2, error="crash", checkpoint=1, restored_to=1)),
        (step("k3", 3, "crash"), told(3, error="crash", checkpoint=2, restored_to=2))],
    "back to a call before the checkpoint of the last answer": [
        ONE, TWO, (step("k3", 3), told(3, holds(k1=1, k2=2, k3=3), checkpoint=2)),
        (step("k4", 4, "crash"), told(4, error="crash", lost="variables", checkpoint=1,
                                      restored_to=1))],
    "lost: none, though a call is gone": [
        ONE, TWO, (step("k3", 3, "crash"), told(3, error="crash", checkpoint=1, restored_to=1))],
    "the change of a call that crashed is in the variables": [
        ONE, (step("k2", 2, "crash"), told(2, error="crash", checkpoint=1, restored_to=1)),
        (step("k3", 3), told(3, holds(k1=1, k2=2, k3=3), checkpoint=1))],
    "no answer, and half of what was before is gone": [
        ONE, TWO, (step("k3", 3), None),
        (step("k4", 4), told(4, [{"k2": 2, "k4": 4}, {"k1": "1", "k2": "2", "k4": "4"}]))],
    "restored before a call that had no answer, and not to what was there": [
        ONE, TWO, (step("k3", 3), None),
        (step("k4", 4), told(4, holds(k1=1, k2=2, k3=3, k4=4), checkpoint=3, restored_to=1,
                             lost="variables"))],
    "all lost, and a variable of before is still there": [
        ONE, TWO, (step("k3", 3), None),
        (step("k4", 4), told(4, holds(k1=1, k3=3, k4=4), lost="all"))],
    "a number too high": [ONE, (step("k2", 2), told(3, holds(k1=1, k2=2)))],
    "two calls without an answer count for three": [
        ONE, (step("k2", 2), None), (step("k2", 3), None),
        (step("k3", 4), told(5, holds(k1=1, k2=3, k3=4)))],
    "an error that the code does not make": [ONE, (step("k2", 2), told(2, error="KeyError"))],
    "success of code that fails": [ONE, (step("k2", 2, "error"), told(2, holds(k1=1, k2=2)))],
    "begun anew, and what was not there yet is lost": [
        (step("k1", 1), told(1, holds(k1=1), lost="variables"))],
    "begun anew, and the variables are still there": [ONE, (step("k2", 2),
                                                            told(1, holds(k1=1, k2=2)))],
}


@pytest.mark.parametrize("history", RIGHT.values(), ids=RIGHT)
def test_a_right_history_is_believed(history):
    assert replay(history)


@pytest.mark.parametrize("history", WRONG.values(), ids=WRONG)
def test_a_wrong_history_is_not(history):
    assert not replay(history)


def losses(history):
    """The places of the answers that tell of something lost, where all calls have answers."""
    if any(said is None for _, said in history):
        return []
    return [place for place, (_, said) in enumerate(history)
            if said is not None and said.session["lost"] != "none"]


@pytest.mark.parametrize("name", [name for name, history in RIGHT.items() if losses(history)])
@pytest.mark.parametrize("lie", [{"lost": "none"}, {"lost": "none", "restored_to": 2},
                                 {"execution_count": 9}], ids=str)
def test_a_lie_about_a_loss_is_found(name, lie):
    """The answer that tells the loss is changed, the rest of the history is what it was."""
    history = copy.deepcopy(RIGHT[name])
    for place in losses(history):
        history[place][1].session.pop("restored_to", None)
        history[place][1].session.update(lie)
    assert not replay(history)


def test_silence_does_not_make_more_states_than_can_be_told_apart():
    model = Model()
    for number in range(1, 4):
        model.answered(step(f"k{number}", number), told(
            number, holds(**{f"k{n}": n for n in range(1, number + 1)}), checkpoint=number - 1
            or None))
    assert len(model.states) == 1
    for number in range(4, 7):
        model.silent(step("k4", number))
    assert len(model.states) < 10000
    assert len(unique(after_silence(State(), step("k1", 1)))) < 15
