# SPDX-License-Identifier: MIT
"""JSON as the standard has it, without what Python's reader lets through."""

import json
import math


def loads(data):
    """The value of the UTF-8 bytes `data`; ValueError for anything that is not strictly JSON.

    Refused beyond what json.loads refuses: NaN and the infinities, numbers that overflow to
    one, duplicate members, bytes that are not UTF-8, and escapes of lone surrogates.
    """
    value = json.loads(
        data.decode("utf-8"),
        parse_constant=_refuse_constant,
        parse_float=_finite,
        object_pairs_hook=_unique_members,
    )
    if b"\\u" in data:
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # half a surrogate pair ends here
    return value


def _refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def _finite(text):
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number beyond every float")
    return number


def _unique_members(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member stands twice in one object")
    return members
