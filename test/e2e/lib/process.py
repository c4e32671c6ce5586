# SPDX-License-Identifier: BSD-3-Clause
"""Starts programs and waits for them. Every command is printed before it starts and runs in a
session of its own, which is killed as a whole. A thread reads what it prints, so that a program
never waits for its reader. Every wait has a limit, which test/e2e/lib/limit.py measures: the times that
are given here are the least. A wait that reaches it, or that the end of the program makes useless,
raises WaitFailed with the command, the time and the output so far."""

import atexit
import codecs
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import namedtuple

from limit import Limit, until

LIMIT_S = 60
TAIL = 3000  # characters of output in a message
Done = namedtuple("Done", "returncode stdout stderr")
_started = []


class WaitFailed(Exception):
    """What did not happen, of which command, and the output of the command so far."""


def shown(command):
    """Returns the command in one line of at most 400 characters."""
    text = " ".join(shlex.join(str(word) for word in command).split())
    return text if len(text) <= 400 else text[:397] + "..."


def tail(text):
    return text if len(text) <= TAIL else "..." + text[-TAIL:]


class Process:
    """A started program. text: what it has printed so far. With apart=True its standard error is
    kept apart, in `errors`. With feed=True say() writes to its standard input; otherwise that is
    `stdin`, by default empty."""

    def __init__(self, command, apart=False, feed=False, stdin=subprocess.DEVNULL, **more):
        self.command = [str(word) for word in command]
        self.name = shown(command)
        self.text, self.errors = "", ""
        self._read = 0  # characters of `text` that wait_line() has returned
        self._changed = threading.Condition()
        print("#$ " + self.name, flush=True)
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE if feed else stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE if apart else subprocess.STDOUT,
            start_new_session=True, **more)
        self.pid = self.process.pid
        self._readers = [threading.Thread(target=self._drain, args=one, daemon=True) for one in (
            [(self.process.stdout, "text")] + [(self.process.stderr, "errors")] * apart)]
        for reader in self._readers:
            reader.start()
        _started.append(self)

    def _drain(self, pipe, name):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        data = True
        while data:
            data = os.read(pipe.fileno(), 65536)
            with self._changed:
                setattr(self, name, getattr(self, name) + decoder.decode(data))
                self._changed.notify_all()
        pipe.close()

    def _closed(self):
        return not any(reader.is_alive() for reader in self._readers)

    def output(self):
        return self.text + self.errors

    def failure(self, what):
        """Returns an exception that says that `what` has not happened."""
        status = self.process.poll()
        return WaitFailed("%s: %s within %.1f s, %s\n%s" % (
            what, self.name, time.monotonic() - self.began,
            "still running" if status is None else "ended with status %d" % status,
            tail(self.output())))

    def _wait(self, what, condition, timeout_s):
        """Returns the first true value of condition() of the output."""
        limit = Limit(timeout_s)
        while True:
            last = limit.reached()
            with self._changed:
                closed = self._closed()
                value = condition(closed)
                if value:
                    return value
                if closed or last:
                    raise self.failure("waited %.1f s for %s" % (limit.passed_s(), what))
                self._changed.wait(0.1)

    def wait_line(self, word="", timeout_s=LIMIT_S):
        """Returns the next line that contains the word."""
        def line(closed):
            while self._read < len(self.text):
                end = self.text.find("\n", self._read) + 1
                if end == 0 and not closed:
                    return None
                got = self.text[self._read:end or None]
                self._read += len(got)
                if word in got:
                    return got
            return None
        return self._wait('a line with "%s"' % word, line, timeout_s)

    def expect(self, pattern, timeout_s=20, after=0):
        """Waits until the text behind position `after` matches. Returns the match, or None."""
        try:
            return self._wait(pattern, lambda _: re.compile(pattern, re.M).search(
                self.text, after), timeout_s)
        except WaitFailed:
            return None

    def say(self, text):
        """Writes to the standard input of the program, which may have ended."""
        try:
            self.process.stdin.write(text.encode())
            self.process.stdin.flush()
        except OSError:
            pass

    def close_input(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass

    def poll(self):
        return self.process.poll()

    @property
    def returncode(self):
        return self.process.poll()

    def wait(self, timeout_s=LIMIT_S):
        """Returns the exit status."""
        limit, last = Limit(timeout_s), False
        while True:
            try:
                status = self.process.wait(0 if last else min(timeout_s, 1))
                break
            except subprocess.TimeoutExpired:
                if last:
                    raise self.failure("waited %.1f s for the end" % limit.passed_s()) from None
                last = limit.reached()
        for reader in self._readers:
            reader.join(5)  # a program that it started may still have the pipe
        return status

    def finish(self, timeout_s=LIMIT_S):
        """Ends the input. Returns the exit status and the output; status None: the program did
        not end in time and was killed."""
        if self.process.stdin:
            self.close_input()
        try:
            return self.wait(timeout_s), self.output()
        except WaitFailed as why:
            self.kill()
            return None, str(why)

    def send_signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """Kills the program and all that it has started. Returns its output."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # all have ended
        self.wait(10)
        return self.output()


def run(command, timeout_s=LIMIT_S, feed=None, check=False, **more):
    """Runs a command to its end. Returns exit status, output and errors. feed: its input. With
    check=True an exit status other than 0 raises WaitFailed."""
    process = Process(command, apart=True, feed=feed is not None, **more)
    if feed is not None:
        process.say(feed)
        process.close_input()
    try:
        status = process.wait(timeout_s)
    except WaitFailed:
        process.kill()
        raise
    if check and status != 0:
        raise process.failure("failed")
    return Done(status, process.text, process.errors)


def still_running():
    return [process for process in _started if process.poll() is None]


@atexit.register
def _kill_all():
    for process in still_running():
        process.kill()


def _terminated(number, frame):
    """The harness ends a test that takes too long: prints where it is, and what still runs."""
    print("ended by %s here:" % signal.Signals(number).name, file=sys.stderr)
    traceback.print_stack(frame, file=sys.stderr)
    for process in still_running():
        print(process.failure("not ended"), file=sys.stderr, flush=True)
        os.killpg(process.pid, signal.SIGKILL)
    sys.exit(128 + number)


signal.signal(signal.SIGTERM, _terminated)
