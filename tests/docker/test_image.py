# SPDX-License-Identifier: MIT
"""What the image has in it, and what it has not."""

import subprocess
import time

import pytest

from integration import test_skill
from support.container import docker, image
from support.program import program
from support.together import eventually

MOST_BYTES = 480 * 1000 ** 2  # as `docker images` counts
HEALTHY_DEADLINE = 60  # seconds; what it takes on an idle machine is printed, not tested
START_BYTES = 1 << 20  # that a start may write: sockets, folders, no library
CJK = program("""
    import warnings, io
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        plt.figure()
        plt.title('中文 日本語 한국어')
        plt.plot([1, 2], label='数据')
        plt.legend()
        plt.savefig('plot.png')
        plt.savefig('plot.svg')
        plt.savefig('plot.pdf')
    [str(one.message) for one in seen]
""")


def inside(*command):
    """What a command in a container says, which is not that of the image."""
    return docker("run", "--rm", "--network=none", image(), *command)


@pytest.fixture
def session(plain, session_id):
    """A session of the plain container."""
    return plain.client.session(session_id)


def test_its_size(capsys):
    size = int(docker("image", "inspect", "--format={{.Size}}", image()))
    with capsys.disabled():
        print(f"\nimage: {size / 1e6:.0f} MB", flush=True)
    assert size <= MOST_BYTES


def test_time_to_healthy(begin, capsys):
    began = time.monotonic()
    container = begin()
    eventually(lambda: container.healthy(), within=HEALTHY_DEADLINE, every=0.02)
    serves = time.monotonic() - began
    eventually(lambda: container.inspect("State")["Health"]["Status"] == "healthy",
               within=HEALTHY_DEADLINE, every=0.05)
    with capsys.disabled():
        print(f"\nserves after {serves:.1f} s, healthy after {time.monotonic() - began:.1f} s",
              flush=True)
    # the trees of slots are taken as they are in the image
    size = int(docker("inspect", "--size", "--format={{.SizeRw}}", container.id))
    assert size < START_BYTES


def test_no_compiler_and_no_installer():
    found = inside("sh", "-c", "for name in cc gcc g++ make pip pip3 curl wget; do "
                               "command -v $name; done; true")
    assert found == ""
    assert "pip" not in inside("python3", "-c", "import importlib.util as u\n"
                                                "print([n for n in ('pip', 'setuptools')\n"
                                                "       if u.find_spec(n)])")


def test_trees_of_slots_have_no_devices_and_are_roots():
    assert inside("find", "/var/lib/vivarium/slots", "(", "-type", "c", "-o", "-type", "b", "-o",
                  "-not", "-user", "root", "-o", "-perm", "/6000", ")") == ""
    assert set(inside("ls", "/var/lib/vivarium/slots").split()) \
        == {"base", "made-for", "zygote", *map(str, range(32))}


def test_it_listens_for_other_machines(plain):
    address = plain.inspect("NetworkSettings")["IPAddress"]
    assert docker("exec", plain.id, "python3", "-c",
                  "import urllib.request as u\n"
                  f"print(u.urlopen('http://{address}:3080/health').status)") == "200"


@pytest.mark.parametrize("example, told", [
    (test_skill.SIMPLE, '"std_out":"4\\n"'),
    (test_skill.UPLOAD, "Alice"),
    (test_skill.SESSIONS, '"id":"default"'),
    (test_skill.HEALTH, '"status":"healthy"'),
])
def test_the_examples_of_the_skill_by_curl(plain, example, told):
    text = example.replace(test_skill.BASE, f"http://localhost:{plain.port}")
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    assert told in done.stdout, done


def test_no_setting_reaches_a_session_and_no_shell_is_there(session):
    assert session.value("import os; sorted(set(os.listdir('/')) - {'lib', 'lib64'})") \
        == ["dev", "etc", "home", "proc", "tmp", "usr"]
    assert session.value("sorted(os.listdir('/usr'))[:2] + [os.path.exists('/usr/bin')]")[-1] \
        is False
    assert session.value("[name for name in os.environ if 'VIVARIUM' in name]") == []


def test_letters_of_east_asia_are_drawn(session):
    answer = session.exec(CJK)
    assert answer.value == [] and answer.std_err == ""
    assert answer.files["plot.png"].startswith(b"\x89PNG")
    assert b"<svg" in answer.files["plot.svg"]
    assert answer.files["plot.pdf"].startswith(b"%PDF")


def test_tables_go_to_excel_and_come_back(session):
    answer = session.exec("df = pd.DataFrame({'a': [1, 2], 'b': ['x', '中']})\n"
                          "df.to_excel('t.xlsx', index=False)\n"
                          "pd.read_excel('t.xlsx').equals(df)")
    assert answer.value is True and list(answer.files) == ["t.xlsx"]


def test_tables_have_styles(session):
    assert "<table" in session.value("pd.DataFrame({'a': [1]}).style.to_html()")


def test_sums_are_openblas(session):
    # as the linker finds it, which is by what Debian's alternatives say
    config = session.value(
        "import ctypes\n"
        "found = ctypes.CDLL('libblas.so.3').openblas_get_config\n"
        "found.restype = ctypes.c_char_p\nfound().decode()")
    assert "OpenBLAS" in config
    assert session.value("float((np.ones((300, 300)) @ np.ones((300, 300))).sum())") == 27e6


def test_versions_are_current(session):
    versions = session.value("import sys, numpy, pandas, matplotlib as m\n"
                             "[sys.version, numpy.__version__, pandas.__version__, m.__version__]")
    numbers = [tuple(map(int, text.split()[0].split(".")[:2])) for text in versions]
    assert numbers[0] >= (3, 13) and numbers[1] >= (2, 2) and numbers[2] >= (2, 2)


def test_bodies_larger_than_the_shared_memory(plain, session):
    assert docker("exec", plain.id, "df", "--output=size", "-k", "/dev/shm").split()[-1] == "65536"
    files = {f"file{n}": bytes(9 << 20) for n in range(10)}
    answer = session.exec("import os; sum(os.path.getsize(f'file{n}') for n in range(10))",
                          files=files)
    assert answer.value == 90 << 20
