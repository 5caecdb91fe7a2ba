# SPDX-License-Identifier: MIT
"""The value of the last statement, as JSON where it can be and as its repr where it cannot."""

import pytest

from support.program import program

BIG = 2 ** 63


@pytest.mark.parametrize("code, value, kind", [
    ("True", True, "bool"),
    ("False", False, "bool"),
    ("0", 0, "int"),
    (f"{BIG - 1}", BIG - 1, "int"),
    (f"{-BIG}", -BIG, "int"),
    ("1.5", 1.5, "float"),
    ("1e308", 1e308, "float"),
    ("0.1 + 0.2", 0.1 + 0.2, "float"),
    ("''", "", "str"),
    (r"'\" slash \\ newline \n tab \t ü 😀'", '" slash \\ newline \n tab \t ü 😀', "str"),
    (r"'nul \0 escape \x1b delete \x7f'", "nul \0 escape \x1b delete \x7f", "str"),
    ("[]", [], "list"),
    ("[1, 'a', None, True, [2.5]]", [1, "a", None, True, [2.5]], "list"),
    ("(1, (2, 3))", [1, [2, 3]], "tuple"),
    ("{}", {}, "dict"),
    ("{'a': {'b': (1, None)}, '': 0}", {"a": {"b": [1, None]}, "": 0}, "dict"),
    ("import numpy; numpy.int64(7)", 7, "int64"),
    ("numpy.uint8(255)", 255, "uint8"),
    ("numpy.float64(0.5)", 0.5, "float64"),
    ("numpy.float32(0.5)", 0.5, "float32"),
    ("numpy.bool_(True)", True, "bool"),
])
def test_values_that_are_json(shared, code, value, kind):
    answer = shared.exec("import numpy\n" + code)
    assert answer.value == value
    assert type(answer.value) is type(value)
    assert answer.value_type.rpartition(".")[2].rstrip("_") == kind


@pytest.mark.parametrize("code, value, kind", [
    (f"{BIG}", str(BIG), "int"),
    (f"{-BIG - 1}", str(-BIG - 1), "int"),
    ("float('nan')", "nan", "float"),
    ("float('-inf')", "-inf", "float"),
    ("numpy.float64('nan')", None, "float64"),
    ("2j", "2j", "complex"),
    ("b'bytes'", "b'bytes'", "bytes"),
    ("{1}", "{1}", "set"),
    ("range(3)", "range(0, 3)", "range"),
    ("...", "Ellipsis", "ellipsis"),
    ("{1: 'a'}", "{1: 'a'}", "dict"),
    ("{'a': {None: 1}}", "{'a': {None: 1}}", "dict"),
    ("[1, float('nan')]", "[1, nan]", "list"),
    ("(1, float('inf'))", "(1, inf)", "tuple"),
    ("[1, {2}]", "[1, {2}]", "list"),
    (f"[[[{BIG}]]]", f"[[[{BIG}]]]", "list"),
    ("numpy.array([1, 2])", "array([1, 2])", "ndarray"),
    ("[numpy.array([1, 2])]", "[array([1, 2])]", "list"),
    ("a = [1]; a.append(a); a", "[1, [...]]", "list"),
])
def test_values_that_are_not_json_come_whole_as_their_repr(shared, code, value, kind):
    answer = shared.exec("import numpy\n" + code)
    assert answer.success, answer
    assert isinstance(answer.value, str)
    assert value is None or answer.value == value
    assert answer.value_type.rpartition(".")[2] == kind


def test_a_data_frame_with_no_number_and_no_end(shared):
    answer = shared.exec("pd.DataFrame({'a': [1, float('nan'), float('inf')]})")
    assert answer.value_type.rpartition(".")[2] == "DataFrame"
    assert "NaN" in answer.value and "inf" in answer.value


def test_an_object_of_the_code(shared):
    answer = shared.exec(program("""
        class Point:
            def __repr__(self): return 'here'
        Point()
    """))
    assert (answer.value, answer.value_type) == ("here", "Point")


@pytest.mark.parametrize("code", [
    "", "x = 5", "x = 5\nfor i in range(3): i", "def f(): return 1", "import os", "x = 1; pass",
    "if True: 5", "5\nx = 6",
])
def test_a_last_statement_that_is_no_expression_has_no_value(shared, code):
    answer = shared.exec(code)
    assert answer.value is None
    assert answer.value_type is None


def test_none_is_a_value_like_the_absence_of_one(shared):
    answer = shared.exec("None")
    assert answer.value is None
    assert answer.value_type in ("NoneType", None)


@pytest.mark.parametrize("code, value", [
    ("x = 5; x", 5),
    ("(lambda: 6)()", 6),
    ("'''two\nlines'''", "two\nlines"),
    ("1\n2\n\n# a comment at the end", 2),
])
def test_the_last_expression_counts_however_it_is_written(shared, code, value):
    assert shared.value(code) == value


def test_lone_surrogates_come_out_as_text(shared):
    # that it is text at all, and not an escape of half a character, the client has checked
    assert isinstance(shared.value(r"'\ud800 and \udfff'"), str)
    assert shared.exec(r"{'\ud800': 1}").success


def test_a_value_is_computed_once(shared):
    shared.exec("calls = []")
    assert shared.value("calls.append(1) or len(calls)") == 1
    assert shared.value("len(calls)") == 1


@pytest.mark.parametrize("code, kept", [
    ("'x' * 100_000", "x"),
    ("'☕' * 100_000", "☕"),
    ("b'x' * 100_000", "x"),
    ("list(range(100_000))", None),
])
def test_a_long_value_is_cut_and_says_so(shared, code, kept):
    answer = shared.exec(code)
    assert "final_expression" in answer.truncated
    assert isinstance(answer.value, str)
    assert 32 * 1024 < len(answer.value.encode()) <= 64 * 1024 + 16
    if kept:
        assert set(answer.value) - set("b'…. ") == {kept}
    else:
        assert answer.value.startswith("[0, 1, 2, 3")


def test_max_result_is_a_setting(small_session):
    fits = small_session.exec("'y' * 900")
    assert (fits.value, fits.truncated) == ("y" * 900, set())
    cut = small_session.exec("'y' * 2000")
    assert "final_expression" in cut.truncated
    assert cut.value.startswith("'yyyy") and len(cut.value) <= 1024 + 16


def test_a_repr_that_raises_is_an_error_of_the_code(session):
    answer = session.exec(program("""
        class Bad:
            def __repr__(self): raise ValueError('no repr today')
        kept = 1
        Bad()
    """))
    assert answer.error_type == "ValueError"
    assert "no repr today" in answer.error["message"]
    assert session.value("kept") == 1


def test_a_repr_that_recurses_is_an_error_of_the_code(session):
    answer = session.exec(program("""
        class Bad:
            def __repr__(self): return repr(self)
        kept = 1
        Bad()
    """))
    assert answer.error_type == "RecursionError"
    assert session.value("kept") == 1


def test_a_repr_that_returns_no_text_is_an_error_of_the_code(session):
    answer = session.exec(program("""
        class Bad:
            def __repr__(self): return 5
        Bad()
    """))
    assert answer.error_type == "TypeError"
    assert session.exec("1").success


def test_a_repr_that_never_ends_meets_the_deadline(session):
    code = "class Bad:\n    def __repr__(self):\n        while True: pass\nkept = 1\nBad()"
    assert session.exec(code, timeout_ms=500).error_type == "timeout"
    assert session.exec("1").success


def test_a_value_nested_beyond_all_bounds(session):
    answer = session.exec(program("""
        a = []
        for _ in range(100_000): a = [a]
        a
    """))
    assert answer.status == 200
    assert answer.success or answer.error_type in ("RecursionError", "MemoryError"), answer
    assert session.value("1") == 1
