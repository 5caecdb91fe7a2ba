# SPDX-License-Identifier: MIT
"""The source of the calls so far, so that tracebacks and inspect can show its lines."""

import builtins
import linecache
from io import StringIO

__builtins__ = dict(vars(builtins))  # a copy for us: user code may rebind or delete its own

MAX_LINE = 500          # characters of a line that we show ourselves
MAX_SOURCES = 16 << 20  # bytes, about, of the memory that all sources take; the oldest go first

_public = linecache.cache  # the dict that linecache, and so inspect, looks into
_sources = {}              # the same entries by file name, with cut lines; oldest first
_size = 0                  # of all of them


def shorten(text, limit=MAX_LINE):
    """Return TEXT, a str or of a subclass of it, cut visibly after about LIMIT characters.

    A text that was cut already stays as it is.
    """
    extra = str.__len__(text) - limit
    if extra <= 40:
        return str.__getitem__(text, slice(None))
    return f'{str.__getitem__(text, slice(limit))}... [{extra} characters cut]'


def remember(name, source):
    """Keep SOURCE under the file name NAME and return its lines."""
    global _size
    lines = StringIO(source, None).readlines()
    if lines and lines[-1][-1] != '\n':
        lines[-1] += '\n'
    entry = kept = len(source), None, lines, name
    if len(source) > MAX_LINE and max(map(len, lines)) > MAX_LINE:
        kept = len(source), None, [shorten(line[:-1]) + '\n' for line in lines], name
    if _sources and next(reversed(_sources)) not in _public:
        _public.update(_sources)  # user code has emptied it
    _public[name] = entry
    _sources[name] = kept
    _size += _size_of(entry)
    while _size > MAX_SOURCES and len(_sources) > 1:
        forget(next(iter(_sources)))
    return lines


def forget(name):
    """Drop the source with the file name NAME."""
    global _size
    _size -= _size_of(_sources.pop(name))
    _public.pop(name, None)


def _size_of(entry):
    characters, _, lines, _ = entry
    return 600 + 4 * characters + 100 * len(lines)


def shown_lines(name):
    """Return the lines of the source NAME, long ones cut; none if it is not kept."""
    return _sources[name][2] if name in _sources else []


def copy_to(cache):
    """Put all sources into CACHE, a dict as linecache has it."""
    cache.update(_sources)
