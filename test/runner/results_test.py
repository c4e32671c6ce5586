#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/lib/results.py: which cases count as passed, failed and skipped."""

import contextlib
import io
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/lib"))
import cases  # noqa: E402
import results  # noqa: E402


def count(folder, cases, skips=()):
    """Returns (passed, failed, skipped)."""
    with contextlib.redirect_stdout(io.StringIO()):
        counts = results.record("stage", cases, list(skips), os.path.join(folder, "results"))
    return tuple(counts.values())


def tap(text, status=0, skips=()):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tap")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return count(folder, results.program_cases("p.sh", path, status), skips)


def meson(result, stdout="", skips=(), status=1):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"name": "rocade:unit / x", "result": result, "stdout": stdout,
                       "returncode": 0 if result == "OK" else status}, file)
        return count(folder, results.meson_cases(path), skips)


def printed(result, stdout):
    """Returns what results.py prints about a test of meson."""
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.redirect_stdout(io.StringIO()) as out:
        log, skips = (os.path.join(folder, name) for name in ("log.json", "skips"))
        with open(log, "w", encoding="utf-8") as file:
            json.dump({"name": "x", "result": result, "stdout": stdout, "returncode": 0}, file)
        with open(skips, "w", encoding="utf-8"):
            pass
        results.main(["meson", "stage", log, skips, os.path.join(folder, "results")])
    return out.getvalue()


def reasons(text):
    return [why for _, _, why in results.tap_cases(text)]


CASES = [
    ("the diagnostics behind a failed case are its reason",
     reasons("1..2\nnot ok 1 - a\n# one\n# two\tof it\nok 2 - b\n# note\n"), ["one; two of it", ""]),
    ("a reason ends at a line that is no diagnostic, and after three",
     reasons("1..2\nnot ok 1\n# a\nx\n# b\nnot ok 2\n# c\n# d\n# e\n# f\n"), ["a", "c; d; e"]),
    ("the diagnostics behind a skipped case are no reason",
     reasons("1..1\nnot ok 1 # SKIP a\n# b\n"), ["a"]),
    ("two cases pass", tap("1..2\nok 1 - a\nok 2 - b\n"), (2, 0, 0)),
    ("the plan may come last", tap("ok 1 - a\n# note\nok\n1..2\n"), (2, 0, 0)),
    ("one of two cases fails", tap("1..2\nok 1\nnot ok 2 - b\n", 1), (1, 1, 0)),
    ("a failed case fails in spite of exit status 0", tap("1..1\nnot ok 1\n", 0), (0, 1, 0)),
    ("exit status 1 without a failed case is a failure", tap("1..1\nok 1\n", 1), (1, 1, 0)),
    ("fewer cases than planned are a failure", tap("1..3\nok 1\nok 2\n"), (2, 1, 0)),
    ("more cases than planned are a failure", tap("1..1\nok 1\nok 2\n"), (2, 1, 0)),
    ("output without a case is a failure", tap("hello\n"), (0, 1, 0)),
    ("no output is a failure", tap(""), (0, 1, 0)),
    ("a bail-out is a failure", tap("1..1\nok 1\nBail out! no disk\n"), (1, 2, 0)),
    ("a skip is a failure", tap("1..1\nok 1 - a # SKIP no root\n"), (0, 1, 0)),
    ("a listed skip is allowed", tap("1..1\nok 1 - a # SKIP\n", 0, ["p.sh: a"]), (0, 0, 1)),
    ("a skip of another case is a failure", tap("1..1\nok 1 - b # SKIP\n", 0, ["p.sh: a"]),
     (0, 1, 0)),
    ("a pattern allows a skip", tap("1..1\nok 1 - b # skip x\n", 0, ["p.*: *"]), (0, 0, 1)),
    ("cmocka's form of a skip is a failure", tap("1..1\nnot ok 1 # SKIP a\n"), (0, 1, 0)),
    ("it is allowed if it is listed", tap("1..1\nnot ok 1 # SKIP a\n", 0, ["p.sh: a"]), (0, 0, 1)),
    ("a program that skips all cases is a failure", tap("1..0 # SKIP no root\n"), (0, 1, 0)),
    ("a todo is a failure", tap("1..1\nnot ok 1 - a # TODO later\n"), (0, 1, 0)),
    ("an escaped hash belongs to the name", tap("1..1\nok 1 - a \\# skip b\n"), (1, 0, 0)),
    ("a word that begins with ok is no case", tap("1..1\nokay\nok 1\n"), (1, 0, 0)),
    ("meson: TAP cases count", meson("OK", "1..2\nok 1 - a\nok 2 - b\n"), (2, 0, 0)),
    ("meson: a crash half-way is a failure", meson("ERROR", "1..2\nok 1 - a\n"), (1, 1, 0)),
    ("meson: a timeout is a failure", meson("TIMEOUT", ""), (0, 1, 0)),
    ("meson: the last lines of a test that was killed are printed",
     "  | so far\n" in printed("TIMEOUT", "1..2\nok 1 - a\nso far\n"), True),
    ("meson: the output of a test that passed is not printed",
     "so far" in printed("OK", "1..1\nok 1 - a\nso far\n"), False),
    ("meson: exit status 0 passes", meson("OK"), (1, 0, 0)),
    ("meson: a failed test is a failure", meson("FAIL"), (0, 1, 0)),
    ("meson: cmocka's form of a listed skip",
     meson("FAIL", "1..2\nok 1 - b\nnot ok 2 # SKIP a\n", ["x: a"], 0), (1, 0, 1)),
    ("meson: an exit status beside a skip is a failure",
     meson("FAIL", "1..1\nnot ok 1 # SKIP a\n", ["x: a"], 1), (0, 1, 1)),
    ("meson: a skipped test is a failure", meson("SKIP"), (0, 1, 0)),
    ("meson: a crash after the last case is a failure", meson("ERROR", "1..1\nok 1 - a\n"),
     (1, 1, 0)),
]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
