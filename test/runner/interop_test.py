#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test/interop/rxe.py without QEMU skips all cases and tells why. The skip counts as a failure."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tools/lib"))
import cases  # noqa: E402
import results  # noqa: E402

PROGRAM = os.path.join(HERE, "../interop/rxe.py")


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-B", PROGRAM], capture_output=True, text=True,
                              check=False, env={"PATH": folder, "TMPDIR": folder})
        out = os.path.join(folder, "tap")
        with open(out, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        with contextlib.redirect_stdout(io.StringIO()):
            counts = results.record("stage", results.program_cases(
                "rxe.py", out, done.returncode), [], os.path.join(folder, "results"))
    why = done.stdout.partition("# SKIP ")[2].strip()
    capable = os.geteuid() == 0 and os.path.exists("/dev/net/tun") and \
        os.uname().machine == "x86_64"
    return cases.run([
        ("rxe.py without QEMU ends with status 0", done.returncode, 0),
        ("the skip counts as a failure: passed, failed, skipped", tuple(counts.values()),
         (0, 1, 0)),
        ("the skip names the missing program", why if capable else bool(why),
         "no qemu-system-x86_64 here (Debian package qemu-system-x86)" if capable else True)])


if __name__ == "__main__":
    sys.exit(main())
