#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows that every check of words.py can fail, and that it accepts what it should: each case adds
one file to a small clean tree."""

import subprocess
import sys
import tempfile

import words
from selftest import Tap, tree_write

RETIRED = """# comment
both\tbells?\tdoorbell
code\tgates?\tengine lock
prose\thung up on\tdisconnected
file\t(?:bells)\\.[ch]\tdoorbell.c
"""

CLEAN = {
    "lib/a/ring.c": "/* Rings the doorbell. The aggregate stays. */\n"
                    "void\nring(void)\n{\n}\n",
    "app/b/b_main.c": "int\nmain(void)\n{\n\treturn 0;\n}\n",
    "docs/glossary.md": "| term | meaning |\n|---|---|\n| **ACK** | x. |\n| **doorbell** | y. |\n",
    "docs/page.md": "# Page\n\nWhat is a QP? See `bell` and who(1).\n",
}

# (check, file, its content, fails?)
CASES = [
    (words.check_retired, "lib/a/x.c", "int bell_ring;\n", True),
    (words.check_retired, "lib/a/x.c", "int dev_bells;\n", True),
    (words.check_retired, "lib/a/x.h", "/* rings\n * the bell */\n", True),
    (words.check_retired, "lib/a/x.c", "struct gate gate;\n", True),
    (words.check_retired, "lib/a/x.c", "int aggregate, gateway, doorbell;\n", False),
    (words.check_retired, "lib/a/x.c", "/* the cost gate */\n", False),
    (words.check_retired, "lib/a/x.c", "/* The client is hung up on. */\n", True),
    (words.check_retired, "lib/a/bells.c", "int x;\n", True),
    (words.check_retired, "docs/x.md", "A bell rings.\n", True),
    (words.check_retired, "docs/x.md", "`bell` was its name.\n", False),
    (words.check_retired, "tools/x.py", "x = 1  # rings a bell\n", True),
    (words.check_retired, "tools/x.lua", "local bell = 1 -- a bell\n", True),
    (words.check_retired, "tools/x.lua", "local bell = 1\n", False),
    (words.check_phrases, "lib/a/x.c", "/* Who posts needs no lock. */\n", True),
    (words.check_phrases, "lib/a/x.c", "/* A post. Whoever polls,\n * waits. */\n", True),
    (words.check_phrases, "lib/a/x.c", "/* What it carried has arrived. */\n", True),
    (words.check_phrases, "lib/a/x.c", "/* The lock that nobody\n * holds. */\n", True),
    (words.check_phrases, "lib/a/x.c", "/* The thread and his lock. */\n", True),
    (words.check_phrases, "lib/a/x.c", "/* The thread that posts needs no lock. */\n", False),
    (words.check_phrases, "lib/a/x.c", 'const char *x = "Who posts";\n', False),
    (words.check_phrases, "docs/x.md", "So many at once.\n", True),
    (words.check_phrases, "docs/x.md", "What is a QP? A queue pair.\n", False),
    (words.check_messages, "app/c/x.c", 'f("--mtu 77 cannot be: 1 to 2");\n', True),
    (words.check_messages, "lib/a/x.def", 'X(a, "What it says is wrong.")\n', True),
    (words.check_messages, "app/c/x.c", 'f("invalid value: expected 1 to 2"); /* "nobody" */\n',
     False),
    (words.check_messages, "test/c/x.c", 'f("nobody");\n', False),
    (words.check_functions, "drivers/c/x.c", "void\nring(void)\n{\n}\n", True),
    (words.check_functions, "drivers/c/x.c", "static inline void ring(int a)\n{\n}\n", True),
    (words.check_functions, "drivers/c/x.c", "void\nring(void);\n", False),
    (words.check_functions, "drivers/c/x.c",
     "#if A\nint\nsum(void)\n{\n}\n#else\nint\nsum(void)\n{\n}\n#endif\n", False),
    (words.check_functions, "app/c/c_main.c", "int\nmain(void)\n{\n}\n", False),
    (words.check_functions, "test/c/x.c", "void\nring(void)\n{\n}\n", False),
    (words.check_file_names, "drivers/c/ring.c", "int x;\n", True),
    (words.check_file_names, "test/c/ring.c", "int x;\n", False),
    (words.check_file_names, "drivers/c/c_ring.c", "int x;\n", False),
    (words.check_glossary, "docs/glossary.md", "| **SRQ** | x. |\n| **ACK** | y. |\n", True),
    (words.check_glossary, "docs/glossary.md", "| **ACK** | x. |\n| **ack** | y. |\n", True),
    (words.check_glossary, "docs/glossary.md", "| **ACK**: x. |\n| **QP** | y. |\n", True),
    (words.check_glossary, "docs/glossary.md", "| **bell** | x. |\n", True),
    (words.check_glossary, "docs/glossary.md", "Nothing.\n", True),
]


def findings(retired, path=None, content=None):
    """{check: findings} of the clean tree with one more file."""
    with tempfile.TemporaryDirectory() as root:
        tree_write(root, CLEAN, path, content)
        files = list(words.tree_files(root))
        return {check: list(check(files, retired)) for check in words.CHECKS}


def main():
    tap = Tap()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.write(RETIRED)
        file.flush()
        retired = words.Words(words.read_retired(file.name))
    clean = findings(retired)
    tap.case(not any(clean.values()), "a clean tree has no findings", clean)
    for check, path, content, fails in CASES:
        found = findings(retired, path, content)[check]
        tap.case(bool(found) == fails, "%s %s %s %r" % (
            check.__name__, "finds" if fails else "accepts", path, content[:60]), found)
    tap.case({case[0] for case in CASES if case[3]} == set(words.CHECKS),
             "every check has a case that fails")
    with tempfile.TemporaryDirectory() as root:
        tree_write(root, {"README.md": "A gentle bell.\n"})
        run = subprocess.run([sys.executable, words.__file__, "--count", root], text=True,
                             capture_output=True, check=False)
    tap.case(run.returncode == 0 and "retired words: 1\n" in run.stdout,
             "--count counts and never fails", run.stdout)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
