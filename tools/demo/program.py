# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd as a process: started, watched line by line, ended, its report read."""

import json
import os
import signal
import subprocess
import threading


class Failed(Exception):
    """One sentence for the person who runs the demo."""


class Program:
    """started: list of all that were started, for stop_all()."""

    def __init__(self, started, name, scratch, command, on_line=None):
        self.name = name
        self.json = os.path.join(scratch, name + ".json")
        self.log = os.path.join(scratch, name + ".log")
        self.on_line = on_line
        self.process = subprocess.Popen(
            command + ["--json", self.json], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", bufsize=1,
            close_fds=False)  # the lock of tools/demo.sh
        started.append(self)
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
                    self.say("quit")  # with -i it would go on

    def alive(self):
        return self.process.poll() is None

    def say(self, command):
        """One line to the command line of a program that runs with -i."""
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it ended: report() says how

    def wait(self, timeout_s):
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise Failed("%s does not end by itself:\n%s" % (self.name, self.tail())) from error
        self.reader.join(5)

    def tail(self, lines=8):
        with open(self.log, encoding="utf-8") as log:
            return "".join("    | " + line for line in log.readlines()[-lines:])

    def report(self, timeout_s=60):
        """Waits for its end and reads its JSON."""
        self.wait(timeout_s)
        if self.process.returncode != 0:
            raise Failed("%s ended with exit status %d:\n%s"
                         % (self.name, self.process.returncode, self.tail()))
        try:
            with open(self.json, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            raise Failed("%s left no report: %s" % (self.name, error)) from error

    def stop(self):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def stop_all(started):
    for program in started:
        program.stop()
