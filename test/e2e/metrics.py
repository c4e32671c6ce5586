#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocaded --metrics: metrics over HTTP, read by Prometheus, and clients of HTTP that mean no good."""

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, ROCADED, Daemon  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run, skip  # noqa: E402

FLOW = os.path.join(CLIENTS, "test/e2e/flow")
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
PLACES = 8  # HTTP_CONNS of app/rocaded/http_server.h
PROMETHEUS = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: rocade
  static_configs:
  - targets: ['%s']
"""


class LocalConnection(http.client.HTTPConnection):
    """HTTP over a local socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=process.LIMIT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def address_free(family, host):
    """An address at which nothing listens."""
    with socket.socket(family) as found:
        found.bind((host, 0))
        return found.getsockname()[:2]


def answer(connection, path="/metrics", method="GET", headers=None):
    """Returns status, type and text of the answer."""
    connection.request(method, path, headers=headers or {})
    done = connection.getresponse()
    text = done.read().decode()
    connection.close()
    return done.status, done.getheader("Content-Type"), text


def get(where, **more):
    return answer(http.client.HTTPConnection(*where, timeout=process.LIMIT_S), **more)


def promtool(text):
    """Returns what promtool says against metrics."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                          capture_output=True, check=False)
    return done.stdout + done.stderr + ("status %d" % done.returncode if done.returncode else "")


def page():
    where = address_free(socket.AF_INET, "127.0.0.1")
    with Daemon("--metrics", "%d" % where[1]) as daemon:
        idle = daemon.start(FLOW, "idle", feed=True)
        idle.wait_line()
        until(lambda: 'rocade_client_qps{device="rocade0",client="1"' in get(where)[2])
        status, kind, text = get(where)
        case("the page of a port alone is at 127.0.0.1, in Prometheus' format", status == 200 and
             kind == "text/plain; version=0.0.4; charset=utf-8" and "# EOF" not in text, kind + text)
        wrong = promtool(text)
        case("promtool accepts the page", not wrong, wrong)
        case("the page has a client with process and user, and no QPs",
             'pid="%d"' % idle.pid in text and 'uid="%d"' % os.getuid() in text and
             "rocade_qp_" not in text and "rocade_peer_" not in text, text)
        status, kind, text = get(where, headers=OPENMETRICS)
        case("the page as OpenMetrics", status == 200 and text.endswith("\n# EOF\n") and
             kind == "application/openmetrics-text; version=1.0.0; charset=utf-8" and
             "# TYPE rocade_client_tx_packets counter\n" in text and
             "\nrocade_client_tx_packets_total{" in text, kind + text)
        families = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
        case("each family of OpenMetrics is there once", len(families) > 50 and
             len(families) == len(set(families)), str(families))
        case("HEAD has no page, other paths none", get(where, method="HEAD")[::2] == (200, "") and
             get(where, path="/")[0] == 404 and get(where, method="POST")[0] == 405)
        idle.finish()


def other_addresses():
    where = address_free(socket.AF_INET6, "::1")
    with Daemon("--metrics", "[::1]:%d" % where[1]):
        case("the page of an address of IPv6", get(where)[0] == 200)
    folder = tempfile.mkdtemp(prefix="rocade-e2e-")
    path = os.path.join(folder, "metrics")
    with Daemon("--metrics", path, folder=folder) as daemon:
        status, _, text = answer(LocalConnection(path))
        case("the page of a local socket", status == 200 and "rocade_device_mtu_bytes" in text, text)
        case("the local socket is for its user", stat.S_IMODE(os.stat(path).st_mode) == 0o600)
        second = process.run([ROCADED, "--local", "--socket", daemon.socket + "2", "--metrics", path])
        case("a second daemon at the path: status 1", second.returncode == 1 and
             "metrics: %s: Address already in use" % path in second.stderr, second.stderr)
        busy = os.path.join(folder, "busy")
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waiting:
            listener.bind(busy)
            listener.listen(0)
            waiting.connect(busy)
            second = process.run([ROCADED, "--local", "--socket", daemon.socket + "2", "--metrics", busy])
        case("so it is if the listener at the path accepts nothing", second.returncode == 1 and
             "metrics: %s: Address already in use" % busy in second.stderr, second.stderr)
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        case("a killed daemon leaves the path", os.path.exists(path))
        daemon.serve()
        case("the next one takes it", answer(LocalConnection(path))[0] == 200)
        daemon.process.send_signal(signal.SIGTERM)
        case("a daemon removes the path at its end", daemon.process.wait() == 0 and
             not os.path.exists(path))


def over_a_port():
    """A daemon with an lcore, and another user. The filter of system calls is another one."""
    if os.getuid() != 0:
        skip("a daemon with a port", "needs root")
        return
    where = address_free(socket.AF_INET, "127.0.0.1")
    cpus = sorted(os.sched_getaffinity(0))
    eal = ["--no-huge", "-m", "128", "--no-pci", "--vdev", "net_null0", "--lcores", "0@%d" % cpus[0],
           "--file-prefix", "rocade%d" % os.getpid()]
    with Daemon("--port", "net_null0", "--address", "192.0.2.1/24", "--user", "65534", "--sleep-us", "500",
                "--metrics", "127.0.0.1:%d" % where[1], eal=eal) as daemon:
        case("the page of a daemon with a port", 'rocade_port_link_up{device="rocade0"}' in
             get(where)[2])
        cpu_of = {}
        for thread in os.listdir("/proc/%d/task" % daemon.process.pid):
            with open("/proc/%d/task/%s/comm" % (daemon.process.pid, thread), encoding="utf-8") as file:
                cpu_of[file.read().strip()] = os.sched_getaffinity(int(thread))
        case("its thread leaves the lcore to the port, if there is another CPU",
             cpu_of["metrics"] == set(cpus[1:] or cpus), str(cpu_of))


def found(base, query):
    """Asks Prometheus. Returns the series that it has, and their last values."""
    try:
        with urllib.request.urlopen(base + "/api/v1/query?" + urllib.parse.urlencode(
                {"query": query}), timeout=process.LIMIT_S) as done:
            return json.load(done)["data"]["result"]
    except (urllib.error.URLError, ConnectionError):
        return []


def scraped():
    where = address_free(socket.AF_INET, "127.0.0.1")
    own = "127.0.0.1:%d" % address_free(socket.AF_INET, "127.0.0.1")[1]
    with Daemon("--metrics", "127.0.0.1:%d" % where[1]) as daemon, \
            tempfile.TemporaryDirectory() as folder:
        conf = os.path.join(folder, "prometheus.yml")
        with open(conf, "w", encoding="utf-8") as file:
            file.write(PROMETHEUS % ("%s:%d" % where))
        pair = daemon.start(FLOW, "pair", feed=True)
        pair.wait_line()
        server = Process(["prometheus", "--config.file=" + conf, "--storage.tsdb.path=" + folder,
                          "--web.listen-address=" + own])
        query = 'rocade_engine_rx_roce_total{program="flow"} > 0'
        until(lambda: found("http://" + own, query))
        case("Prometheus scrapes a client's counters", found("http://" + own, query), server.output())
        query = 'histogram_quantile(0.5, rocade_device_request_seconds_bucket{type="RC"}) > 0'
        until(lambda: found("http://" + own, query))
        case("Prometheus computes a quantile of the clients' latencies", found("http://" + own, query),
             get(where, headers=OPENMETRICS)[2])
        text = get(where)[2]
        case("the page has no series of the latencies of one client",
             "rocade_client_request_seconds" not in text and "rocade_departed_request_seconds" not in text, text)
        case("Prometheus knows a counter as one, by OpenMetrics' name", "counter" in str(kinds(own)),
             str(kinds(own)))
        server.send_signal(signal.SIGTERM)
        case("Prometheus has no complaint", server.wait() == 0 and
             "Append failed" not in server.output() and "level=error" not in server.output(),
             server.output())
        counts = measured(where)
        pair.finish()
        until(daemon.idle)
        until(lambda: all(measured(where).get(labels, 0) >= count for labels, count in counts.items()))
        case("the latencies of a client that has ended stay in the sum", counts and all(
            measured(where).get(labels, 0) >= count for labels, count in counts.items()), str(counts))


def measured(where):
    """How many requests of each type of QP and operation are in the sum of all latencies."""
    return {labels: int(count) for labels, count in re.findall(
        r"(?m)^rocade_device_request_seconds_count\{(.*)\} (\d+)$", get(where)[2])}


def kinds(own):
    """What Prometheus knows of a metric's type. Only OpenMetrics names a counter without its suffix."""
    with urllib.request.urlopen("http://%s/api/v1/targets/metadata?metric=rocade_engine_rx_roce" % own,
                                timeout=process.LIMIT_S) as done:
        return [row["type"] for row in json.load(done)["data"]]


def descriptors(daemon):
    return len(os.listdir("/proc/%d/fd" % daemon.process.pid))


def hostile():
    where = address_free(socket.AF_INET, "127.0.0.1")
    with Daemon("--metrics", "127.0.0.1:%d" % where[1]) as daemon:
        before = descriptors(daemon)
        silent = [socket.create_connection(where, process.LIMIT_S) for _ in range(3 * PLACES)]
        case("24 silent connections do not keep a scraper from the page", get(where)[0] == 200)
        case("the daemon keeps at most eight connections", until(
            lambda: descriptors(daemon) <= before + PLACES),
             "%d before, %d now" % (before, descriptors(daemon)))
        for one in silent:
            one.close()
        case("nothing is left of them", until(lambda: descriptors(daemon) <= before))
        with socket.create_connection(where, process.LIMIT_S) as one:
            one.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 8000)
            case("a request without an end is refused", one.recv(20).startswith(b"HTTP/1.1 431"))
        with socket.create_connection(where, process.LIMIT_S) as one:
            one.sendall(bytes(range(256)))
            case("bytes that are no request are refused", one.recv(20).startswith(b"HTTP/1.1 400"))
        with socket.create_connection(where, process.LIMIT_S) as one:
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            daemon.process.send_signal(signal.SIGTERM)
            case("a daemon ends although a connection is open", daemon.process.wait() == 0)


if __name__ == "__main__":
    sys.exit(run(page, other_addresses, over_a_port, scraped, hostile))
