# SPDX-License-Identifier: MIT
"""The value of the last statement: JSON where JSON can say it, its repr where not."""

import json

import pytest

BIG = 2 ** 63


@pytest.mark.parametrize("code, value, kind", [
    ("None", None, "NoneType"),
    ("print()", None, "NoneType"),
    ("True", True, "bool"),
    ("0", 0, "int"),
    (str(BIG - 1), BIG - 1, "int"),
    (str(-BIG), -BIG, "int"),
    ("1.5", 1.5, "float"),
    ("1e300 * 10", 1e301, "float"),
    ("5e-324", 5e-324, "float"),
    ("-0.0", -0.0, "float"),
    ("''", "", "str"),
    (r"'\" \\ / \n \t \b \x1b \x7f \u2028 \0 ü 😀'",
     "\" \\ / \n \t \b \x1b \x7f \u2028 \0 ü 😀", "str"),
    ("[]", [], "list"),
    ("()", [], "tuple"),
    ("{}", {}, "dict"),
    ("[1, 'a', None, [True, (2.5,)], {'k': {}}]",
     [1, "a", None, [True, [2.5]], {"k": {}}], "list"),
    ("{'a': 1, '': [2], 'ü\"': None}", {"a": 1, "": [2], "ü\"": None}, "dict"),
])
def test_values_that_are_json(worker, code, value, kind):
    result = worker.run(code)
    assert (result.value, result.type, result.cut) == (value, kind, False)
    assert type(result.value) is type(value)


@pytest.mark.parametrize("code, text, kind", [
    (str(BIG), str(BIG), "int"),
    (str(-BIG - 1), str(-BIG - 1), "int"),
    ("float('nan')", "nan", "float"),
    ("float('-inf')", "-inf", "float"),
    ("2j", "2j", "complex"),
    ("b'b'", "b'b'", "bytes"),
    ("{1}", "{1}", "set"),
    ("...", "Ellipsis", "ellipsis"),
    ("int", "<class 'int'>", "type"),
    ("{1: 'a'}", "{1: 'a'}", "dict"),
    ("{'a': {None: 1}}", "{'a': {None: 1}}", "dict"),
    ("[1, float('nan')]", "[1, nan]", "list"),
    ("(1, {'a': float('inf')})", "(1, {'a': inf})", "tuple"),
    (f"[[[{BIG}]]]", f"[[[{BIG}]]]", "list"),
    ("a = [1]; a.append(a); a", "[1, [...]]", "list"),
    ("d = {}; d['d'] = d; d", "{'d': {...}}", "dict"),
    # what is of a subclass says itself what it is
    ("import collections; collections.Counter('aab')", "Counter({'a': 2, 'b': 1})", "Counter"),
    ("import collections; collections.namedtuple('P', 'x')(1)", "P(x=1)", "P"),
    ("import enum; enum.IntEnum('E', 'A').A", "<E.A: 1>", "E"),
    ("class S(str):\n    __repr__ = lambda self: 'mine'\nS('s')", "mine", "S"),
    ("class S(str): pass\n[S('s')]", "['s']", "list"),
    ("class S(str): pass\n{S('k'): 1}", "{'k': 1}", "dict"),
    ("class P:\n    def __repr__(self): return 'here'\nP()", "here", "P"),
    # a class that lies about what it is
    ("class L:\n    __class__ = int\n    __repr__ = lambda self: 'lie'\nL()", "lie", "L"),
    ("class M(type):\n    __name__ = property(lambda cls: 1/0)\n"
     "class C(metaclass=M):\n    __repr__ = lambda self: 'c'\nC()", "c", "C"),
])
def test_other_values_come_whole_as_their_repr(worker, code, text, kind):
    result = worker.run(code)
    assert (result.value, result.type, result.cut) == (text, kind, False)


@pytest.mark.parametrize("code", [
    "x = 5", "for i in range(3): i", "def f(): 1", "import os", "5\nx = 6", "if 1: 5",
    "x = 1; pass", "async def f(): pass",
])
def test_a_last_statement_that_is_no_expression_has_no_value(worker, code):
    result = worker.run(code)
    assert (result.ok, result.json, result.type) == (True, None, None)


@pytest.mark.parametrize("code, value", [
    ("x = 5; x", 5),
    ("(lambda: 6)()", 6),
    ("'''two\nlines'''", "two\nlines"),
    ("'a docstring?'", "a docstring?"),
    ("(1 +\n 2)\n\n# the end", 3),
    ("x = [1]\nx[0]  # ; no semicolon", 1),
    ("'ends in ;'", "ends in ;"),
    ("'ü;'", "ü;"),
    ("print(end=''); (\n7\n)", 7),
])
def test_the_last_expression_counts_however_it_is_written(worker, code, value):
    assert worker.value(code) == value


@pytest.mark.parametrize("code", ["5;", "5 ;", "5;  # end", "(\n5\n)\t;", "x = 1; 'ü;' ;"])
def test_a_semicolon_silences_the_value(worker, code):
    result = worker.run("ran = 1\n" + code)
    assert (result.ok, result.json, result.type) == (True, None, None)
    assert worker.value("ran") == 1


def test_an_expression_is_evaluated_once(worker):
    worker.run("calls = []")
    assert worker.value("calls.append(1) or len(calls)") == 1
    assert worker.run("calls.append(1);").ok
    assert worker.value("len(calls)") == 2


def test_builtins_are_left_alone(worker):
    worker.run("5")
    assert worker.value("import builtins; hasattr(builtins, '_')") is False


@pytest.mark.parametrize("depth, kind", [(60, list), (61, str)])
def test_nesting_is_json_up_to_a_depth(worker, depth, kind):
    for code in (f"{'[' * depth}{']' * depth}",
                 f"x = {{}}\nfor _ in range({depth - 1}): x = {{'k': x}}\nx"):
        value = worker.value(code)
        assert (type(value) is str) == (kind is str)


def test_surrogates_become_replacement_characters(worker):
    assert worker.value(r"'<\ud800 \udfff>'") == "<\ufffd \ufffd>"
    assert worker.value(r"['\ud83d\ude00', {'k': '\udc80'}]") == ["\ufffd\ufffd", {"k": "\ufffd"}]


@pytest.mark.parametrize("key", [r"\ud800", r"a\0"])
def test_keys_that_json_parsers_refuse(worker, key):
    value = worker.value(f"{{'{key}': 1, '\\ud801': 2}}")
    assert isinstance(value, str) and value.startswith("{'")


@pytest.mark.parametrize("code, head", [
    ("'x' * 5000", "'xxx"),
    ("'☕' * 5000", "'☕☕"),
    ("'\\n' * 5000", r"'\n\n"),
    ("'\"' * 5000", "'\"\""),
    ("'\\0' * 5000", r"'\x00\x00"),
    ("b'x' * 5000", "b'xxx"),
    ("list(range(5000))", "[0, 1, 2"),
    ("{str(n): n for n in range(5000)}", "{'0': 0, '1'"),
    ("class R:\n    __repr__ = lambda self: '\\x01' * 5000\nR()", "\x01\x01"),
    ("class R:\n    __repr__ = lambda self: '\\ud800' * 5000\nR()", "\ufffd\ufffd"),
])
def test_a_long_value_is_its_repr_cut_to_the_limit(worker, code, head):
    for limit in range(997, 1005):  # wherever that falls within an escape or a character
        result = worker.run(code, max_result=limit)
        assert result.cut
        assert limit - 8 < len(result.json) <= limit
        assert result.value.startswith(head)


def test_the_limit_is_that_of_the_json_text(worker):
    assert worker.run("'x' * 98", max_result=100).json == b'"' + b"x" * 98 + b'"'
    result = worker.run("'x' * 99", max_result=100)
    assert (result.json, result.cut) == (b"\"'" + b"x" * 97 + b'"', True)
    assert worker.run("5", max_result=2).value == 5
    assert worker.run("500", max_result=2).json == b'""'


def test_a_value_with_endlessly_many_paths_is_given_up_early(worker):
    worker.run("a = [0]\nfor _ in range(18): a = [a, a]")
    assert worker.run("a", max_result=1000).cut


def test_a_repr_of_a_subclass_of_str(worker):
    code = ("class Text(str):\n    def __getitem__(self, key): raise ValueError\n"
            "    __len__ = __iter__ = encode = __getitem__\n"
            "class R:\n    __repr__ = lambda self: Text('text')\nR()")
    assert worker.value(code) == "text"


@pytest.mark.parametrize("body, error", [
    ("raise ValueError('no repr')", "ValueError"),
    ("return 5", "TypeError"),
    ("return repr(self)", "RecursionError"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("raise BaseException", "BaseException"),
    ("raise MemoryError", "MemoryError"),
])
def test_a_repr_that_fails_is_an_error(worker, body, error):
    result = worker.run(f"kept = 1\nclass Bad:\n    def __repr__(self):\n        {body}\nBad()")
    assert result.error == error
    assert "<vivarium>" not in result.message
    assert worker.value("kept") == 1
    assert worker.run("[1, Bad()]").error == error


def test_a_repr_that_leaves(worker):
    code = "class Bad:\n    def __repr__(self): raise SystemExit({})\nBad()"
    assert worker.run(code.format(0)).ok
    assert worker.run(code.format(3)).error == "SystemExit"


def test_a_dict_that_a_thread_changes_meanwhile(worker):
    code = ("import threading\nd, on = {}, True\ndef change():\n    while on:\n"
            "        d[str(len(d) % 999)] = 1\n        d.pop(next(iter(d)))\n"
            "t = threading.Thread(target=change); t.start()")
    worker.run(code)
    for _ in range(50):
        result = worker.run("d")
        assert result.ok or result.error == "RuntimeError"
    worker.run("on = False; t.join()")


@pytest.mark.parametrize("code, value, kind", [
    ("np.int64(7)", 7, "int64"),
    ("np.int8(-7)", -7, "int8"),
    ("np.uint64(2**63 - 1)", BIG - 1, "uint64"),
    ("np.float64(0.5)", 0.5, "float64"),
    ("np.float32(0.5)", 0.5, "float32"),
    ("np.float16(0.5)", 0.5, "float16"),
    ("np.longdouble(0.5)", 0.5, None),
    ("np.bool_(True)", True, None),
    ("np.str_('ü')", "ü", "str_"),
    ("[np.int64(1), {'a': np.float32(2)}]", [1, {"a": 2.0}], "list"),
    ("pd.Series([1, 2]).sum()", 3, "int64"),
])
def test_numpy_scalars_are_json(full_worker, code, value, kind):
    result = full_worker.run(code)
    assert result.value == value and type(result.value) is type(value)
    assert kind is None or result.type == kind


@pytest.mark.parametrize("code, part", [
    ("np.uint64(2**63)", "9223372036854775808"),
    ("np.float64('nan')", "nan"),
    ("np.float32('inf')", "inf"),
    ("[np.float64('nan')]", "nan"),
    ("np.complex128(1)", "1"),
    ("np.datetime64('2020-01-01')", "2020-01-01"),
    ("np.timedelta64(5, 's')", "5"),
    ("np.bytes_(b'x')", "b'x'"),
    ("np.array([1, 2])", "array([1, 2])"),
    ("np.array(5)", "array(5)"),
    ("{'a': np.array([1])}", "{'a': array([1])}"),
    ("{np.str_('k'): 1}", "k"),
    ("pd.DataFrame({'a': [1, float('nan'), float('inf')]})", "NaN"),
    ("pd.NaT", "NaT"),
    ("pd.Timestamp('2020-01-01')", "2020-01-01"),
])
def test_other_values_of_numpy_and_pandas_are_their_repr(full_worker, code, part):
    value = full_worker.value(code)
    assert isinstance(value, str) and part in value


def test_something_that_only_calls_itself_numpy(worker):
    worker.run("import sys, types\nfake = sys.modules['numpy'] = types.ModuleType('numpy')\n"
               "class bool_: item = 5\n"
               "fake.bool_ = fake.integer = fake.floating = fake.str_ = bool_")
    assert json.loads(worker.run("bool_()").json).startswith("<__main__.bool_ object")
    worker.run("sys.modules['numpy'] = None")
    assert worker.run("bool_()").ok
