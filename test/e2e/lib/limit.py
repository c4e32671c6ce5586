# SPDX-License-Identifier: BSD-3-Clause
"""Waits of the tests in Python: the only place that sleeps, which test/tidy checks. No verdict depends on
the clock alone. A wait fails after the time that it is given at least, and after TIMES times what
this machine needs then for a fixed piece of work. test/lib/await.h does the same in C."""

import os
import select
import socket
import subprocess
import threading
import time
from collections import namedtuple

TIMES = 20
WAKE_UPS = 1000


def wake_ups_make():
    """Wakes two threads in turn, WAKE_UPS times in all."""
    there, back = os.pipe(), os.pipe()

    def echo():
        while os.read(there[0], 1):
            os.write(back[1], b".")
    thread = threading.Thread(target=echo)
    thread.start()
    for _ in range(WAKE_UPS // 2):
        os.write(there[1], b".")
        os.read(back[0], 1)
    os.close(there[1])
    thread.join()
    for fd in (there[0], *back):
        os.close(fd)


def work_s():
    """Returns how long the machine needs now to start a program, for the wake-ups, and for a second of
    CPU."""
    began = time.monotonic()
    subprocess.run(["true"], check=True)
    wake_ups_make()
    cpu = time.thread_time()
    while time.thread_time() - cpu < 1:
        pass
    return time.monotonic() - began


class Limit:
    """The limit of a wait, from now on. least_s: it is not reached before."""

    def __init__(self, least_s=TIMES, work=work_s):
        self.began, self.limit_s, self._work = time.monotonic(), least_s, work

    def passed_s(self):
        return time.monotonic() - self.began

    def reached(self):
        """Whether the wait is to fail. The machine is measured when that seems to be so, which takes a
        second or more: the condition has to be looked at once more."""
        if self.passed_s() < self.limit_s:
            return False
        self.limit_s = max(self.limit_s, TIMES * self._work())
        return self.passed_s() >= self.limit_s


def until(condition, least_s=3 * TIMES, every_s=0.02, work=work_s):
    """Returns the first true value of condition(), or its last value at the limit."""
    limit = Limit(least_s, work)
    while True:
        value = condition()
        if value:
            return value
        if limit.reached():
            return condition()
        time.sleep(every_s)


def readable(one, least_s=3 * TIMES):
    """Whether there is something to read from a socket before the limit."""
    return bool(until(lambda: select.select([one], [], [], 0.1)[0], least_s, every_s=0))


def received(one, most):
    """Returns what a socket receives, at most `most` bytes. At the limit: BlockingIOError."""
    readable(one)
    return one.recv(most, socket.MSG_DONTWAIT)


def within(took_s, least_s=TIMES):
    """Whether something took no longer than a wait may."""
    return took_s < least_s or took_s < TIMES * work_s()


def let_run(seconds):
    """Lets the programs run that were started. No verdict may depend on how far they get."""
    time.sleep(seconds)


# ---- Idle processes ----

Look = namedtuple("Look", "time_s asleep threads sleeps preemptions cpu_s")


def look(pid):
    """Returns what /proc tells of the threads of a process: whether all are asleep, and how many times they
    have gone to sleep."""
    asleep, threads, sleeps, preemptions, cpu_ns = True, [], 0, 0, 0
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/status" % (pid, tid), encoding="utf-8") as file:
                fields = dict(line.split(":", 1) for line in file.read().splitlines())
            with open("/proc/%d/task/%s/schedstat" % (pid, tid), encoding="ascii") as file:
                cpu_ns += int(file.read().split()[0])
        except OSError:  # it has ended
            continue
        threads.append(tid)
        asleep = asleep and fields["State"].split()[0] == "S"
        sleeps += int(fields["voluntary_ctxt_switches"])
        preemptions += int(fields["nonvoluntary_ctxt_switches"])
    return Look(time.monotonic(), asleep, threads, sleeps, preemptions, cpu_ns / 1e9)


def rests(pid):
    """Whether no thread of an idle process wakes up, for a second. It may have work to do at first."""
    def one_second():
        before = look(pid)
        let_run(1)
        after = look(pid)
        return before.asleep and after.asleep and before.threads == after.threads and \
            before.sleeps == after.sleeps and before.preemptions == after.preemptions
    return until(one_second)


def sleeps_between(pid, most_s):
    """Whether an idle process does nothing but sleep, at most `most_s` times in a second, and look. Its
    looks may take TIMES times the CPU time that a plain program needs for that number of wake-ups.
    Prints both."""
    before = look(pid)
    let_run(2)
    after = look(pid)
    began_s = time.process_time()
    wake_ups_make()
    plain_s = (time.process_time() - began_s) / WAKE_UPS
    sleeps, passed_s = after.sleeps - before.sleeps, after.time_s - before.time_s
    used_s, most = after.cpu_s - before.cpu_s, most_s * passed_s
    print("# %d sleeps in %.1f s, at most %d, with %.1f ms of CPU time; a plain program takes %.1f us for one" % (
        sleeps, passed_s, most, 1e3 * used_s, 1e6 * plain_s))
    return sleeps <= most and used_s <= TIMES * plain_s * most
