# SPDX-License-Identifier: MIT
"""plt.show() writes figures to files."""

import re

import pytest

PNG = b"\x89PNG\r\n\x1a\n"


def files(worker):
    return sorted(path.name for path in worker.home.iterdir())


def test_show_writes_the_figure_and_closes_it(full_worker):
    result = full_worker.run("plt.plot([1, 2])\nplt.show()\nplt.get_fignums()")
    assert (result.value, result.out, result.err) == ([], "", "")
    assert files(full_worker) == ["figure_1.png"]
    assert (full_worker.home / "figure_1.png").read_bytes().startswith(PNG)


def test_all_open_figures_in_the_order_of_their_numbers(full_worker):
    full_worker.run("for n in (3, 1, 2):\n    plt.figure(n, figsize=(n, 1))\nplt.show(block=True)")
    sizes = full_worker.value("[plt.imread(f'figure_{n}.png').shape[1] for n in (1, 2, 3)]")
    assert sizes == [100, 200, 300]


def test_numbers_count_up_in_the_session(full_worker):
    full_worker.run("for i in range(2):\n    plt.figure(); plt.plot([i]); plt.show()")
    full_worker.run("plt.plot([7]); plt.show()")
    assert files(full_worker) == ["figure_1.png", "figure_2.png", "figure_3.png"]
    full_worker.run("import os; os.remove('figure_3.png'); plt.plot([7]); plt.show()")
    assert files(full_worker) == ["figure_1.png", "figure_2.png", "figure_4.png"]


def test_no_file_is_overwritten(full_worker):
    (full_worker.home / "figure_1.png").write_text("uploaded")
    (full_worker.home / "figure_2.png").symlink_to("nowhere")
    full_worker.run("plt.plot([7]); plt.show()")
    assert files(full_worker) == ["figure_1.png", "figure_2.png", "figure_3.png"]
    assert (full_worker.home / "figure_1.png").read_text() == "uploaded"


@pytest.mark.parametrize("show", [
    "import matplotlib\nmatplotlib.use('Agg')\nplt.plot([1]); plt.show()",
    "from matplotlib.pyplot import show\nplt.plot([1]); show()",
    "from pylab import *\nplot([1]); show()",
    "plt.switch_backend('agg')\nplt.plot([1]); plt.show()",
    "fig, ax = plt.subplots()\nfig.show()",
    "pd.Series([1, 2]).plot.bar()\nplt.show()",
])
def test_ways_to_show(full_worker, show):
    result = full_worker.run(show)
    assert (result.ok, result.err) == (True, "")
    assert files(full_worker) == ["figure_1.png"]
    assert full_worker.value("plt.get_fignums()") == []


def test_show_without_a_figure(full_worker):
    result = full_worker.run("plt.show()")
    assert (result.ok, result.err, files(full_worker)) == (True, "", [])


def test_a_figure_left_open_is_there_in_the_next_call(full_worker):
    full_worker.run("plt.plot([1])")
    assert files(full_worker) == []
    full_worker.run("plt.title('x'); plt.savefig('b.png')")
    assert files(full_worker) == ["b.png"]
    assert full_worker.value("len(plt.get_fignums())") == 1


def test_show_goes_where_the_code_stands(full_worker):
    full_worker.run("import os; os.mkdir('d'); os.chdir('d'); plt.plot([1]); plt.show()")
    assert files(full_worker) == ["d"] and (full_worker.home / "d" / "figure_1.png").exists()


def test_a_figure_that_cannot_be_written_is_an_error_and_stays_open(full_worker):
    full_worker.run("import os; os.mkdir('d'); os.chdir('d'); os.rmdir('../d')\nplt.plot([1])")
    result = full_worker.run("import os\nos.mkdir('e'); os.chdir('e'); os.rmdir('../e')\n"
                             "plt.show()")
    assert (result.error, result.line) == ("FileNotFoundError", 3)
    assert "<vivarium>" not in result.message
    full_worker.run("plt.show()")
    assert files(full_worker) == ["figure_1.png"]


# What matplotlib has to say goes to std_err; the code that shows, not what serves it, is its place

MISSING = "plt.title('\u4e2d')"


@pytest.mark.parametrize("show", ["plt.show()", "plt.gcf().show()", "(lambda: plt.show())()"])
def test_a_warning_names_the_line_that_shows(full_worker, show):
    saved = full_worker.run(f"{MISSING}\nplt.savefig('a.png')").err
    assert "UserWarning: Glyph 20013" in saved and ":2: " in saved
    shown = full_worker.run(f"plt.close()\n{MISSING}\n\n{show}").err
    assert shown.count("UserWarning") == saved.count("UserWarning")
    assert ":4: " in shown and f"\n  {show}\n" in shown
    assert "<vivarium>" not in shown


def test_a_warning_is_shown_once_for_each_line(full_worker):
    result = full_worker.run(f"for _ in range(2):\n    {MISSING}; plt.show()\n"
                             f"{MISSING}\nplt.show()")
    assert sorted(set(re.findall(r":(\d+): UserWarning", result.err))) == ["2", "4"]
    assert result.err.count(":2: UserWarning: Glyph 20013") \
        == result.err.count(":4: UserWarning: Glyph 20013")


def test_a_warning_that_is_an_error_has_a_traceback_without_us(full_worker):
    result = full_worker.run(f"import warnings\nwarnings.simplefilter('error')\n{MISSING}\n"
                             "def f():\n    plt.show()\nf()")
    assert (result.error, result.line) == ("UserWarning", 5)
    assert "<vivarium>" not in result.message and result.message.count("line 5, in f") == 1
    assert "savefig" in result.message


def test_filters_of_the_code_hold(full_worker):
    result = full_worker.run(f"import warnings\nwarnings.simplefilter('ignore')\n{MISSING}\n"
                             "plt.show()")
    assert (result.ok, result.err) == (True, "")


@pytest.mark.parametrize("start, place", [
    ("t = threading.Thread(target=plt.show); t.start(); t.join()", "threading.py:"),
    ("_thread.start_new_thread(plt.show, ())\nwhile plt.get_fignums(): time.sleep(.01)", "sys:1:"),
])
def test_a_thread_that_does_nothing_but_show(full_worker, start, place):
    result = full_worker.run(f"import threading, _thread, time\n{MISSING}\n{start}")
    assert "UserWarning: Glyph" in result.err and "<vivarium>" not in result.err
    assert place in result.err
    assert files(full_worker) == ["figure_1.png"]


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf"])
def test_no_file_of_a_font_stays_open(full_worker, name):
    count = "import os; len(os.listdir('/proc/self/fd'))"
    before = full_worker.value(count)
    full_worker.run(f"fig, ax = plt.subplots(); ax.set_title('$x^2$'); ax.plot([1])\n"
                    f"fig.savefig({name!r})")
    assert full_worker.value(count) == before
    full_worker.run(f"fig.savefig('again-{name}')")
    assert files(full_worker) == [name, f"again-{name}"]
