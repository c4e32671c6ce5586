#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the symbol versions of librocade's verbs with those of the real libibverbs. Each must
have the real function's default version, or programs would bind to the real one."""

import argparse
import re
import subprocess
import sys

# These functions use only public structures, so the real ones work on Rocade's objects too.
LEAVE = {"ibv_ack_async_event", "ibv_fork_init", "ibv_dontfork_range", "ibv_dofork_range",
         "ibv_is_fork_initialized", "ibv_register_driver", "ibv_get_sysfs_path",
         "ibv_read_sysfs_file"}
LEAVE_PATTERN = re.compile(r"_str$|_rate|ibv_rate_|_(to|from)_kern$")


def symbols(library):
    """Returns {name: {(version or None, is the default)}}."""
    run = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library],
                         text=True, capture_output=True, check=True)
    found = {}
    for line in run.stdout.splitlines():
        parts = line.split()
        if len(parts) != 3 or parts[1] == "A":
            continue
        name, _, version = parts[2].partition("@")
        default = version.startswith("@") or not version
        found.setdefault(name, set()).add((version.lstrip("@") or None, default))
    return found


def default_version(versions):
    return next((v for v, default in versions if default), None)


def nodes_of(library):
    run = subprocess.run(["objdump", "-p", library], text=True, capture_output=True, check=True)
    return set(re.findall(r"\b(?:IBVERBS_[\d.]+|ROCADE_\d+)\b", run.stdout))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rocade")
    parser.add_argument("ibverbs")
    parser.add_argument("forward", help="forward.def")
    args = parser.parse_args()

    ours, real = symbols(args.rocade), symbols(args.ibverbs)
    forwards = dict(re.findall(r'^FORWARD\((\w+), "([^"]*)"\)', open(args.forward).read(), re.M))
    public = {name: versions for name, versions in real.items() if re.match(r"_?ibv_", name)
              and any(v and not v.startswith("IBVERBS_PRIVATE") for v, _ in versions)}
    leave = {n for n in public if n in LEAVE or LEAVE_PATTERN.search(n)}
    verbs = {n for n in ours if re.match(r"_?ibv_", n)}
    cases = [
        ("librocade has every public verb that takes an object",
         ["%s is missing" % n for n in sorted(set(public) - leave - verbs)]),
        ("librocade lacks verbs that use only public structures",
         ["%s is in librocade" % n for n in sorted(leave & verbs)]),
        ("each verb has the default version of the real one",
         ["%s: %s, in libibverbs %s" % (n, ours[n], real[n]) for n in sorted(verbs & set(public))
          if ours[n] != {(default_version(real[n]), True)}]),
        ("ibv_query_gid_type is unversioned",
         [] if ours.get("ibv_query_gid_type") == {(None, True)} else
         [str(ours.get("ibv_query_gid_type"))]),
        ("rocade_* symbols have version ROCADE_0",
         ["%s: %s" % (n, v) for n, v in sorted(ours.items()) if n.startswith("rocade_")
          and v != {("ROCADE_0", True)}]),
        ("no other symbol is exported",
         [n for n in sorted(ours) if not re.match(r"_?ibv_|rocade_", n)]),
        ("each verb is forwarded to its own version",
         ["%s: %s" % (n, forwards.get(n)) for n in sorted(verbs)
          if forwards.get(n) != (default_version(ours[n]) or "")]),
        ("libibverbs has every version that calls are forwarded to",
         ["%s@%s" % (n, v) for n, v in sorted(forwards.items())
          if v and (v, True) not in real.get(n, set())]),
        ("the version nodes exist",
         sorted({"IBVERBS_1.%d" % i for i in (0, 1, *range(5, 15))} - nodes_of(args.rocade))),
        ("libibverbs is not linked",
         re.findall(r"NEEDED\s+(libibverbs\S*)", subprocess.run(
             ["objdump", "-p", args.rocade], text=True, capture_output=True,
             check=True).stdout)),
    ]
    print("1..%d" % len(cases))
    for number, (name, wrong) in enumerate(cases, 1):
        print("%s %d - %s" % ("not ok" if wrong else "ok", number, name))
        for line in wrong:
            print("# " + line)
    return 1 if any(wrong for _, wrong in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
