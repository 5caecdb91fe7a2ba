# SPDX-License-Identifier: MIT
"""The Python side of a worker: runs the calls of one session in the real __main__.

The zygote calls prepare() once. Each worker, a fork of it inside a sandbox, calls begin() once and
then run() for every call. What run() returns are claims: this process also runs the user's code,
and the sandbox is the boundary, not this file. But whatever user code breaks in the interpreter
without aiming at us, the next call must find it working. Hence two rules here: names are bound
when the module is loaded, before any user code; and user code runs only below _guarded().
"""

import builtins
import gc
import importlib
import io
import os
import random
import sys
import threading
import warnings
from _io import BytesIO, FileIO, TextIOWrapper
from _signal import (ITIMER_PROF, ITIMER_REAL, ITIMER_VIRTUAL, SIG_UNBLOCK, SIGINT,
                     default_int_handler, pthread_sigmask, setitimer, signal)
from fcntl import F_DUPFD_CLOEXEC, fcntl
from functools import partial
from os import chdir, dup2, getcwd, set_blocking
from resource import RLIMIT_NOFILE, getrlimit
from struct import Struct
from sys import getprofile, getrecursionlimit, gettrace, setprofile, setrecursionlimit, settrace

import _vivarium_figures
import _vivarium_random
from _vivarium_code import NO_VALUE, evaluate, touch  # noqa: F401 - it is called from C
from _vivarium_error import describe, describe_bare
from _vivarium_source import forget
from _vivarium_value import learn_numpy, render, type_name

__builtins__ = dict(vars(builtins))  # a copy for us: user code may rebind or delete its own

_home = '/home/earth'

# A result is a row of (u8 tag, u32 length, payload), little-endian. What is absent is null.
TAG_STATUS = 1           # u8, one of the two below
TAG_VALUE = 2            # of the last statement, JSON text
TAG_VALUE_TYPE = 3       # name of its type
TAG_VALUE_CUT = 4        # u8 1: the value was longer than max_result
TAG_ERROR_TYPE = 5
TAG_ERROR_MESSAGE = 6
TAG_ERROR_LINE = 7       # u32
STATUS_DONE, STATUS_ERROR = b'\0', b'\1'

PREDEFINED = {'np': 'numpy', 'pd': 'pandas', 'plt': 'matplotlib.pyplot'}
NOT_PROVIDED = ('pip', 'ensurepip', 'setuptools', 'pkg_resources', '_distutils_hack', 'wheel')
ONE_THREAD = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'NUMEXPR_MAX_THREADS')
PLAIN_LENGTH = 4096      # characters
RECURSION_LIMIT = 1000   # the least that a call begins and ends with
MAX_DESCRIPTORS = 1024   # our copies of 0, 1 and 2 are below this and below the limit
RESERVES = 4             # for so many times in a row that the code uses up all memory
RESERVE_SIZE = 2 << 20   # bytes of address space to go on with

_TIMERS = (ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF)

_header = Struct('<BI').pack
_u32 = Struct('<I').pack
_exit_status = SystemExit.code.__get__
_sys = vars(sys)         # user code may delete sys.stdout, but not this
_modules = sys.modules
_importers = sys.path_importer_cache

_main = None             # the module __main__
_space = None            # its namespace
_reserve = []            # never touched, so it costs no memory
_descriptors = ()        # (our copy, descriptor) of 0, 1 and 2
_stdout = _stderr = None
_interrupted = False     # an interrupt came in this call while no user code ran


def _tlv(tag, payload):
    return _header(tag, len(payload)) + payload


def _failed(kind, message):
    return (_tlv(TAG_STATUS, STATUS_ERROR) + _tlv(TAG_ERROR_TYPE, kind)
            + _tlv(TAG_ERROR_MESSAGE, b'PythonError: ' + message))


# For when nothing else can be said. Made now: there may be no memory to make them later.
_NO_MEMORY = _failed(b'MemoryError', b'MemoryError')
_NO_ANSWER = _failed(b'SystemError', b'SystemError: the outcome of the call could not be told')


# In the zygote

def prepare(modules):
    """Import MODULES and make all ready to be forked. A missing module is an ImportError."""
    global _main, _space
    for name in ONE_THREAD:  # numexpr and OpenBLAS start threads when they are imported
        os.environ.setdefault(name, '1')
    if any(name.partition('.')[0] == 'matplotlib' for name in modules):
        importlib.import_module('matplotlib').use('agg')
    for name in modules:
        importlib.import_module(name)
    learn_numpy()
    _main = _modules['__main__']
    _space = vars(_main)
    _space.update({short: _modules[name] for short, name in PREDEFINED.items()
                   if name in _modules})
    if 'matplotlib.pyplot' in _modules:
        _vivarium_figures.install(_modules['matplotlib.pyplot'])
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        _warm_up(_modules.get('pandas'), _modules.get('matplotlib.pyplot'))
    for name in NOT_PROVIDED:
        _modules[name] = None
    sys.meta_path[:] = [finder for finder in sys.meta_path
                        if getattr(finder, '__module__', None) != '_distutils_hack']
    _refuse_threads()
    _fill_reserve()
    if 'numpy' in _modules:
        _vivarium_random.learn(_modules['numpy'])
    _vivarium_figures.close_fonts()  # else matplotlib does it in each fork
    gc.collect()
    gc.freeze()


def _refuse_threads():
    """Fail if a library has started threads: a fork would have their locks, but not them."""
    try:
        count = len(os.listdir('/proc/self/task'))
    except OSError:
        count = threading.active_count()
    if count > 1:
        raise RuntimeError(f'importing the modules has started {count - 1} threads')


def _warm_up(pandas, pyplot):
    """Do once what first use makes slow: caches fill, and the pages are shared by all sessions."""
    if pandas is not None:
        frame = pandas.DataFrame({'key': list('aab'), 'x': [1, 2, 3], 'y': [0.5, 1.5, None]})
        frame.groupby('key').agg({'x': 'sum', 'y': 'mean'}).reset_index().to_string()
        frame.merge(frame.describe().reset_index(), how='left', left_on='x', right_on='x')
        pandas.read_csv(io.StringIO(frame.to_csv(index=False)))
        repr(frame), frame._repr_html_()
    if pyplot is not None:
        figure, (left, right) = pyplot.subplots(1, 2)
        left.plot([1, 3, 2], label='line')
        left.scatter([0, 1], [1, 2])
        left.set(title='title', xlabel='x', ylabel='y')
        left.legend()
        left.grid(True)
        right.bar(['a', 'b'], [1, 2])
        right.hist([1, 2, 2])
        figure.tight_layout()
        figure.savefig(io.BytesIO(), format='png')
        pyplot.close('all')


# In the worker

def begin(home_is_here=False):
    """Make a fresh fork the interpreter of a session.

    HOME_IS_HERE: its home, beside which is its /tmp, cannot have the path /home/earth.
    """
    global _descriptors, _home
    if home_is_here:
        _home = os.getcwd()
        os.environ.update(HOME=_home, TMPDIR=os.path.join(os.path.dirname(_home), 'tmp'))
    random.seed()
    _vivarium_random.reseed()
    if 'tempfile' in _modules:
        _modules['tempfile'].tempdir = _modules['tempfile']._name_sequence = None
    sys.argv = ['']
    sys.path.insert(0, '')  # the working directory, as in any interactive interpreter
    limit = getrlimit(RLIMIT_NOFILE)[0]
    above = (min(limit, MAX_DESCRIPTORS) if limit >= 0 else MAX_DESCRIPTORS) - 8
    _descriptors = tuple((fcntl(fd, F_DUPFD_CLOEXEC, above), fd) for fd in (0, 1, 2))
    signal(SIGINT, _on_interrupt)
    run(b"print(end='')\n0", None, 0, 16)  # touches the pages that the first call would fault in
    forget('<exec-0>')
    for name in ('stdin', 'stdout', 'stderr'):
        _sys[f'__{name}__'] = _sys[name]


def run(code, stdin, number, max_result, late_interrupt=True):
    """Run one call and return its outcome as a row of tagged fields. Raises nothing.

    CODE and STDIN are bytes of UTF-8, STDIN may be None; NUMBER counts the calls of the session;
    MAX_RESULT bounds the JSON text of the value in bytes. An interrupt that is there already is
    for this call, unless with LATE_INTERRUPT it may be one for the call before.
    """
    global _interrupted
    if late_interrupt:
        _interrupted = False
    try:
        return _run(code, stdin, f'<exec-{number}>', max_result)
    except MemoryError:
        if _reserve:
            _reserve.pop()
        return _NO_MEMORY
    except BaseException:  # a handler or hook of the user, in the middle of our own code
        return _NO_ANSWER


def _run(code, stdin, name, max_result):
    _restore(stdin)
    try:
        value, exc = _guarded(evaluate, code, name, _space)
        answer = _tlv(TAG_STATUS, STATUS_DONE)
        if exc is None and value is not NO_VALUE:
            if _is_plain(value):
                rendered = render(value, max_result)
            else:
                rendered, exc = _guarded(render, value, max_result)
            if exc is None:
                answer += _tell_value(value, *rendered)
        if exc is not None and not _is_quiet_exit(exc):
            answer = _tell_error(exc, name)
        if not _is_flushed():
            _guarded(_flush)
        if _vivarium_figures.has_open_fonts():
            _guarded(_vivarium_figures.close_fonts)
        return answer
    finally:
        value = exc = None  # the frames of the traceback keep this one: else a cycle


def _is_plain(value):
    """Whether rendering VALUE takes no time worth an interrupt and runs no code of the user."""
    kind = type(value)
    if kind is int:
        return value.bit_length() < 64
    if kind is str:
        return len(value) < PLAIN_LENGTH
    return value is None or kind is float or kind is bool


def _tell_value(value, text, is_cut):
    told = _tlv(TAG_VALUE, text) + _tlv(TAG_VALUE_TYPE, type_name(type(value)).encode())
    return told + _tlv(TAG_VALUE_CUT, b'\1') if is_cut else told


def _tell_error(exc, name):
    try:
        told, trouble = _guarded(describe, exc, name)
        if trouble is not None:
            told = describe_bare(trouble if type(trouble) is KeyboardInterrupt else exc, name)
    finally:
        exc = trouble = None
    kind, message, line = told
    answer = (_tlv(TAG_STATUS, STATUS_ERROR) + _tlv(TAG_ERROR_TYPE, kind.encode())
              + _tlv(TAG_ERROR_MESSAGE, message))
    return answer if line is None else answer + _tlv(TAG_ERROR_LINE, _u32(line))


def _is_quiet_exit(exc):
    """Whether EXC is SystemExit with status 0 or none."""
    if not issubclass(type(exc), SystemExit):
        return False
    status = _exit_status(exc)
    return status is None or issubclass(type(status), int) and int.__eq__(status, 0)


# Interrupts

def _note_interrupt(signum, frame):
    """Handle SIGINT outside user code: should more of it run in this call, it ends at once."""
    global _interrupted
    _interrupted = True


# The handler, which is always the same object. It is made to raise while user code runs; in C,
# because a handler in Python cannot even be called where the code has used up the recursion limit.
# It is not default_int_handler itself, for which asyncio puts in one that only cancels a task.
_on_interrupt = partial(_note_interrupt)
_arm = partial(_on_interrupt.__setstate__, (default_int_handler, (), None, None))
_disarm = partial(_on_interrupt.__setstate__, (_note_interrupt, (), None, None))


def _guarded(function, *args):
    """Call FUNCTION, which runs user code; return (its result, None) or (None, what it raised).

    Only meanwhile does an interrupt raise. One that strikes in here does so once: handlers run
    after a call, and the call that comes first then is the one that disarms. Hooks and signal
    handlers of the user can strike until _settle() is through; the outer handler catches those.
    """
    global _interrupted
    try:
        try:
            _arm()
            if _interrupted:
                _interrupted = False
                raise KeyboardInterrupt
            result = function(*args)
            _disarm()
            _settle()
            return result, None
        except BaseException as exc:
            _disarm()
            if type(exc) is MemoryError and _reserve:
                _reserve.pop()
            _settle()
            return None, exc
    except BaseException as exc:
        _settle()
        return None, exc


# What user code may have changed

def _restore(stdin):
    """Make the process one in which a call can run, whatever the earlier calls did to it."""
    global _stdout, _stderr
    for ours, fd in _descriptors:
        try:
            dup2(ours, fd)
            set_blocking(fd, True)
        except OSError:
            pass  # the code has closed even our copy: the session goes on without
    _sys['stdin'] = TextIOWrapper(BytesIO(stdin or b''), 'utf-8', 'strict', '\n')
    _sys['stdout'] = _stdout  # first: the end of what was there may close the file that we share
    _sys['stderr'] = _stderr
    if not _is_whole(_stdout):
        _sys['stdout'] = _stdout = _open_text(1, '<stdout>')
    if not _is_whole(_stderr):
        _sys['stderr'] = _stderr = _open_text(2, '<stderr>')
    _modules['sys'] = sys
    _modules['builtins'] = builtins
    _modules['__main__'] = _main
    _space['__name__'] = '__main__'
    _space['__builtins__'] = builtins
    _space.pop('__warningregistry__', None)  # line 1 of this call is not line 1 of the last one
    try:
        _importers.pop(getcwd(), None)  # modules may have come meanwhile
    except OSError:  # the directory is gone
        try:
            chdir(_home)
        except OSError:
            pass
    if len(_reserve) < RESERVES:
        _fill_reserve()


def _fill_reserve():
    """Set memory aside for when the code uses up all, if more than that is free."""
    try:
        bytes(2 * RESERVES * RESERVE_SIZE)
        while len(_reserve) < RESERVES:
            _reserve.append(bytes(RESERVE_SIZE))
    except MemoryError:
        pass


def _is_whole(stream):
    try:
        return not stream.closed and len(stream.__dict__) == 1
    except (AttributeError, ValueError):  # none yet; detached
        return False


def _open_text(fd, name):
    """Open a descriptor as python -u does: what is written is out, come what may."""
    try:
        raw = FileIO(fd, 'w', closefd=False)
    except OSError:
        return None
    raw.name = name
    stream = TextIOWrapper(raw, 'utf-8', 'backslashreplace', '\n', write_through=True)
    stream.mode = 'w'
    return stream


def _settle():
    """End what user code has set to strike later, in the middle of our own code or when idle."""
    signal(SIGINT, _on_interrupt)
    pthread_sigmask(SIG_UNBLOCK, (SIGINT,))  # so that a late one is not kept for the next call
    for timer in _TIMERS:
        setitimer(timer, 0)
    if getprofile() is not None:
        setprofile(None)
    if gettrace() is not None:
        settrace(None)
    if getrecursionlimit() < RECURSION_LIMIT:
        setrecursionlimit(RECURSION_LIMIT)


def _is_flushed():
    """Whether the streams are ours and still write through."""
    try:
        return (_sys['stdout'] is _stdout and _stdout.write_through
                and _sys['stderr'] is _stderr and _stderr.write_through)
    except (AttributeError, KeyError, ValueError):
        return False


def _flush():
    for name in ('stdout', 'stderr'):
        try:
            _sys[name].flush()
        except Exception:
            pass  # replaced by something else, or deleted
