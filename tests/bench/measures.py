# SPDX-License-Identifier: MIT
"""The measurements. Each takes the report and adds its rows and figures to it.

What is compared runs in turn, A B A B, so that the machine's mood of the moment meets both.
"""

import base64
import concurrent.futures
import os
import pathlib
import statistics
import time

from client import Connection, body_of, fresh_id, own_cost, request

MIB = 1 << 20
LIVE = "bench-live"
SETTLE = 1.0  # seconds until the kernel has counted what it freed or took
REFILL = 0.05  # seconds that a new sandbox for the pool takes, amply

LIBRARIES = "import numpy, pandas, matplotlib.pyplot; print(1)"
JOB = """\
frame = pd.DataFrame({'city': list('abcdef') * 50, 'year': [y % 10 for y in range(300)],
                      'sales': np.arange(300) * 1.5})
sums = frame.groupby(['city', 'year'])['sales'].sum().unstack()
ax = sums.T.plot(kind='bar', stacked=True, title='Sales')
ax.set_ylabel('sales')
plt.savefig('sales.png')
plt.close('all')
print(sums.describe())
"""
WRITE_10_MIB = """\
import os
with open('out.bin', 'wb') as out:
    out.write(os.urandom(10 << 20))
"""


# ---- calls in a live session ----

def warm_calls(report, floor, live, count):
    """1+1 and print(1) in a live session against an answer that does nothing."""
    to_floor, to_live = Connection.to(floor.port), Connection.to(live.port)
    messages = {"floor": (to_floor, request("1+1", LIVE)),
                "live_1_plus_1": (to_live, request("1+1", LIVE)),
                "live_print": (to_live, request("print(1)", LIVE))}
    samples = {key: [] for key in messages}
    for connection, message in messages.values():
        for _ in range(max(10, count // 10)):
            connection.run(message)
    for _ in range(count):
        for key, (connection, message) in messages.items():
            took, answer = connection.timed(message)
            if b'"success":true' not in answer:
                raise RuntimeError(f"a call failed: {answer!r}")
            samples[key].append(took)
    message = messages["live_1_plus_1"][1]
    report.row("client", "the client's own part of a call",
               own_cost(message, to_live.exchange(message), count))
    report.row("floor", "floor: FastCGI answer that does nothing", samples["floor"])
    report.row("live_1_plus_1", "1+1 in a live session", samples["live_1_plus_1"])
    report.row("live_print", "print(1) in a live session", samples["live_print"])
    report.ratio("live_to_floor", "1+1 in a live session / floor", "live_1_plus_1", "floor",
                 goal=3)
    own, low, high = (report.rows[key].median for key in ("client", "floor", "live_1_plus_1"))
    report.figure("live_to_floor_without_client",
                  "the same, without the client's own part of both", "x",
                  (high - own) / (low - own))
    to_floor.close()
    to_live.close()


def job(report, live, count):
    """A small analysis with a plot."""
    connection = Connection.to(live.port)
    message = request(JOB, LIVE)
    for _ in range(2):
        _, answer = connection.run(message)
        if [file["filename"] for file in answer["result"]["output_files"]] != ["sales.png"]:
            raise RuntimeError("the plot did not come back")
    report.row("job", "pandas and plot job in a live session",
               [connection.run(message)[0] for _ in range(count)])
    connection.close()


# ---- new sessions ----

def new_sessions(report, pooled, unpooled, alternative, rounds, in_a_round):
    """First answers of new sessions against a new sandboxed process for each answer."""
    missing = alternative.missing()
    if missing:
        report.leave_out("bwrap", missing)
    to_pooled, to_unpooled = Connection.to(pooled.port), Connection.to(unpooled.port)
    samples = {"new_pool": [], "new_no_pool": [], "bwrap": []}
    for _ in range(rounds):
        if not missing:
            began = time.perf_counter_ns()
            alternative.run()
            samples["bwrap"].append((time.perf_counter_ns() - began) / 1e6)
        for _ in range(in_a_round):
            samples["new_pool"].append(to_pooled.run(request(LIBRARIES, fresh_id()))[0])
            time.sleep(REFILL)
            samples["new_no_pool"].append(to_unpooled.run(request(LIBRARIES, fresh_id()))[0])
    to_pooled.close()
    to_unpooled.close()
    report.row("new_pool", "new session, 3 libraries, from the pool", samples["new_pool"])
    report.row("new_no_pool", "new session, 3 libraries, without a pool", samples["new_no_pool"])
    if not missing:
        report.row("bwrap", "alternative: bwrap python3, 3 libraries", samples["bwrap"])
        for key, kind in (("new_no_pool", "without a pool"), ("new_pool", "from the pool")):
            report.ratio(f"bwrap_to_{key}", f"bwrap alternative / new session {kind}", "bwrap",
                         key, goal=25 if key == "new_no_pool" else None, at_least=True)


def sessions_per_second(report, server, count):
    """How fast sessions begin one after another, and four side by side; none of them ends."""
    def begin(number):
        connection = Connection.to(server.port)
        for _ in range(number):
            connection.run(request("print(1)", fresh_id()))
        connection.close()

    for clients in (1, 4):
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            list(pool.map(begin, [count // clients] * clients))
        rate = count // clients * clients / (time.monotonic() - began)
        report.figure(f"sessions_per_second_{clients}",
                      f"new sessions a second, clients: {clients}, sessions: {count}", "/s", rate)


# ---- files ----

def files(report, live, count):
    """A file of 10 MiB in and one out."""
    connection = Connection.to(live.port)
    put = request("import os; os.path.getsize('in.bin')", LIVE, {"in.bin": os.urandom(10 * MIB)})
    get = request(WRITE_10_MIB, LIVE)
    _, answer = connection.run(put)
    if answer["result"]["final_expression"] != 10 * MIB:
        raise RuntimeError("the file did not arrive")
    _, answer = connection.run(get)
    if len(base64.b64decode(answer["result"]["output_files"][0]["b64_data"])) != 10 * MIB:
        raise RuntimeError("the file did not come back")
    taken = {put: [], get: []}
    for _ in range(count):
        for message, samples in taken.items():
            took, answer = connection.timed(message)
            if b'"success":true' not in answer[:1000]:
                raise RuntimeError(f"a call failed: {bytes(answer[:1000])!r}")
            samples.append(took)
    report.row("file_in", "a file of 10 MiB in", taken[put])
    report.row("file_out", "a file of 10 MiB out, and made", taken[get])
    report.figure("file_in_seconds", "a file of 10 MiB in, median", "s",
                  report.rows["file_in"].median / 1000, goal=0.5)
    connection.close()


def large_body(report, live, count):
    """Ten files of 10 MiB at once, and the memory that vivarium-fcgi needs for them."""
    message = request("import os; len(os.listdir('large'))", LIVE,
                      {f"large/{number}": os.urandom(10 * MIB) for number in range(10)})
    body = len(body_of(message))
    application = live.part("vivarium-fcgi")
    connection = Connection.to(live.port)
    samples, peaks = [], []
    for _ in range(count):
        application.reset_peak()
        took, answer = connection.run(message)
        if answer["result"]["final_expression"] != 10:
            raise RuntimeError("not all files arrived")
        samples.append(took)
        peaks.append(application.memory("VmHWM"))
    connection.run(request("import shutil; shutil.rmtree('large')", LIVE))
    connection.close()
    report.row("body", f"ten files of 10 MiB in, {body / 1e6:.0f} MB of body", samples)
    report.figure("body_memory", "peak memory of vivarium-fcgi / that body", "x",
                  max(peaks) / body, goal=1.5)


# ---- memory of sessions ----

def available():
    """Bytes that the machine has left, by the kernel's estimate."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo without MemAvailable")


def proportional_set(process):
    """Bytes of memory of a process, what it shares counted by its share."""
    for line in (process.path / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0  # it has ended


def begin_in_batches(connection, count):
    """Begin sessions in four batches; what each batch took of MemAvailable, by session.

    Processes of others come and go meanwhile: they disturb one batch or two, and the median is
    that of the rest.
    """
    taken = []
    for number in range(4):
        size = count * (number + 1) // 4 - count * number // 4
        before = available()
        for _ in range(size):
            connection.run(request("print(1)", fresh_id()))
        time.sleep(SETTLE)
        taken.append((before - available()) / size)
    return taken


def unparked(server):
    """The processes of its sandboxes that run: a supervisor and a worker of each."""
    return [process for process in server.sandboxed() if not process.parked()]


def idle_sessions(report, server, count):
    """Memory of sessions after print(1), of an instance that keeps no others."""
    connection = Connection.to(server.port)
    for _ in range(3):
        connection.run(request("print(1)", fresh_id()))
    time.sleep(SETTLE)
    already = len(unparked(server))
    taken = begin_in_batches(connection, count)
    connection.close()
    report.figure("session_available", f"MemAvailable taken by an idle session, of {count}", "MB",
                  statistics.median(taken) / 1e6, goal=4)
    report.figure("session_available_spread", "how far the four batches of these differ", "MB",
                  (max(taken) - min(taken)) / 1e6)
    members = unparked(server)
    if len(members) - already != 2 * count:
        raise RuntimeError(f"{len(members) - already} processes for {count} new sessions")
    try:
        whole = sum(map(proportional_set, server.sandboxed()))
        report.figure("session_pss", f"PSS of a session's processes, of {count}", "MB",
                      whole / (len(members) / 2) / 1e6)
    except PermissionError as error:
        report.leave_out("session_pss", str(error))
