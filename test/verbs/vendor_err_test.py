#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that docs/verbs.md lists the vendor_err values of lib/qp/qp.h with the same text."""

import os
import re
import sys


def main():
    top = sys.argv[1]
    with open(os.path.join(top, "lib/qp/qp.h"), encoding="utf-8") as file:
        text = file.read()
    table = text[text.index("#define QP_VENDOR_ERRS(X)"):text.index("enum qp_vendor_err {")]
    want = ["| %d | %s |" % (number, words)
            for number, words in enumerate(re.findall(r'X\(\w+,\s*"([^"]*)"\)', table))]
    with open(os.path.join(top, "docs/verbs.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| \d+ \| .* \|$", file.read(), re.M)
    print("1..1")
    same = rows == want and len(want) > 10
    print("%s 1 - docs/verbs.md lists each vendor_err" % ("ok" if same else "not ok"))
    for row in want if not same else []:
        print("# %s" % row)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
