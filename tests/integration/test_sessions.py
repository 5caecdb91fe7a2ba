# SPDX-License-Identifier: MIT
"""Sessions: begun by the first call, kept for later ones, each for itself."""

import json
import socket
import time

import pytest

from support.program import program
from support.together import at_once, in_background

PLACES = ["/home/earth", "/tmp", "/dev/shm"]


def test_variables_imports_and_files_stay(session):
    session.exec(program("""
        import math
        x = [1]
        def f(): return math.floor(2.5)
        open('f', 'w').write('f')
    """))
    assert session.value("x.append(2)\n[x, f(), open('f').read()]") == [[1, 2], 2, "f"]
    assert session.value("len(x)") == 2


def test_a_new_session_knows_nothing(session):
    assert session.value("import os; os.listdir('.')") == []
    assert session.value("[n for n in globals() if not n.startswith('_')]") \
        in (["np", "pd", "plt", "os"], ["os", "np", "pd", "plt"], ["np", "pd", "plt"])


def test_fifty_sessions_at_once_each_with_state_and_a_file(new_session):
    sessions = [new_session() for _ in range(50)]

    def first(session):
        return session.exec(program(f"""
            import os, time
            me = {session.name!r}
            open('mine', 'w').write(me)
            print(me)
            time.sleep(0.2)
            [me, open('mine').read(), os.listdir('.')]
        """))

    def second(session):
        return session.exec(program("""
            print(me)
            [me, open('mine').read(), os.listdir('.'), 'other' in globals()]
        """))

    for session, answer in zip(sessions, at_once([lambda s=s: first(s) for s in sessions])):
        assert answer.value == [session.name, session.name, ["mine"]]
        assert answer.std_out == session.name + "\n"
        assert answer.files == {"mine": session.name.encode()}
        assert answer.session == {
            "id": session.name, "created": True, "lost": "none", "execution_count": 1,
            "checkpoint": None}
    for session, answer in zip(sessions, at_once([lambda s=s: second(s) for s in sessions])):
        assert answer.value == [session.name, session.name, ["mine"], False]
        assert answer.session["execution_count"] == 2


def test_two_first_calls_at_once_make_one_session(new_session):
    for _ in range(5):
        session = new_session()
        code = program("""
            import time
            seen = globals().get('seen', 0) + 1
            open(f'call{seen}', 'w').close()
            time.sleep(0.1)
            seen
        """)
        answers = at_once([lambda: session.exec(code)] * 2)
        assert sorted(answer.value for answer in answers) == [1, 2]
        assert sorted(answer.session["execution_count"] for answer in answers) == [1, 2]
        assert [answer.session["created"] for answer in answers].count(True) == 1
        assert session.value("import os; sorted(os.listdir('.'))") == ["call1", "call2"]


def test_calls_of_one_session_never_mix(session):
    session.exec("import time, sys; log = []")

    def call(number):
        return session.exec(program(f"""
            log.append({number})
            for _ in range(20):
                print({number}, flush=True)
                print({number}, file=sys.stderr)
                time.sleep(0.002)
            log.append({number})
            {number}
        """))

    answers = at_once([lambda n=n: call(n) for n in range(8)])
    for number, answer in enumerate(answers):
        assert answer.value == number
        assert answer.std_out == answer.std_err == f"{number}\n" * 20
    log = session.value("log")
    assert log[0::2] == log[1::2], "two calls ran at the same time"
    assert sorted(log[0::2]) == list(range(8))


def test_calls_run_in_the_order_of_their_arrival(session):
    session.exec("import time; log = []")
    running = in_background(lambda: session.exec("time.sleep(2.5)"))
    time.sleep(0.5)
    waiting = []
    for number in range(5):
        waiting.append(in_background(lambda n=number: session.exec(f"log.append({n})")))
        time.sleep(0.25)
    for call in [running, *waiting]:
        assert call.result(60).success
    assert session.value("log") == list(range(5))


def test_other_sessions_do_not_wait_for_a_busy_one(session, new_session):
    running = in_background(lambda: session.exec("import time; time.sleep(4)"))
    time.sleep(0.3)
    for _ in range(3):
        assert new_session().value("6 * 7") == 42
    assert not running.done(), "the other sessions were answered only after the busy one"
    assert running.result(60).success


def test_what_one_session_changes_no_other_sees(new_session):
    first, second = new_session(), new_session()
    first.exec("1")
    second.exec("1")
    first.value(program(f"""
        import os, sys, builtins, json, locale, time
        pd.options.display.max_rows = 3
        np.set_printoptions(precision=1)
        plt.rcParams['lines.linewidth'] = 77
        os.environ['LEFT'] = '1'; os.umask(0o27); os.makedirs('d'); os.chdir('d')
        builtins.leaked = json.leaked = sys.leaked = 1
        sys.path.append('/leaked')
        json.dumps = lambda *a, **k: 'owned'
        sys.setrecursionlimit(5000)
        os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()
        for p in {PLACES}: open(p + '/left-by-me', 'w').close()
        'done'
    """))
    seen = second.value(program(f"""
        import os, sys, builtins, json, time
        {{'places': [p for p in {PLACES} if os.path.exists(p + '/left-by-me')],
         'rows': pd.options.display.max_rows, 'precision': np.get_printoptions()['precision'],
         'width': plt.rcParams['lines.linewidth'], 'env': os.environ.get('LEFT'),
         'umask': os.umask(0o77), 'cwd': os.getcwd(), 'path': '/leaked' in sys.path,
         'names': [hasattr(m, 'leaked') for m in (builtins, json, sys)],
         'json': json.dumps(1), 'limit': sys.getrecursionlimit(), 'zone': time.tzname[0]}}
    """))
    assert seen["places"] == []
    assert seen["rows"] != 3 and seen["precision"] != 1 and seen["width"] != 77
    assert seen["env"] is None and seen["umask"] != 0o27
    assert seen["cwd"] == "/home/earth" and seen["path"] is False
    assert seen["names"] == [False] * 3
    assert seen["json"] == "1" and seen["limit"] != 5000 and seen["zone"] != "JST"
    third = new_session().value("import sys, json; ['/leaked' in sys.path, json.dumps(1)]")
    assert third == [False, "1"]


@pytest.mark.parametrize("place", PLACES)
def test_each_place_to_write_is_the_sessions_own(new_session, place):
    name = f"{place}/{new_session().name}"
    writer, reader = new_session(), new_session()
    if not writer.exec(f"open({name!r}, 'w').write('secret')").success:
        assert place != "/home/earth"
        return
    assert writer.value(f"open({name!r}).read()") == "secret"
    assert reader.exec(f"open({name!r}).read()").error_type == "FileNotFoundError"
    assert reader.value(f"import os; os.path.basename({name!r}) in os.listdir({place!r})") is False


def test_a_client_that_reads_slowly_holds_no_session(client, session):
    body = json.dumps({"code": "open('f', 'wb').write(b'x' * (9 << 20)); ran = True"}).encode()
    with client.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(
            f"POST {session.target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert connection.recv(1) == b"H", "the answer has begun"
        for _ in range(3):
            assert session.value("ran") is True


def test_a_crowd_of_calls_to_a_few_sessions(new_session):
    sessions = [new_session() for _ in range(4)]
    for session in sessions:
        session.exec("n = 0")

    def call(session, number):
        answer = session.exec(program(f"""
            n += 1
            print({number})
            [n, {number}]
        """))
        assert answer.std_out == f"{number}\n"
        return answer.value

    calls = [lambda s=s, k=k: call(s, k) for k in range(8) for s in sessions]
    results = at_once(calls)
    for index, session in enumerate(sessions):
        mine = results[index::4]
        assert sorted(count for count, _ in mine) == list(range(1, 9))
        assert session.value("n") == 8
