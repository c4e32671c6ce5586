#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/lib/results.py: what counts as passed, failed and skipped."""

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
    """(passed, failed, skipped)"""
    with contextlib.redirect_stdout(io.StringIO()):
        counts = results.record("stage", cases, list(skips), os.path.join(folder, "results"))
    return tuple(counts.values())


def tap(text, status=0, skips=()):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tap")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return count(folder, results.program_cases("p.sh", path, status), skips)


def meson(result, stdout="", skips=()):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"name": "rocade:unit / x", "result": result, "stdout": stdout,
                       "returncode": 0 if result == "OK" else 1}, file)
        return count(folder, results.meson_cases(path), skips)


CASES = [
    ("all pass", tap("1..2\nok 1 - a\nok 2 - b\n"), (2, 0, 0)),
    ("the plan may come last", tap("ok 1 - a\n# note\nok\n1..2\n"), (2, 0, 0)),
    ("one fails", tap("1..2\nok 1\nnot ok 2 - b\n", 1), (1, 1, 0)),
    ("fails and exits with 0", tap("1..1\nnot ok 1\n", 0), (0, 1, 0)),
    ("passes and exits with 1", tap("1..1\nok 1\n", 1), (1, 1, 0)),
    ("fewer than planned", tap("1..3\nok 1\nok 2\n"), (2, 1, 0)),
    ("more than planned", tap("1..1\nok 1\nok 2\n"), (2, 1, 0)),
    ("no case", tap("hello\n"), (0, 1, 0)),
    ("no output", tap(""), (0, 1, 0)),
    ("bails out", tap("1..1\nok 1\nBail out! no disk\n"), (1, 2, 0)),
    ("a skip fails", tap("1..1\nok 1 - a # SKIP no root\n"), (0, 1, 0)),
    ("a skip that is allowed", tap("1..1\nok 1 - a # SKIP\n", 0, ["p.sh: a"]), (0, 0, 1)),
    ("a skip of another case", tap("1..1\nok 1 - b # SKIP\n", 0, ["p.sh: a"]), (0, 1, 0)),
    ("a pattern", tap("1..1\nok 1 - b # skip x\n", 0, ["p.*: *"]), (0, 0, 1)),
    ("cmocka's skip", tap("1..1\nnot ok 1 # SKIP a\n"), (0, 1, 0)),
    ("all skipped", tap("1..0 # SKIP no root\n"), (0, 1, 0)),
    ("todo is no pass", tap("1..1\nnot ok 1 - a # TODO later\n"), (0, 1, 0)),
    ("an escaped hash", tap("1..1\nok 1 - a \\# skip b\n"), (1, 0, 0)),
    ("words that begin like ok", tap("1..1\nokay\nok 1\n"), (1, 0, 0)),
    ("meson: TAP", meson("OK", "1..2\nok 1 - a\nok 2 - b\n"), (2, 0, 0)),
    ("meson: crash half-way", meson("ERROR", "1..2\nok 1 - a\n"), (1, 1, 0)),
    ("meson: timeout", meson("TIMEOUT", ""), (0, 1, 0)),
    ("meson: exit status", meson("OK"), (1, 0, 0)),
    ("meson: failed", meson("FAIL"), (0, 1, 0)),
    ("meson: skip", meson("SKIP"), (0, 1, 0)),
    ("meson: crash at the end", meson("ERROR", "1..1\nok 1 - a\n"), (1, 1, 0)),
]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
