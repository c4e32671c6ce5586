#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The host's own devices in the lists of devices of an unmodified program: those of a libibverbs that
stands in for the real one, with two devices. Calls on them are not refused by rocade-run --faults.

    host_devices_test.py RUN ROCADED LIBIBVERBS"""

import errno
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../e2e/lib"))
import process  # noqa: E402
from tap import case, run  # noqa: E402

RUN, ROCADED, LIBIBVERBS = [os.path.abspath(a) for a in sys.argv[1:4]]

# Prints the names of both lists.
PROGRAM = """
from ctypes import CDLL, POINTER, byref, c_char_p, c_int, c_void_p
def names(list, device):
    return ",".join(ibv.ibv_get_device_name(device(list[i])).decode() for i in range(n.value))
n = c_int(-1)
ibv, cm = CDLL("libibverbs.so.1"), CDLL("librdmacm.so.1")
ibv.ibv_get_device_name.argtypes, ibv.ibv_get_device_name.restype = [c_void_p], c_char_p
ibv.ibv_get_device_list.restype = POINTER(c_void_p)
cm.rdma_get_devices.restype = POINTER(POINTER(c_void_p))
print("verbs", names(ibv.ibv_get_device_list(byref(n)), lambda device: device))
print("rdma", names(cm.rdma_get_devices(byref(n)), lambda context: context[0]))
"""

# Opens the host's first device, and then Rocade's.
OPENER = """
from ctypes import CDLL, POINTER, byref, c_int, c_void_p, get_errno
ibv = CDLL("libibverbs.so.1", use_errno=True)
ibv.ibv_get_device_list.restype = POINTER(c_void_p)
ibv.ibv_open_device.argtypes, ibv.ibv_open_device.restype = [c_void_p], c_void_p
list = ibv.ibv_get_device_list(byref(c_int()))
print("host", bool(ibv.ibv_open_device(list[1])))
print("rocade", bool(ibv.ibv_open_device(list[0])), get_errno())
"""


def listed(*options, program=PROGRAM):
    done = process.run([RUN, "--daemon", ROCADED, *options, sys.executable, "-c", program],
                       env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(LIBIBVERBS),
                                ROCADE_OFF=""))
    return done.stdout + done.stderr


def lists():
    for options in (["--start-local"], ["--start-local", "--host-devices", "hide"]):
        said = listed(*options)
        case("%s: Rocade's device only" % " ".join(options),
             said == "verbs rocade0\nrdma rocade0\n", said)
    said = listed("--start-local", "--host-devices", "show")
    case("--host-devices show: the host's devices, too", said.startswith(
        "verbs rocade0,fake0,fake1\nrdma ") and said.count("fake0") > 1, said)


def faults():
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as script:
        script.write("call 1 of open_device: EMFILE\n")
        script.flush()
        said = listed("--start-local", "--host-devices", "show", "--faults", script.name, program=OPENER)
    case("a script refuses calls on Rocade's device only", said.startswith("host True\nrocade False %d\n" % errno.EMFILE),
         said)


if __name__ == "__main__":
    sys.exit(run(lists, faults))
