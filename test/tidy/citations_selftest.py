#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows that every check of citations_check.py can fail, and that it does not where it should
not: each case changes one file of a small clean tree."""

import os
import subprocess
import sys
import tempfile

import citations_check as citations
from selftest import Tap, tree_write

PROTOCOL = """# The protocol
## 4. Headers
### 4.2 Syndromes
## 7. Requester
## 8. Responder
### 8.2 Order of checks
| row | check |
|---|---|
| 1 | lengths |
| 3 | state |
Section 7 says more; row 3 as well.
## 19. Where rxe differs
| topic | rxe |
|---|---|
| MigReq bit | 0 |
## Bugs of others
"""

CLEAN = {
    "docs/protocol.md": PROTOCOL,
    "docs/map.md": "# The map\n\nSee [the protocol](protocol.md) and [tests](../test/x_test.c).\n",
    "docs/conformance.md": "| a | b | test |\n|---|---|---|\n| c | d | `x_test.c`: test_x |\n",
    "lib/qp/qp_init.c": "/* As docs/protocol.md 8 says (IBA 9.7.4, C9-114). */\nint qp;\n",
    "test/x_test.c": "void\ntest_x(void **state)\n{\n}\n",
    "test/captures/59-rc-read.pcap": "",
    "test/captures/c4-psn.pcap": "",
    "test/rules.tsv": "8\t3 to 1: order\tx_test.c\ttest_x\n19\tMigReq bit\tx_test.c\ttest_x\n"
                      "bugs\t1 a bug\tx_test.c\ttest_x\n",
}

REFERENCE = "protocol " + "reference"

# (check, file, its content, fails?)
CASES = [
    (citations.check_pages, "lib/a.c", "/* docs/nothing.md */\n", True),
    (citations.check_pages, "lib/a.c", "/* see docs/protocol.md 5 */\n", True),
    (citations.check_pages, "lib/a.c", "/* docs/protocol.md 4, 5 and 8 */\n", True),
    (citations.check_pages, "lib/a.c", "/* docs/protocol.md 4 to 6 */\n", True),
    (citations.check_pages, "lib/a.c", "/* as in docs/protocol.md\n * 8.3. */\n", True),
    (citations.check_pages, "meson.build", '# docs/map.md, "Dependencies".\n', True),
    (citations.check_pages, "test/a.py", "# docs/protocol.md 9\n", True),
    (citations.check_pages, "docs/a.md", "docs/protocol.md 4.1 is it.\n", True),
    (citations.check_pages, "lib/a.c", "/* docs/protocol.md 4, 7 and 8.2 */\n", False),
    (citations.check_pages, "lib/a.c", "/* docs/protocol.md\n * 7 to 8: 32 bits. */\n", False),
    (citations.check_pages, "lib/a.c", '/* docs/map.md, "The map" */\n', False),
    (citations.check_pages, "lib/a.c", 'puts("docs/nothing.md");\n', False),
    (citations.check_rows, "lib/a.c", "/* row 2 of docs/protocol.md 8.2 */\n", True),
    (citations.check_rows, "lib/a.c", "/* rows 1 and 4 of docs/protocol.md 8 */\n", True),
    (citations.check_rows, "lib/a.c", "/* docs/protocol.md 8, row 9 */\n", True),
    (citations.check_rows, "lib/a.c", "/* row 1 of docs/protocol.md 7 */\n", True),
    (citations.check_rows, "lib/a.c", "/* rows 1 and 3 of\n * docs/protocol.md 8 */\n", False),
    (citations.check_links, "docs/a.md", "[a](b.md)\n", True),
    (citations.check_links, "docs/a.md", "[a](map.md#the-map) [b](https://x.org)\n", False),
    (citations.check_files, "lib/a.c", "/* see nothing.c */\n", True),
    (citations.check_files, "lib/a.c", "int a; /* qp/nothing.h */\n", True),
    (citations.check_files, "test/a.py", "# x_test.py has more.\n", True),
    (citations.check_files, "docs/a.md", "`lib/qp/nothing.c` has it.\n", True),
    (citations.check_files, "docs/a.md", "`lib/qp/qp_init.c`, `nothing.c`, build/x.py\n", False),
    (citations.check_files, "lib/a.c", "/* see qp_init.c, qp/qp_init.c, lib/qp/qp_init.c; rte_ring.h */\n", False),
    (citations.check_files, "lib/a.c", "/* <infiniband/verbs.h>, NAME_test.c, e.g. */\n", False),
    (citations.check_files, "lib/a.c", '#include "nothing.h"\n', False),
    (citations.check_captures, "test/a.c", "/* as in capture 60 */\n", True),
    (citations.check_captures, "test/a.c", "/* capture c4-other */\n", True),
    (citations.check_captures, "test/a.c", "/* captures 59 and capture c4-psn */\n", False),
    (citations.check_unnamed, "test/a.c", "/* the %s says */\n" % REFERENCE, True),
    (citations.check_unnamed, "test/a.c", "/* the protocol\n * %s */\n" % REFERENCE[9:], True),
    (citations.check_unnamed, "docs/a.md", "as the first " + "design had it\n", True),
    (citations.check_unnamed, "test/a.c", "/* resent [cap 59: 0x1002] */\n", True),
    (citations.check_unnamed, "test/a.c", "/* (section 8, row 3) */\n", True),
    (citations.check_unnamed, "test/a.c", "/* sections 4 to 8 */\n", True),
    (citations.check_unnamed, "test/a.c", "/* Row 3, a state */\n", True),
    (citations.check_unnamed, "docs/protocol.md", PROTOCOL + "See section 6.\n", True),
    (citations.check_unnamed, "test/a.c", "/* RFC 1071, section 3 */\n", False),
    (citations.check_unnamed, "test/a.c", "/* row 3 of docs/protocol.md 8 */\n", False),
    (citations.check_unnamed, "test/a.c", "/* docs/protocol.md 8, row 3 */\n", False),
    (citations.check_unnamed, "test/a.c", "/* rows of the section */\n", False),
    (citations.check_iba, "lib/a.c", "/* IBA section 9.7 */\n", True),
    (citations.check_iba, "lib/a.c", "/* IBA9.7.4 */\n", True),
    (citations.check_iba, "lib/a.c", "/* IBA 97.4 */\n", True),
    (citations.check_iba, "lib/a.c", "/* IBA 9..7 */\n", True),
    (citations.check_iba, "lib/a.c", "/* (c9-114) */\n", True),
    (citations.check_iba, "lib/a.c", "/* C9.114 */\n", True),
    (citations.check_iba, "lib/a.c", "/* C99-114 */\n", True),
    (citations.check_iba, "lib/a.c", "/* O9-5 */\n", True),
    (citations.check_iba, "lib/a.c", "/* annex 17 */\n", True),
    (citations.check_iba, "lib/a.c", "/* RFC1071 */\n", True),
    (citations.check_iba, "lib/a.c", "/* IBA 9.7.5.2.8, table 45; C9-5, o11-5.2.5 */\n", False),
    (citations.check_iba, "lib/a.c", "/* annexes A14, A17.4.3; RFC 4291, the IBA's */\n", False),
    (citations.check_rules, "test/rules.tsv", "5\ta rule\tx_test.c\ttest_x\n", True),
    (citations.check_rules, "test/rules.tsv", "8\t2 a rule\tx_test.c\ttest_x\n", True),
    (citations.check_rules, "test/rules.list", "8\t3 to 9: a rule\n", True),
    (citations.check_rules, "test/rules.list", "19\tno topic\n", True),
    (citations.check_rules, "docs/protocol.md", PROTOCOL.replace("Bugs", "Faults"), True),
    (citations.check_rules, "test/rules.list", "# comment\n7\ta rule\nbugs\t1 2 one\n", False),
    (citations.check_conformance, "docs/conformance.md", "| a | `x_test.c`: test_y |\n", True),
    (citations.check_conformance, "docs/conformance.md", "| a | `y_test.c`: test_x |\n", True),
    (citations.check_conformance, "docs/conformance.md", "| a | somewhere |\n", True),
    (citations.check_conformance, "docs/conformance.md", "| a | no test |\n", False),
]


def tree_findings(path=None, content=None):
    with tempfile.TemporaryDirectory() as root:
        tree_write(root, CLEAN, path, content)
        tree = citations.Tree(root)
        return {check: list(check(tree)) for check in citations.CHECKS}


def run(*options):
    """What the program prints and its status, of a tree with one wrong citation."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "citations_check.py")
    with tempfile.TemporaryDirectory() as root:
        tree_write(root, CLEAN, "lib/a.c", "/* docs/nothing.md */\n")
        done = subprocess.run([sys.executable, program, root, *options], text=True,
                              capture_output=True, check=False)
    return done.stdout, done.returncode


def main():
    tap = Tap()
    clean = tree_findings()
    tap.case(not any(clean.values()), "a clean tree has no findings", clean)
    for check, path, content, fails in CASES:
        found = tree_findings(path, content)[check]
        name = "%s %s %r" % (check.__name__, "finds" if fails else "accepts", content[-50:])
        tap.case(bool(found) == fails, name, found)
    tap.case({case[0] for case in CASES if case[3]} == set(citations.CHECKS),
             "every check has a case")
    shown, status = run()
    tap.case(status == 1 and "not ok 1" in shown and "ok 2" in shown, "the program fails", shown)
    shown, status = run("--count")
    tap.case(status == 0 and shown == "unresolved citations: 1\n", "--count counts", shown)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
