# SPDX-License-Identifier: BSD-3-Clause
"""pyverbs_suite.py FOLDER DEVICE: runs rdma-core's tests, which are in FOLDER, on a device. Prints
a line of JSON for each test: its name, "passed", "skipped" or "failed", and the text of the suite.
The Python of Debian runs this program, because python3-pyverbs is built for it."""

import json
import os
import sys
import unittest
from importlib.machinery import SourceFileLoader


class Report(unittest.TestResult):
    def __init__(self):
        super().__init__()
        # The tests print, and so do processes that they fork.
        self.out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def say(self, test, result, text=""):
        name = test.id().removeprefix("tests.")
        print(json.dumps([name, result, text]), file=self.out, flush=True)

    def addSuccess(self, test):
        self.say(test, "passed")

    def addSkip(self, test, reason):
        self.say(test, "skipped", reason)

    def addError(self, test, err):
        self.say(test, "failed", self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        self.addError(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addError(test, err)


def main():
    folder, device = sys.argv[1:]
    sys.path.insert(0, folder)
    from args_parser import parser  # of the suite
    sys.argv[1:] = ["--dev", device]
    parser.parse_args()
    tests = SourceFileLoader("tests", os.path.join(folder, "__init__.py")).load_module()
    unittest.defaultTestLoader.loadTestsFromModule(tests).run(Report())


if __name__ == "__main__":
    main()
