# SPDX-License-Identifier: BSD-3-Clause
"""Prints cases as TAP."""

import sys
import traceback

LINES = 40  # of the reason of a failed case

_cases = []


def case(name, good, why="", lines=LINES):
    """Prints a case, which passes if `good` is any true value. Returns `good`. lines: at the end of
    `why`, which are printed."""
    _cases.append(bool(good))
    print("%sok %d - %s" % ("" if good else "not ", len(_cases), name), flush=True)
    if not good:
        text = "\n".join(str(why).splitlines()[-lines:])
        print("%s: %s" % (name, text), file=sys.stderr, flush=True)
    return good


def group(function, *args):
    """Calls a function with cases. An exception in it is a failed case. Returns its result."""
    try:
        return function(*args)
    except Exception:  # of any kind: the other groups still run
        words = [arg for arg in args if isinstance(arg, str) and "/" not in arg]
        case(" ".join([function.__name__, *words, "runs to its end"]), False, traceback.format_exc())
        return None


def end():
    """Prints the plan. Returns the exit status."""
    print("1..%d" % len(_cases))
    return 0 if _cases and all(_cases) else 1
