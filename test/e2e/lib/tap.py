# SPDX-License-Identifier: BSD-3-Clause
"""Prints the cases of an end-to-end program as TAP."""

import sys
import time
import traceback

_cases = []
_started = time.monotonic()


def case(name, good, why=""):
    """Prints a case, which passes if `good` is any true value. Returns `good`."""
    _cases.append(bool(good))
    print("%sok %d - %s" % ("" if good else "not ", len(_cases), name), flush=True)
    if not good:
        print("%s: %s" % (name, why), file=sys.stderr, flush=True)
    return good


def skip(name, why):
    _cases.append(True)
    print("ok %d - %s # SKIP %s" % (len(_cases), name, why), flush=True)


def run(*functions):
    """Each function is a group of cases. An exception in it is a failed case. Returns the exit
    status."""
    for function in functions:
        try:
            function()
        except Exception:  # of any kind: the other functions still run
            case(function.__name__ + " runs to its end", False, traceback.format_exc())
    print("# %.0f s" % (time.monotonic() - _started))
    print("1..%d" % len(_cases))
    return 0 if all(_cases) else 1
