# SPDX-License-Identifier: MIT
"""plt.show() without a screen: every open figure becomes figure_N.png in the working directory.

And the fonts of figures, whose files matplotlib would keep open.
"""

import builtins
import gc
from os.path import lexists
from sys import _getframe
from types import FunctionType

__builtins__ = dict(vars(builtins))  # a copy for us: user code may rebind or delete its own

_number = 0  # of the last figure written in this session
_fonts = ()  # the caches that hold fonts, with their files
_formulas = None  # that of mathtext, whose fonts are in reference cycles


def install(pyplot):
    """Let pyplot.show(), and a figure's own show(), write files; PYPLOT is loaded with Agg."""
    from matplotlib._pylab_helpers import Gcf
    from matplotlib.backend_bases import FigureManagerBase

    def show(*args, **kwargs):
        """Write every open figure to figure_N.png and close it. Arguments change nothing."""
        for manager in sorted(Gcf.get_all_fig_managers(), key=lambda manager: manager.num):
            manager.show()

    def show_one(manager):
        """Write the figure to figure_N.png and close it."""
        _write(manager.canvas.figure)
        pyplot.close(manager.num)

    FigureManagerBase.show = show_one
    pyplot.show = show
    _learn_fonts()


def _learn_fonts():
    global _fonts, _formulas
    from matplotlib import font_manager, mathtext

    _formulas = mathtext.MathTextParser._parse_cached
    _fonts = font_manager._get_font, _formulas


def has_open_fonts():
    """Whether matplotlib has used a font since close_fonts()."""
    return any(cache.cache_info().currsize for cache in _fonts)


def close_fonts():
    """Close the files of fonts: no checkpoint is made of a session with an open file."""
    has_formulas = _formulas is not None and _formulas.cache_info().currsize
    for cache in _fonts:
        cache.cache_clear()
    if has_formulas:
        gc.collect()


def _write(figure):
    """Save FIGURE under the next number whose name is free.

    A name can be taken although the number was never used: by an upload, or by the interpreter
    that this one replaced.
    """
    global _number
    number = _number + 1
    while lexists(f'figure_{number}.png'):
        number += 1
    _save_as_caller(figure, f'figure_{number}.png')
    _number = number


_OWN_FILE = _getframe().f_code.co_filename
_SAVE = (lambda figure, name: figure.savefig(name)).__code__


def _save_as_caller(figure, name):
    """Save FIGURE as if the code that showed it had done so.

    Warnings name the place in the code that called the library, as `warnings` sees it: the first
    frame outside of matplotlib. That would be ours, so a frame that looks like the caller's makes
    the call. It is taken out of the traceback, which has the true one already.
    """
    frame = _getframe(1)
    while frame and _is_inner(frame):
        frame = frame.f_back
    if frame:
        code = _SAVE.replace(co_filename=frame.f_code.co_filename,
                             co_firstlineno=frame.f_lineno or 1)
        space = frame.f_globals
    else:  # a thread that runs nothing but show(); `warnings` calls such a place sys:1
        code, space = _SAVE.replace(co_filename='sys', co_firstlineno=1), {'__name__': 'sys'}
    try:
        FunctionType(code, space)(figure, name)
    except BaseException as exc:
        tb = exc.__traceback__
        if tb.tb_next:
            tb.tb_next = tb.tb_next.tb_next
        raise


def _is_inner(frame):
    """Whether it is a frame of this file or of matplotlib."""
    module = frame.f_globals.get('__name__')
    return (frame.f_code.co_filename == _OWN_FILE
            or type(module) is str and module.partition('.')[0] in ('matplotlib', 'mpl_toolkits'))
