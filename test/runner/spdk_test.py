#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/extra/spdk.sh: what it says, and its exit status, without a source tree and with wrong
arguments. SPDK itself is not part of the tests: it has no package."""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools")
import cases  # noqa: E402

SCRIPT = os.path.join(TOOLS, "extra/spdk.sh")


def touch(path):
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8"):
        pass


def row(name, arguments, status, words):
    """A case: the exit status, and whether the words are said."""
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False,
                          env=dict(os.environ, ROCADE_BUILD=TOOLS))
    return (name, (done.returncode, words in done.stdout + done.stderr), (status, True))


def main():
    with tempfile.TemporaryDirectory() as folder:
        rows = [row("without a source tree NVMe over RDMA is untested", [], 77,
                    "NVMe over RDMA is untested"),
                row("a folder that is no source tree", [folder], 77, "NVMe over RDMA is untested"),
                row("--linux without a source tree", ["--linux"], 77, "NVMe over RDMA is untested")]
        touch(os.path.join(folder, "include/spdk/nvmf.h"))
        rows += [row("a source tree without submodules", [folder], 1, "git submodule update --init"),
                 row("a wrong number of seconds", [folder, "0"], 2, "expected 1 to 3600"),
                 row("too many seconds", [folder, "3601"], 2, "expected 1 to 3600")]
        for name in ("dpdk/meson.build", "isa-l/autogen.sh"):
            touch(os.path.join(folder, name))
        rows.append(row("--linux with a tree in which SPDK is not built", ["--linux", folder], 77,
                        "NVMe over RDMA with Linux is untested"))
    rows += [row("an unknown option", ["--fast"], 2, "unknown option '--fast'"),
             row("too many arguments", ["a", "1", "b"], 2, "more than two arguments"),
             row("--linux with seconds", ["--linux", "a", "1"], 2, "--linux takes no SECONDS"),
             row("--help", ["--help"], 0, "Exit status: ")]
    return cases.run(rows)


if __name__ == "__main__":
    sys.exit(main())
