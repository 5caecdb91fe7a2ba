# SPDX-License-Identifier: MIT
"""plt.show() without a screen: every open figure becomes figure_N.png in the working directory."""

import builtins
from os.path import lexists

__builtins__ = dict(vars(builtins))  # a copy for us: user code may rebind or delete its own

_number = 0  # of the last figure written in this session


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


def _write(figure):
    """Save FIGURE under the next number whose name is free.

    A name can be taken although the number was never used: by an upload, or by the interpreter
    that this one replaced.
    """
    global _number
    number = _number + 1
    while lexists(f'figure_{number}.png'):
        number += 1
    figure.savefig(f'figure_{number}.png')
    _number = number
