# SPDX-License-Identifier: MIT
"""The value of a call's last expression, as JSON text.

What JSON can say exactly comes as JSON; any other value comes whole as its repr, in a JSON string.
Code of the user runs here only as the __repr__ of a value. Knows nothing of calls or of the wire.
"""

import builtins
import re
import sys
from _json import encode_basestring as quote
from math import isfinite

__builtins__ = dict(vars(builtins))  # a copy for us: user code may rebind or delete its own

MAX_DEPTH = 60
MAX_NAME = 200
INT_MIN, INT_MAX = -2**63, 2**63 - 1

_SURROGATE = re.compile('[\ud800-\udfff]')
_BAD_IN_KEY = re.compile('[\0\ud800-\udfff]')  # parsers refuse NUL; cleaned, two could become one
_WHOLE_ESCAPES = re.compile(rb'(?:[^\\]+|\\u[0-9a-f]{4}|\\[^u])*')
_name_of = type.__dict__['__name__'].__get__  # a metaclass may bear a __name__ of its own

_numpy_scalars = {}  # exact type of a numpy scalar -> what makes a plain value of it


class _NotJson(Exception):
    """The value, or something in it, has no exact JSON form."""


class _TooLong(Exception):
    """The JSON text would be longer than the limit."""


def clean_name(name):
    """Return NAME as a short string without control characters and surrogates."""
    name = str.__getitem__(name, slice(MAX_NAME)) if issubclass(type(name), str) else ''
    if not name.isprintable():
        name = ''.join([c if c.isprintable() else '\ufffd' for c in name])
    return name or '?'


def type_name(kind):
    """Return the name of the type KIND, whatever its class says of itself."""
    return clean_name(_name_of(kind))


def learn_numpy():
    """Take numpy's scalar types into account, if numpy is loaded."""
    numpy = sys.modules.get('numpy')
    try:
        kinds = (numpy.bool_, numpy.integer, numpy.floating, numpy.str_)
        for kind in vars(numpy).values():
            if (issubclass(type(kind), type) and issubclass(kind, kinds)
                    and not issubclass(kind, numpy.timedelta64)):
                _numpy_scalars[kind] = kind.item
        _numpy_scalars[numpy.longdouble] = float  # its item() is a longdouble again
    except (AttributeError, TypeError):
        pass  # not loaded, or not numpy at all


def render(value, limit):
    """Return (JSON text of VALUE in UTF-8, of at most LIMIT bytes, whether it was cut).

    LIMIT is 2 or more. What a __repr__ of the user raises goes to the caller.
    """
    cut = False
    try:
        text = _encode(_dump(value, limit, 0))
        if len(text) <= limit:
            return text, False
        cut = True
    except _TooLong:
        cut = True
    except (_NotJson, RuntimeError):  # RuntimeError: a thread changes the dict meanwhile
        pass
    shown = repr(value)  # may be of a subclass of str: use it by str's own methods alone
    cut = cut or str.__len__(shown) > limit
    text = _encode(quote(str.__getitem__(shown, slice(limit))))
    if len(text) <= limit:
        return text, cut
    text = _WHOLE_ESCAPES.match(text[:limit - 1]).group()
    return text.decode('utf-8', 'ignore').encode() + b'"', True


def _encode(text):
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub('\ufffd', text).encode()


def _dump(value, room, depth):
    """Return VALUE as JSON text of about ROOM characters at most, or raise."""
    kind = type(value)  # exact types only: a subclass may mean something else, its repr says what
    if kind is str:
        if len(value) > room:
            raise _TooLong
        return quote(value)
    if kind is int:
        if INT_MIN <= value <= INT_MAX:
            return repr(value)
        raise _NotJson
    if value is None:
        return 'null'
    if kind is bool:
        return 'true' if value else 'false'
    if kind is float:
        if isfinite(value):
            return repr(value)
        raise _NotJson
    if kind is list or kind is tuple:
        return _dump_list(value, room, depth + 1)
    if kind is dict:
        return _dump_dict(value, room, depth + 1)
    if not _numpy_scalars:
        learn_numpy()
    plain = _numpy_scalars.get(kind)
    if plain is None:
        raise _NotJson
    return _dump(plain(value), room, depth)


def _dump_list(value, room, depth):
    if depth > MAX_DEPTH:  # also what ends a list that holds itself
        raise _NotJson
    parts = []
    for item in value:
        text = _dump(item, room, depth)
        room -= len(text) + 1
        if room < 0:
            raise _TooLong
        parts.append(text)
    return '[' + ','.join(parts) + ']'


def _dump_dict(value, room, depth):
    if depth > MAX_DEPTH:
        raise _NotJson
    parts = []
    for key, item in value.items():
        if type(key) is not str or _BAD_IN_KEY.search(key):
            raise _NotJson
        text = _dump(key, room, depth) + ':' + _dump(item, room, depth)
        room -= len(text) + 1
        if room < 0:
            raise _TooLong
        parts.append(text)
    return '{' + ','.join(parts) + '}'
