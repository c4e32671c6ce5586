# SPDX-License-Identifier: BSD-3-Clause
"""Prints the cases of an end-to-end program as TAP."""

import sys
import time
import traceback

from process import still_running

DIAGNOSTICS = 3  # lines

_cases = []
_started = time.monotonic()


def case(name, good, why=""):
    """Prints a case, which passes if `good` is any true value. Returns `good`. Of a failed case the
    first lines of the reason are printed as diagnostics of TAP, and all to standard error."""
    _cases.append(bool(good))
    print("%sok %d - %s" % ("" if good else "not ", len(_cases), name), flush=True)
    if not good:
        for line in str(why).splitlines()[:DIAGNOSTICS]:
            print("# " + line[:200], flush=True)
        print("%s: %s" % (name, why), file=sys.stderr, flush=True)
    return good


def skip(name, why):
    _cases.append(True)
    print("ok %d - %s # SKIP %s" % (len(_cases), name, why), flush=True)


def run(*functions):
    """Each function is a group of cases. An exception in it is a failed case, and ends all programs
    that it started. Returns the exit status."""
    for function in functions:
        try:
            function()
        except Exception:  # of any kind: the other functions still run
            why = traceback.format_exc()
            for process in still_running():
                why += "\n%s" % process.failure("killed")
                process.kill()
            case(function.__name__ + " runs to its end", False, why)
    print("# %.0f s" % (time.monotonic() - _started))
    print("1..%d" % len(_cases))
    return 0 if all(_cases) else 1
