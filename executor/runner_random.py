# SPDX-License-Identifier: MIT
"""numpy's global random generator, which every fork of the zygote would have in the same state.

random is seeded anew by CPython after a fork, numpy's generator is not. Setting its state through
numpy copies some 70 pages of shared memory into the session; writing it where it lies copies one.
"""

import os
import sys
from ctypes import c_char

WORDS = 624                     # of the state of MT19937
_SIZE = 4 * WORDS
_POSITION = WORDS.to_bytes(4, sys.byteorder)  # all words are used up: the next draw makes new ones

_set_state = None               # of numpy's global generator, or None
_memory = None                  # its words and its position, or None


def learn(numpy):
    """Find where the generator keeps its state; in the zygote, once."""
    global _set_state, _memory
    _set_state = numpy.random.set_state
    try:
        address = numpy.random.mtrand._rand._bit_generator.ctypes.state_address
        memory = memoryview((c_char * (_SIZE + 4)).from_address(address)).cast('B')
    except (AttributeError, TypeError):
        return
    _memory = memory if _is_state(numpy, memory) else None


def _is_state(numpy, memory):
    """Whether what is written to MEMORY is the generator's state, and nothing else is changed."""
    words = numpy.arange(WORDS, dtype='u4')
    _set_state(('MT19937', words, 7, 0, 0.0))
    if memory.tobytes() != words.tobytes() + (7).to_bytes(4, sys.byteorder):
        return False
    memory[:] = words[::-1].tobytes() + _POSITION
    kind, seen, position, has_gauss, _ = numpy.random.get_state()
    return (kind, position, has_gauss) == ('MT19937', WORDS, 0) and (seen == words[::-1]).all()


def reseed():
    """Give the generator a state of its own; in each worker."""
    if _set_state is None:
        return
    words = os.urandom(_SIZE)
    if _memory is not None:
        _memory[:] = words + _POSITION
    else:
        _set_state(('MT19937', memoryview(words).cast('I'), WORDS, 0, 0.0))
