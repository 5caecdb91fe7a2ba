# SPDX-License-Identifier: MIT
"""What a session must hold after each call: a client's model of its variables and files.

Every call changes one variable and one file, and then ends in one of the ways of ENDS. An answer
is held against all states that agree with those before it. One that agrees with none has lied.
"""

import dataclasses

from support.program import program

STEP = program("""
    import os
    v = globals().get('v', {{}})
    v['{key}'] = {value}
    with open('.aside', 'w') as aside:
        aside.write('{value}')
    os.replace('.aside', '{key}')
    {then}
    [v, {{name: open(name).read() for name in os.listdir() if name[0] == 'k'}}]
""")
# what comes after the change, the limit of time in ms, and the type of error it ends with
ENDS = {
    "success": ("pass", None, None),
    "error": ("1 / 0", None, "ZeroDivisionError"),
    "crash": ("os._exit(1)", None, "crash"),
    "time-out": ("import time; time.sleep(60)", 500, "timeout"),
    "time-out in C": ("sum(range(10**12))", 500, "timeout"),
}
# how a worker ends that is killed from outside
KILLED = ("crash", "resource_limit")
# more states than that say too little of a session
STATES_MAX = 1000


@dataclasses.dataclass
class Step:
    """A call: what it changes, and how its code means to end."""

    key: str
    value: int
    end: str

    def code(self):
        """The code of the call."""
        return STEP.format(key=self.key, value=self.value, then=ENDS[self.end][0])


@dataclasses.dataclass
class Told:
    """What an answer of status 200 says: a type of error or None, the value, the session."""

    error: str
    value: list
    session: dict

    def loses(self):
        """True when it tells of a loss, or that there was none because of a copy."""
        return self.session["lost"] != "none" or "restored_to" in self.session


@dataclasses.dataclass
class State:
    """One thing that a session may be.

    `count`: its calls. `ended`: the number of the last one whose end its variables show.
    `past`: the variables at the end of each call that there may be a checkpoint of. `untold`: the
    loss that a call without an answer began with, `lost` and `restored_to`, which the next answer
    tells; the rest is what came of that call.
    """

    count: int = 0
    ended: int = 0
    variables: dict = dataclasses.field(default_factory=dict)
    files: dict = dataclasses.field(default_factory=dict)
    past: dict = dataclasses.field(default_factory=dict)
    untold: tuple = None

    def changed(self, **what):
        """Another state, which differs in what is named."""
        return dataclasses.replace(self, **what)

    def counted(self, count):
        """The state after a call of that number has begun."""
        return self.changed(count=count)

    def over(self, step, variables=True, files=True):
        """The state after the call that was counted last has ended, its changes made or not."""
        variables = {**self.variables, step.key: step.value} if variables else self.variables
        files = {**self.files, step.key: str(step.value)} if files else self.files
        return self.changed(ended=self.count, variables=variables, files=files,
                            past={**self.past, self.count: variables})

    def interrupted(self, step):
        """All that a call may have made when it is interrupted at some moment."""
        return [self.over(step, False, False), self.over(step, True, False), self.over(step)]

    def died(self, step):
        """The files that a call may have left when its worker dies at some moment."""
        return [self, self.changed(files=self.over(step).files)]

    def gone_back(self, number):
        """The state when the session goes on from the checkpoint of that call; 0: of none."""
        return self.changed(ended=number, variables=self.past.get(number, {}))

    def with_loss(self, session):
        """The states that `session`, of an answer, says are left of this one: one, or none."""
        back, lost = session.get("restored_to"), session["lost"]
        if lost == "all":
            return [State(self.count)] if back is session["checkpoint"] is None else []
        if back is None:
            return [self.gone_back(0).changed(past={})] if lost == "variables" else [self]
        if back not in self.past or (back == self.ended) != (lost == "none"):
            return []
        return [self.gone_back(back)]

    def with_checkpoint(self, number):
        """The states when the call that is counted last began with that checkpoint, or None."""
        if number is not None and number not in self.past:
            return []
        return [self.changed(past={n: variables for n, variables in self.past.items()
                                   if number is not None and n >= number})]


def unique(states):
    """The states without those that are there twice."""
    return list({repr(state): state for state in states}.values())


def begun(state, session):
    """The states in which the call of an answer began, before what it lost."""
    if session["created"]:  # whatever was there before is gone, and it says so
        return [State(1)] if session["execution_count"] == 1 else []
    number = session["execution_count"]
    return [state.counted(number)] if number == state.count + 1 and number > 1 else []


def after_death(counted, step, session):
    """The states that may come after a call in which the worker or the sandbox was lost."""
    if session["lost"] == "all":  # in the call or before it; then it has begun in a new sandbox
        return [left for fresh in counted.with_loss(session) for left in fresh.died(step)]
    return [left for known in counted.with_checkpoint(session["checkpoint"])
            for died in known.died(step) for left in died.with_loss(session)]


def after_answer(state, step, told):
    """The states that may come after an answer, which also tells what was untold before."""
    known, session = state.changed(untold=None), told.session
    meant = [session]  # if it is untold, it tells of a later loss
    if state.untold == ("all", None) and not session["created"]:
        meant = [{**session, "lost": lost} for lost in ("none", "variables", "all")
                 if session["lost"] == "all"]
    elif state.untold == (session["lost"], session.get("restored_to")):
        meant.append({**session, "lost": "none"})
        meant[-1].pop("restored_to", None)
    return [after for each in meant
            for after in after_losses(known, step, dataclasses.replace(told, session=each))]


def after_losses(state, step, told):
    """The same, where the answer tells what was lost of this state."""
    found = []
    for counted in begun(state, told.session):
        if told.loses() and told.error in (*KILLED, "timeout"):
            found += after_death(counted, step, told.session)
        if told.error in KILLED or told.session["created"] and told.loses():
            continue
        before = [known for left in counted.with_loss(told.session)
                  for known in left.with_checkpoint(told.session["checkpoint"])]
        if told.error == "timeout":
            found += [after for known in before for after in known.interrupted(step)]
        else:
            found += [known.over(step) for known in before]
    if told.error is None:
        return [after for after in found if told.value == [after.variables, after.files]]
    return found


def after_silence(state, step):
    """The states that may come after a call that nobody heard of.

    It has run or not, was interrupted by the next call, lost its worker or its sandbox, or began
    the session anew, and the answer that told so was lost itself. Its number may have been used up
    without its code.
    """
    counted = state.counted(state.count + 1)
    found = [state, counted, *counted.interrupted(step), State(state.count)]
    for empty in (State(counted.count), State(counted.count, untold=("all", None)), State(1)):
        found += [*empty.interrupted(step), *empty.died(step)]
    for number in (0, *state.past):
        found += [left.gone_back(number) for left in (state, *counted.died(step))]
        lost = "none" if number and number == state.ended else "variables"
        before = counted.gone_back(number)  # it was lost before it ran
        found += before.interrupted(step)
        found += before.changed(untold=(lost, number or None)).interrupted(step)
    return found + [each.changed(untold=None) for each in found if each.untold]


class Model:
    """All states that agree with every answer so far; there is always one, or an answer lied."""

    def __init__(self):
        self.states = [State()]
        self.history = []

    def _become(self, states):
        assert states, f"{self.history[-1]}\nafter {self.history[-6:-1]}"
        self.states = unique(states)

    def knows_too_little(self):
        """True when so many calls were without an answer that nearly anything may be true."""
        return len(self.states) > STATES_MAX

    def silent(self, step):
        """No answer came that says whether the call has run."""
        self.history.append((step, None))
        self._become([after for state in self.states for after in after_silence(state, step)])

    def answered(self, step, told):
        """Hold an answer of status 200 against the model."""
        self.history.append((step, told))
        assert told.error in (None, ENDS[step.end][2], *KILLED) and \
            (told.error or step.end == "success"), told
        self._become([after for state in self.states for after in after_answer(state, step, told)])


def replay(history):
    """Hold a history against a new model; True when it agrees."""
    model = Model()
    try:
        for step, told in history:
            if told is None:
                model.silent(step)
            else:
                model.answered(step, told)
    except AssertionError:
        return False
    return True
