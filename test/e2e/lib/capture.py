# SPDX-License-Identifier: BSD-3-Clause
"""Captures the frames of a device with tcpdump."""

import os
import signal
import sys

from process import Process, run, until

SEND = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for line in sys.stdin:
    s.send(bytes.fromhex(line))
"""
# A frame of the local experimental EtherType, to no host.
LAST = b"\x02" + bytes(10) + b"\x01\x88\xb5" + b"the last frame of this capture".ljust(46)


def inject(space, device, frames):
    """Sends frames from another process, as this one stays in its namespace."""
    run(["ip", "netns", "exec", space, sys.executable, "-c", SEND, device],
        feed="".join(frame.hex() + "\n" for frame in frames), check=True)


class Capture:
    """tcpdump on a device of a network namespace, which writes each frame at once."""

    def __init__(self, space, device, folder, name, *options):
        self.space, self.device = space, device
        self.path = os.path.join(folder, name)
        self.dump = Process(["ip", "netns", "exec", space, "tcpdump", "-i", device, "-w",
                             self.path, "-U", "-B", "262144", *options])
        self.dump.wait_line("listening on")

    def _has_last(self):
        with open(self.path, "rb") as file:
            file.seek(max(os.path.getsize(self.path) - 65536, 0))
            return LAST in file.read()

    def stop(self):
        """Ends the capture. tcpdump discards what it has not read when it gets the signal: it has
        read everything once it has written a frame that is sent last."""
        inject(self.space, self.device, [LAST])
        if not until(lambda: self.dump.poll() is not None or self._has_last()):
            raise self.dump.failure("waited for the last frame")
        self.dump.send_signal(signal.SIGINT)
        self.dump.wait()
        print("# " + ", ".join(self.dump.text.strip().splitlines()))
