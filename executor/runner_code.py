# SPDX-License-Identifier: MIT
"""The code of a call: compiled so that its last expression has a value, and run.

Knows nothing of interrupts, errors or results: what the code raises goes to the caller.
"""

import __future__
import builtins
from _ast import Expr, Expression, PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST
from _io import BytesIO, TextIOWrapper
from asyncio import Runner, SelectorEventLoop
from contextvars import copy_context
from gc import disable as stop_gc, enable as start_gc, isenabled as gc_is_on
from inspect import CO_COROUTINE

from _vivarium_source import forget, remember

__builtins__ = dict(vars(builtins))  # a copy for us: user code may rebind or delete its own

NO_VALUE = object()  # what code has whose last statement is no expression

_AWAIT = PyCF_ALLOW_TOP_LEVEL_AWAIT
_FUTURES = __future__.annotations.compiler_flag  # the only one that still changes anything

_features = 0  # flags of the __future__ imports so far: like all imports, they stay


def evaluate(code, name, space):
    """Run CODE, named NAME, in SPACE and return the value of its last statement, or NO_VALUE."""
    parts, has_value = _compile(code, name)
    value = None
    if any([part.co_flags & CO_COROUTINE for part in parts]):
        value = _evaluate_async(parts, space)
    else:
        for part in parts:
            value = eval(part, space)
    return value if has_value else NO_VALUE


def touch():
    """Write to the memory that every call writes to: a copy of this process has made it shared.

    Runs no code of the user: the collector, whose finalizers may be that, stands still.
    """
    was_on = gc_is_on()
    stop_gc()
    try:
        TextIOWrapper(BytesIO(b''), 'utf-8', 'strict', '\n')
        evaluate(b'_ = 0\n_', '<exec-0>', {'__builtins__': __builtins__})
        forget('<exec-0>')
    finally:
        if was_on:
            start_gc()


def _compile(code, name):
    """Return ([code objects to run in a row], whether the value of the last one is wanted)."""
    global _features
    source = code.decode().removeprefix('\ufeff')
    lines = remember(name, source)
    tree = compile(source, name, 'exec', PyCF_ONLY_AST | _AWAIT | _features, True)
    body = tree.body
    last = body.pop() if body and type(body[-1]) is Expr else None
    parts = []
    if body:
        parts.append(_compile_body(tree, name, lines, last))
        _features |= parts[0].co_flags & _FUTURES
    if last is None:
        return parts, False
    parts.append(compile(Expression(last.value), name, 'eval', _AWAIT | _features, True))
    return parts, not (';' in source and _ends_in_semicolon(last, lines))


def _compile_body(tree, name, lines, last):
    """Compile the statements before LAST, or all if that is None."""
    flags = _AWAIT | _features
    try:
        return compile(tree, name, 'exec', flags, True)
    except RecursionError:  # Python reads deeper text than it takes as a tree
        if last is not None:
            line = lines[last.lineno - 1].encode()[:last.col_offset]
            lines = lines[:last.lineno - 1] + [line.decode()]
        return compile(''.join(lines), name, 'exec', flags, True)


def _ends_in_semicolon(last, lines):
    """Whether a semicolon after the LAST expression says that its value is not wanted."""
    rest = lines[last.end_lineno - 1].encode()[last.end_col_offset:]
    return rest.lstrip().startswith(b';')


def _evaluate_async(parts, space):
    """Run PARTS, some of which await, in one event loop, which ends with the call."""
    stopped = None

    async def drive():
        nonlocal stopped
        value = None
        try:
            for part in parts:
                value = eval(part, space)
                if part.co_flags & CO_COROUTINE:
                    value = await value
        except BaseException as exc:
            stopped = exc
        return value

    context = copy_context()
    try:
        with Runner(loop_factory=SelectorEventLoop) as runner:
            value = runner.run(drive(), context=context)
        if stopped is not None:
            raise stopped
        return value
    except KeyboardInterrupt as exc:
        if stopped is None or stopped is exc:
            raise
        raise exc.with_traceback(stopped.__traceback__)  # shows the await, not the loop
    finally:
        stopped = None  # else a cycle: exception, traceback, frame, variable
        for variable, setting in context.items():
            if variable.get(NO_VALUE) is not setting:
                variable.set(setting)
