# SPDX-License-Identifier: MIT
"""plt.show() returns figures as files; saving them works without a display."""

from support.program import program

PNG = b"\x89PNG\r\n\x1a\n"


def test_show_writes_the_figure_and_closes_it(session):
    answer = session.exec(program("""
        plt.plot([1, 2])
        plt.show()
        plt.get_fignums()
    """))
    assert answer.value == []
    assert list(answer.files) == ["figure_1.png"]
    assert answer.files["figure_1.png"].startswith(PNG)
    assert answer.std_err == ""


def test_every_open_figure_is_shown(session):
    answer = session.exec(program("""
        for i in range(3):
            plt.figure(); plt.plot([i])
        plt.show()
    """))
    assert list(answer.files) == ["figure_1.png", "figure_2.png", "figure_3.png"]
    assert len(set(answer.files.values())) == 3


def test_the_numbers_count_up_in_the_session(session):
    first = session.exec("for i in range(2):\n    plt.figure(); plt.plot([i]); plt.show()")
    assert list(first.files) == ["figure_1.png", "figure_2.png"]
    second = session.exec("plt.plot([7]); plt.show()")
    assert list(second.files) == ["figure_3.png"]


def test_show_without_a_figure_writes_nothing(session):
    answer = session.exec("plt.show()")
    assert answer.success
    assert (answer.files, answer.std_err) == ({}, "")


def test_show_goes_to_the_home_directory_or_where_the_code_stands(session):
    answer = session.exec("import os; os.mkdir('d'); os.chdir('d'); plt.plot([1]); plt.show()")
    assert len(answer.files) == 1
    assert next(iter(answer.files)).endswith("figure_1.png")


def test_a_figure_left_open_is_there_in_the_next_call(session):
    assert session.exec("plt.plot([1])").files == {}
    answer = session.exec("plt.title('x'); plt.savefig('b.png')")
    assert list(answer.files) == ["b.png"]


def test_savefig_in_all_formats(session):
    answer = session.exec(program("""
        fig, ax = plt.subplots()
        ax.bar(['a', 'b'], [1, 2])
        ax.set_title(r'$x^2$')
        for kind in ('png', 'svg', 'pdf', 'jpg'): fig.savefig('plot.' + kind)
    """))
    assert sorted(answer.files) == ["plot.jpg", "plot.pdf", "plot.png", "plot.svg"]
    assert answer.files["plot.png"].startswith(PNG)
    assert answer.std_err == ""


def test_the_plots_of_pandas(session):
    answer = session.exec(program("""
        df = pd.DataFrame({'city': ['a', 'b', 'a'], 'x': [1, 2, 3]})
        df.groupby('city').x.sum().plot.bar()
        plt.show()
        df.x.sum()
    """))
    assert answer.value == 6
    assert answer.files["figure_1.png"].startswith(PNG)


def test_a_plot_before_an_error_comes_with_it(session):
    answer = session.exec("plt.plot([1]); plt.show()\n1 / 0")
    assert answer.error_type == "ZeroDivisionError"
    assert list(answer.files) == ["figure_1.png"]
