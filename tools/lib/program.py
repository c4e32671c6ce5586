# SPDX-License-Identifier: BSD-3-Clause
"""Runs rocade-testpmd and other programs: starts them, reads their output line by line, ends them.
Reads the report of rocade-testpmd."""

import json
import os
import signal
import subprocess
import threading
import time


class Failed(Exception):
    """One sentence for the user."""


class Program:
    """started: the list of all started programs, for stop_all(). reports: whether the program is
    rocade-testpmd, which writes a report."""

    def __init__(self, started, name, scratch, command, on_line=None, reports=True):
        self.name = name
        self.json = os.path.join(scratch, name + ".json")
        self.log = os.path.join(scratch, name + ".log")
        self.on_line = on_line
        self.verdict = None  # of its run: PASS or FAIL
        self.over = threading.Event()  # set when the run or the program has ended
        self.process = subprocess.Popen(
            command + (["--json", self.json] if reports else []), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", bufsize=1,
            close_fds=False)  # inherit the lock of tools/lib/session.sh
        started.append(self)
        with open(self.log, "w", encoding="utf-8"):
            pass  # tail() may need the file at once
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with open(self.log, "w", encoding="utf-8") as log:
            for line in self.process.stdout:
                log.write(line)
                log.flush()
                if self.on_line:
                    self.on_line(line.rstrip())
                if line.startswith(("PASS", "FAIL")):
                    self.verdict = line[:4]
                    self.over.set()
        self.over.set()

    def alive(self):
        return self.process.poll() is None

    def say(self, command):
        """Sends one line to the command line of a program that runs with -i."""
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # the program has ended: state() tells how

    def tail(self, lines=8):
        if not self.alive():
            self.reader.join(5)  # it may have lines to write yet
        with open(self.log, encoding="utf-8") as log:
            return "".join("    | " + line for line in log.readlines()[-lines:])

    def failed(self):
        return self.over.is_set() and self.verdict != "PASS"

    def state(self):
        if self.verdict:
            return "reports " + self.verdict
        if not self.over.is_set():
            return "still runs"
        self.process.wait()  # its output has ended, and so does the process
        return "ended with exit status %d" % self.process.returncode

    def quit(self, timeout_s=20):
        self.say("quit")
        self.wait(timeout_s)

    def wait(self, timeout_s):
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise Failed("%s did not end in time:\n%s" % (self.name, self.tail())) from error
        self.reader.join(5)
        if self.process.returncode != 0:
            raise Failed("%s ended with exit status %d:\n%s"
                         % (self.name, self.process.returncode, self.tail()))

    def report(self, timeout_s=5):
        """Returns its JSON report, which it writes after the last line of its run."""
        end = time.monotonic() + timeout_s
        while True:
            try:
                with open(self.json, encoding="utf-8") as file:
                    report = json.load(file)
                break
            except (OSError, ValueError) as error:
                if not self.alive() or time.monotonic() > end:
                    raise Failed("%s wrote no report: %s\n%s"
                                 % (self.name, error, self.tail())) from error
            time.sleep(0.05)
        if report["result"] != "pass":
            raise Failed("%s: %s" % (self.name, report["reason"]))
        return report

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.kill()


def stop_all(started):
    for program in started:
        program.stop()
