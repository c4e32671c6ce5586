# SPDX-License-Identifier: BSD-3-Clause
"""Cases of a test that compares values: (name, what came, what is right), reported as TAP."""


def run(cases):
    """The exit status."""
    failed = 0
    print("1..%d" % len(cases))
    for number, (name, got, want) in enumerate(cases, 1):
        failed += got != want
        print("%s %d - %s" % ("ok" if got == want else "not ok", number, name))
        if got != want:
            print("# got %s, not %s" % (got, want))
    return 1 if failed else 0
