# SPDX-License-Identifier: BSD-3-Clause
"""Captures the frames on the bridge of part a in one pcap file: half of them from the beginning,
half from the moment when the loss begins."""

import os
import shutil
import subprocess

import hosts
from program import Failed

FRAMES = 100000
PCAP_HEADER = 24


class Capture:
    def __init__(self, path, scratch):
        if not shutil.which("dumpcap"):
            raise Failed("--capture needs dumpcap: apt-get install tshark")
        self.path = path
        self.halves = []
        self.scratch = scratch
        self.begin_half()

    def begin_half(self):
        """Begins the next half of the capture."""
        half = os.path.join(self.scratch, "capture-%d" % len(self.halves))
        process = subprocess.Popen(
            hosts.inside("wire") + ["dumpcap", "-q", "-P", "-i", hosts.SIDES[0], "-c",
                                    str(FRAMES // 2), "-B", "64", "-f", "udp port 4791",
                                    "-w", half],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, close_fds=False)
        self.halves.append((half, process))
        for line in process.stderr:
            if line.startswith("File:"):  # the capture runs
                return
        raise Failed("dumpcap did not start")

    def finish(self):
        with open(self.path, "wb") as whole:
            for half, process in self.halves:
                if process.poll() is None:
                    process.terminate()
                process.communicate()
                with open(half, "rb") as file:
                    if whole.tell() != 0:
                        file.seek(PCAP_HEADER)
                    shutil.copyfileobj(file, whole)
