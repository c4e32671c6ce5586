#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks docs/verbs.md against <infiniband/verbs.h>. Every function that the header declares or
defines or that lib/verbs/symbols.def forwards, and every value of ENUMS, has a row. A row's state is supported, partial or absent. The
names of a row are in the header. Its tests exist, and it has one or a reason why not.

Rows name things in their first column, in backquotes: whole, as a tail (`ibv_query_device`,
`_ex`), or several at once (`ibv_wr_*`)."""

import os
import re
import sys

HEADER = "/usr/include/infiniband/verbs.h"
WRITTEN_FOR = "1.14.44."
ENUMS = ("ibv_wr_opcode", "ibv_wc_opcode", "ibv_send_flags", "ibv_access_flags",
         "ibv_qp_attr_mask", "ibv_device_cap_flags", "ibv_raw_packet_caps",
         "ibv_qp_type", "ibv_qp_state", "ibv_srq_type", "ibv_srq_attr_mask", "ibv_event_type",
         "ibv_wc_status", "ibv_wc_flags", "ibv_create_cq_wc_flags", "ibv_create_cq_attr_flags",
         "ibv_cq_init_attr_mask", "ibv_cq_attr_mask", "ibv_qp_create_send_ops_flags",
         "ibv_qp_init_attr_mask", "ibv_qp_create_flags", "ibv_mw_type", "ibv_rereg_mr_flags",
         "ibv_parent_domain_init_attr_mask", "ibv_srq_init_attr_mask",
         "ibv_xrcd_init_attr_mask", "ibv_qp_open_attr_mask")
STATES = ("supported", "partial", "absent")


def header_names(text):
    """Returns the header's functions, and its values of ENUMS by enum."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    functions = set(re.findall(r"^(?:static inline )?(?:const )?(?:struct |enum |union )?\w+[\s*]+"
                               r"(ibv_\w+)\s*\(", text, flags=re.M))
    functions |= set(re.findall(r"^(ibv_\w+)\(", text, flags=re.M))
    functions |= set(re.findall(r"^#define (ibv_\w+)\(", text, flags=re.M))
    values = {}
    for name in ENUMS:
        body = re.search(r"enum %s\s*\{(.*?)\n\}" % name, text, flags=re.S)
        values[name] = re.findall(r"^\s*(\w+)\s*(?:=[^,]*)?,?", body.group(1), flags=re.M) \
            if body else []
        values[name] = [value for value in values[name] if value.startswith("IBV_")]
    return functions, values


def named(cell, known):
    """Returns the known names of a first column, and the words that name nothing."""
    names, lost, last = set(), [], None
    for word in re.findall(r"`([^`]+)`", cell):
        if not re.match(r"(ibv|IBV|_)\w*\*?$", word):
            continue
        if word.endswith("*"):
            found = {name for name in known if name.startswith(word[:-1])}
        elif word.startswith("_") and last is not None:
            parts = last.split("_")
            heads = ["_".join(parts[:n]) for n in range(len(parts), 0, -1)]
            found = set([head + word for head in heads if head + word in known][:1])
        else:
            found = {word} & known
            last = word
        if word.startswith("_") and found:
            last = next(iter(found))
        names |= found
        if not found:
            lost.append(word)
    return names, lost


def tests_of(cell):
    """Yields the tests of a cell with their possible paths. A name without a folder is of the
    folder of the name before it, at first test/verbs."""
    folder = "test/verbs"
    for name in re.findall(r"`([^`]+)`", cell):
        if "/" in name:
            folder = os.path.dirname(name)
        path = os.path.join(folder, os.path.basename(name))
        yield name, [path + ending for ending in ("_test.c", "_test.py", ".py")]


def states_wrong(states, advertised):
    """Returns a message for each name that is absent in one row only, and for each capability whose
    state contradicts the capabilities that the code advertises."""
    wrong = ["%s is absent in one row and %s in another" % (name, ", ".join(sorted(s - {"absent"})))
             for name, s in sorted(states.items()) if "absent" in s and len(s) > 1]
    for name, s in sorted(states.items()):
        if name.startswith("IBV_DEVICE_") and ("absent" in s) == (name in advertised):
            wrong.append("%s is %s, but %sadvertised"
                         % (name, "absent" if "absent" in s else "supported",
                            "" if name in advertised else "not "))
    return wrong


def check(top, text, header, advertised, table):
    """Returns a message for each error, and the number of names that have a row. advertised: the
    code of ibv_query_device(). table: that of the symbols, some of which no public header or only a
    newer one declares."""
    functions, values = header_names(header)
    functions |= {name.lstrip("_") for name in re.findall(r"^FORWARD\((\w+)", table, flags=re.M)}
    known = functions | {value for enum in values.values() for value in enum}
    wrong, covered, states = [], set(), {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 4 or cells[1] in ("state", "---"):
            continue
        names, lost = named(cells[0], known)
        covered |= names
        for name in names:
            states.setdefault(name, set()).add(cells[1])
        where = cells[0][:60]
        if cells[1] not in STATES:
            wrong.append("%s: state %s" % (where, cells[1]))
        wrong += ["%s: %s is not in the header" % (where, word) for word in lost]
        tests = list(tests_of(cells[3]))
        for name, paths in tests:
            if not any(os.path.isfile(os.path.join(top, path)) for path in paths):
                wrong.append("%s: no test %s" % (where, name))
        if not tests and not cells[3].startswith("none: "):
            wrong.append("%s: no test" % where)
    wrong += states_wrong(states, set(re.findall(r"IBV_DEVICE_\w+", advertised)))
    wrong += ["no row for %s()" % name for name in sorted(functions - covered)]
    for enum, names in values.items():
        if not names:
            wrong.append("the header has no enum %s" % enum)
        wrong += ["no row for %s (%s)" % (name, enum) for name in names if name not in covered]
    return wrong, len(covered)


SELFTEST = """
| call | state | notes | test |
|---|---|---|---|
| `ibv_alpha`, `_ex`, `IBV_WR_*` | supported | | `api` |
| `ibv_gone` | maybe | | |
| `ibv_beta` | absent | | `nothing_there` |
| `ibv_alpha_ex`, `IBV_DEVICE_ON` | absent | | `api` |
| `IBV_DEVICE_OFF` | supported | | `api` |
"""
SELFHEADER = """
int ibv_alpha(void);
struct ibv_x *ibv_alpha_ex(int);
static inline void ibv_gamma(void)
{
}
int ibv_beta(void);
enum ibv_wr_opcode {
	IBV_WR_A,
	IBV_WR_B = 1 << 2,
};
enum ibv_device_cap_flags {
	IBV_DEVICE_ON = 1,
	IBV_DEVICE_OFF = 2,
};
"""


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: verbs_doc_check.py TOP [VERSION]")
    top = sys.argv[1]
    with open(HEADER, encoding="utf-8") as file:
        header = file.read()
    with open(os.path.join(top, "docs/verbs.md"), encoding="utf-8") as file:
        page = file.read()
    with open(os.path.join(top, "lib/verbs/symbols.def"), encoding="utf-8") as file:
        table = file.read()
    advertised = ""
    for name in "device_caps.h", "verbs_query.c":
        with open(os.path.join(top, "lib/verbs", name), encoding="utf-8") as file:
            advertised += file.read()
    wrong, count = check(top, page, header, advertised, table)
    bad, _ = check(top, SELFTEST, SELFHEADER, "IBV_DEVICE_ON", 'FORWARD(_ibv_delta, "")')
    bad = [line for line in bad if not line.startswith("the header")]
    if len(sys.argv) == 3 and not sys.argv[2].startswith(WRITTEN_FOR):
        # Another version of the header has other names: the page is about WRITTEN_FOR.
        for line in [line for line in wrong if " in the header" in line or "no row" in line]:
            print("# libibverbs %s: %s" % (sys.argv[2], line))
            wrong.remove(line)
    print("1..2")
    print("%s 1 - docs/verbs.md has a row for each of %d calls and flags"
          % ("not ok" if wrong or count < 300 else "ok", count))
    for line in wrong:
        print("# " + line)
    # An unknown state, an unknown name, a row without a test, a missing test, a function of the
    # header and one of the table without a row, two states of one name, an advertised capability,
    # one that is not advertised.
    print("%s 2 - the check finds errors" % ("ok" if len(bad) == 9 else "not ok"))
    if len(bad) != 9:
        print("# %r" % bad)
    return 1 if wrong or count < 300 or len(bad) != 9 else 0


if __name__ == "__main__":
    sys.exit(main())
