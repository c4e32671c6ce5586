# SPDX-License-Identifier: BSD-3-Clause
"""Prints the cases of a test that compares values as TAP: (name, actual value, expected value)."""


def run(cases):
    """Prints all cases. Returns the exit status."""
    failed = 0
    print("1..%d" % len(cases))
    for number, (name, got, want) in enumerate(cases, 1):
        failed += got != want
        print("%s %d - %s" % ("ok" if got == want else "not ok", number, name))
        if got != want:
            print("# got %s, expected %s" % (got, want))
    return 1 if failed else 0
