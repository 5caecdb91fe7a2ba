# SPDX-License-Identifier: MIT
"""The exception that ended a call, as type, message and line.

The message is the traceback as Python prints it, without the runner's own frames, and the lines
around the failing one. Everything is bounded, and the parts that can be huge are cut before they
are copied. Code of the user runs here as __str__ and the like of an exception.
"""

import builtins
import sys
import unicodedata  # noqa: F401  (for traceback)
from importlib.util import find_spec, module_from_spec

from _vivarium_source import MAX_LINE, copy_to, shorten, shown_lines
from _vivarium_value import clean_name, type_name

__builtins__ = dict(vars(builtins))  # a copy for us: user code may rebind or delete its own

MAX_MESSAGE = 64 * 1024  # bytes
MAX_TEXT = 8 * 1024      # characters of one exception's own text
MAX_CONTEXT = 4          # lines before and after the failing one
MAX_FRAMES = 1000        # innermost frames of one traceback: what Python prints as well
MAX_CHAIN = 8            # exceptions, each the cause or the context of the next

# A client tells by these types that it was not the code that failed; no exception may claim one.
SERVICE_TYPES = frozenset((
    'validation', 'parsing', 'resource_limit', 'timeout', 'crash', 'rate_limit', 'busy',
    'capacity', 'not_found', 'method', 'interrupted', 'system'))

_OWN_FILE = sys._getframe().f_code.co_filename
_traceback_of = BaseException.__traceback__.__get__
_module_of = type.__dict__['__module__'].__get__


def _safe_string(value, what, func=str):
    """Stand in for the function of this name in traceback: cut early, and can be interrupted."""
    try:
        text = func(value)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f'<{what} {func.__name__}() failed>'
    return shorten(text, MAX_TEXT)


_modules = dict(sys.modules)  # those that our copies of modules import, now and later


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    """Serve as __import__ for our copies of modules."""
    if name not in _modules:
        return __import__(name, globals, locals, fromlist, level)
    return _modules[name if fromlist else name.partition('.')[0]]


def _own_copy(name):
    """Load a second copy of a standard module: user code may patch the one that it can import."""
    spec = find_spec(name)
    module = _modules[name] = module_from_spec(spec)
    vars(module)['__builtins__'] = {**__builtins__, '__import__': _import}
    spec.loader.exec_module(module)
    return module


for _name in ('ast', 'contextlib', 'linecache', 'traceback'):  # each needs some of those before it
    _own_copy(_name)
_linecache, _traceback = _modules['linecache'], _modules['traceback']
_traceback._safe_string = _safe_string


def describe(exc, name):
    """Return (type, message in UTF-8, line or None) for EXC, which ended the call NAME.

    May run code of the user and raise what that raises.
    """
    kind = type(exc)
    line = _line_of(exc, name)
    cut = _cut_chain(exc)
    copy_to(_linecache.cache)
    try:
        report = _traceback.TracebackException(
            kind, exc, _traceback_of(exc), limit=-MAX_FRAMES, compact=True)
        _tidy(report)
        text = ''.join(report.format())
    finally:
        _linecache.cache.clear()
    if cut:
        text = '[earlier exceptions left out]\n\n' + text
    return _type_of(kind), _message(text, name, line), line


def describe_bare(exc, name):
    """Do the same without any code of the user: for when describe() has failed."""
    kind = type(exc)
    line = _line_of(exc, name)
    text = type_name(kind)
    if kind is not KeyboardInterrupt:
        text += ': <exception could not be shown>'
    return _type_of(kind), _message(text, name, line), line


def _type_of(kind):
    name = type_name(kind)
    if name in SERVICE_TYPES:
        return clean_name(_module_of(kind)) + '.' + name
    return name


def _line_of(exc, name):
    """Return the line of the innermost frame of EXC in the code NAME, or of its SyntaxError."""
    line = None
    tb = _traceback_of(exc)
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == name:
            line = tb.tb_lineno
        tb = tb.tb_next
    if line is None and type(exc) in (SyntaxError, IndentationError, TabError):
        if type(exc.filename) is str and exc.filename == name and type(exc.lineno) is int:
            line = exc.lineno
            lines = shown_lines(name)
            if exc.text is None and 0 < line <= len(lines):
                exc.text = lines[line - 1]  # for a real file, Python reads it there
    return line if line and 0 < line < 2**32 else None


def _cut_chain(exc):
    """Cut the chain of causes and contexts of EXC after MAX_CHAIN; tell whether it was longer.

    A recursion with try and except in it makes a thousand links of up to a thousand frames each.
    """
    for _ in range(MAX_CHAIN):
        older = exc.__cause__
        if older is None and not exc.__suppress_context__:
            older = exc.__context__
        if older is None:
            return False
        exc = older
    if exc.__cause__ is None and exc.__context__ is None:
        return False
    exc.__cause__ = exc.__context__ = None
    return True


def _tidy(report):
    """Take our own frames and overlong text out of a TracebackException and all below it."""
    reports = [report]
    while reports:
        report = reports.pop()
        report.stack[:] = [frame for frame in report.stack if frame.filename != _OWN_FILE]
        for part, limit in (('text', MAX_LINE), ('msg', MAX_TEXT)):  # of a SyntaxError
            value = getattr(report, part, None)
            if value is not None:
                setattr(report, part, shorten(value, limit) if type(value) is str else None)
        reports += [below for below in (report.__cause__, report.__context__) if below]
        reports += report.exceptions or ()


def _message(text, name, line):
    head = b'PythonError: '
    tail = _context(name, line).encode('utf-8', 'backslashreplace')
    body = text.removesuffix('\n').encode('utf-8', 'backslashreplace')
    return head + _cut_middle(body, MAX_MESSAGE - len(head) - len(tail)) + tail


def _cut_middle(body, room):
    """Cut UTF-8 to ROOM bytes, keeping more of the end: there stands what went wrong."""
    if len(body) <= room:
        return body
    keep = room - 64
    first, last = body[:keep // 4], body[len(body) - keep + keep // 4:]
    return b'%s\n... [%d bytes cut] ...\n%s' % (
        first.decode('utf-8', 'ignore').encode(), len(body) - keep,
        last.decode('utf-8', 'ignore').encode())


def _context(name, line):
    """Return the lines around LINE, numbered, below their heading; nothing without a line."""
    lines = shown_lines(name)
    if line is None or not lines:
        return ''
    rows = []
    for number in range(max(1, line - MAX_CONTEXT), min(len(lines), line + MAX_CONTEXT) + 1):
        rows.append(f'{number}: ' + lines[number - 1].removesuffix('\n'))
    return '\n\nCode context:\n' + '\n'.join(rows)
