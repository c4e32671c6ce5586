#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that every check of tidy.py finds its errors and accepts correct files. Each case changes
one file of a small clean tree."""

import os
import subprocess
import sys
import tempfile

import format_check
import tidy
from selftest import Tap, tree_write

C_SPDX = "/* " + tidy.SPDX + " */\n"

CLEAN = {
    "lib/base/list.h": C_SPDX + "#include <stdint.h>\nstatic inline void\nlist_add(int a)\n"
                       "{\n\tx_use(a);\n}\n",
    "lib/mem/key.h": C_SPDX + '/* Data path. */\n#include "base/list.h"\n',
    "lib/queue/sq.h": C_SPDX + '/* Data path. */\n#include "mem/key.h"\n'
                      '#include "queue/sq.h"\n',
    "lib/qp/requester.c": C_SPDX + '/* Data path. */\n#include "queue/sq.h"\n'
                          "#include <rte_byteorder.h>\n",
    "lib/port/port.h": C_SPDX + '#include "base/list.h"\n',
    "lib/verbs/device.c": C_SPDX + "#include <rte_eal.h>\nstruct ibv_device *device;\n",
    "lib/engine/clock.c": C_SPDX + "/* Control path. */\nuint64_t now(void) { return rte_rdtsc(); }\n",
    "drivers/loop/loop.c": C_SPDX + '#include "loop/loop.h"\n#include "port/port.h"\n',
    "drivers/loop/loop.h": C_SPDX,
    "drivers/ethdev/ethdev.h": C_SPDX,
    "app/testpmd/testpmd_main.c": C_SPDX + '#include <rocade/rocade.h>\n#include "testpmd_options.h"\n'
                          "struct ibv_qp *qp;\nuint64_t t = rte_rdtsc();\n",
    "app/testpmd/testpmd_options.h": C_SPDX,
    "include/rocade/rocade.h": C_SPDX + "#include <stdint.h>\nuint32_t rocade_version(void);\n",
    "tools/run.sh": "#!/bin/sh\n# " + tidy.SPDX + "\n",
    "lib/meson.build": "# " + tidy.SPDX + "\n",
    "README.md": "Nothing outside.\n",
    "test/unit/x_test.c": C_SPDX + "struct ibv_wc wc;\n",
    "lib/faults/calls.def": C_SPDX + 'CALL(reg_mr, "ibv_reg_mr()", UNIT_CALL)\n',
    "test/e2e/faults.py": "# " + tidy.SPDX + "\n\ndef calls():\n    pass\n",
    "docs/faults.def": C_SPDX + 'FAULT(calls, reg_mr, ENOMEM, "ibv_reg_mr(3), RETURN VALUE", "faults.py calls")\n',
}

MAP = "".join("- `%s`: a file\n" % path for path in CLEAN if path.endswith((".c", ".h", ".def")) and
              not path.startswith(("test/", "docs/")))
CLEAN["docs/map.md"] = MAP

FORMAT = """BasedOnStyle: LLVM
UseTab: Always
IndentWidth: 8
BreakBeforeBraces: Linux
AllowShortFunctionsOnASingleLine: None
AlwaysBreakAfterReturnType: TopLevelDefinitions
"""
OUTSIDE = "../" + "shared"


def body(lines):
    """Returns a function whose braces span `lines` lines."""
    return "void\nf(void)\n{\n" + "\tg();\n" * (lines - 2) + "}\n"


def function(name, called):
    return "void\n%s(int a)\n{\n\t%s(a);\n}\n" % (name, called)


DATA, CONTROL = "/* Data path. */\n", "/* Control path. */\n"
# With list_add() of the clean tree, which calls x_use().
CYCLE = function("x_use", "list_add")

REQUEST_ROW = 'COMPLETION(request, "x-y", IBV_WC_X_ERR, DATA | BYTES, RC,\n\t"IBA 11.6.2, X", "faults.py calls")\n'
FAULT_ROW = 'FAULT(calls, reg_mr, ENOMEM, "ibv_reg_mr(3), RETURN VALUE", "faults.py calls")\n'
PACKET_ROW = 'PACKET("drop", FAULT_DROP, "RFC 768, Introduction: lost", "faults.py calls")\n'
CM_ROW = 'CM(rdma_connect, REJECT, "no-qp", 1, "IBA 12.6.7.2, reason 1", "faults.py calls")\n'
LINK_ROW = 'LINK(request, "down", FAULT_LINK_DOWN, "IBA 11.6.3, Port Error", "faults.py calls")\n'
FAULT_CALL = 'CALL(reg_mr, "ibv_reg_mr()", UNIT_CALL)\n'

# (rule, file, its content, fails?)
CASES = [
    (tidy.check_faults, "docs/faults.def", FAULT_ROW, False),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW.replace(', "faults.py calls"', ""), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW.replace("faults.py calls", ""), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW.replace("faults.py calls", "faults.py all"), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW.replace("faults.py", "fault.py"), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW.replace("ibv_reg_mr(3), RETURN VALUE", ""), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + FAULT_ROW.replace("calls, reg_mr", "calls, dereg_mr"), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + FAULT_ROW.replace("ENOMEM", "EINVAL"), False),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + FAULT_ROW, True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + REQUEST_ROW, False),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + REQUEST_ROW.replace(" calls", " all"), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + REQUEST_ROW.replace("IBA 11.6.2, X", "IBA"), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + REQUEST_ROW + REQUEST_ROW, True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + REQUEST_ROW + REQUEST_ROW.replace("request", "receive"), False),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + PACKET_ROW, False),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + PACKET_ROW.replace(" calls", " all"), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + PACKET_ROW.replace("RFC 768, Introduction: lost", ""), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + PACKET_ROW + PACKET_ROW, True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + CM_ROW, False),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + CM_ROW.replace(" calls", " all"), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + CM_ROW.replace("IBA 12.6.7.2, reason 1", ""), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + CM_ROW.replace("REJECT", "REFUSE"), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + CM_ROW + CM_ROW, True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + CM_ROW + CM_ROW.replace("connect", "accept"), False),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + LINK_ROW, False),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + LINK_ROW.replace(" calls", " all"), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + LINK_ROW.replace("IBA 11.6.3, Port Error", ""), True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + LINK_ROW + LINK_ROW, True),
    (tidy.check_faults, "docs/faults.def", FAULT_ROW + LINK_ROW + LINK_ROW.replace("request", "receive"), False),
    (tidy.check_faults, "lib/faults/calls.def", FAULT_CALL + FAULT_CALL.replace("reg_mr", "alloc_pd"), True),
    (tidy.check_layers, "lib/base/x.c", '#include "mem/key.h"\n', True),
    (tidy.check_layers, "lib/mem/x.c", '#include "queue/sq.h"\n', True),
    (tidy.check_layers, "lib/queue/x.def", '# include "qp/qp.h"\n', True),
    (tidy.check_layers, "lib/port/x.c", '#include "qp/qp.h"\n', True),
    (tidy.check_layers, "lib/engine/x.c", '#include "verbs/device.h"\n', True),
    (tidy.check_layers, "lib/engine/x.c", '#include "loop/loop.h"\n', True),
    (tidy.check_layers, "lib/engine/x.c", '#include <loop/loop.h>\n', True),
    (tidy.check_layers, "lib/qp/x.c", '#include "qp.h"\n', True),
    (tidy.check_layers, "lib/qp/x.c", '#include "../mem/key.h"\n', True),
    (tidy.check_layers, "lib/qp/x.c", "#include <mem/key.h>\n", True),
    (tidy.check_layers, "lib/util/x.c", "#include <stdint.h>\n", True),
    (tidy.check_layers, "lib/base/x.c", '/* #include "mem/key.h" */\n', False),
    (tidy.check_layers, "lib/verbs/x.c", '#include "engine/clock.h"\n', False),
    (tidy.check_eal, "lib/engine/x.c", "#include <rte_ethdev.h>\n", True),
    (tidy.check_eal, "lib/port/x.c", "#include <rte_mbuf.h>\n", True),
    (tidy.check_eal, "lib/port/x.c", "#include <rte_ring_elem.h>\n", False),
    (tidy.check_drivers, "drivers/loop/x.c", '#include "ethdev/ethdev.h"\n', True),
    (tidy.check_drivers, "drivers/loop/x.c", '#include "../ethdev/ethdev.h"\n', True),
    (tidy.check_drivers, "drivers/loop/x.c", "#include <rte_ethdev.h>\n", False),
    (tidy.check_app, "app/testpmd/x.c", '#include "base/list.h"\n', True),
    (tidy.check_app, "app/testpmd/x.c", "#include <loop/loop.h>\n", True),
    (tidy.check_app, "app/testpmd/x.c", '#include "../other/x.h"\n', True),
    (tidy.check_app, "app/testpmd/x.c", '#include "missing.h"\n', True),
    (tidy.check_app, "app/testpmd/x.c", "#include <infiniband/verbs.h>\n", False),
    (tidy.check_verbs_structures, "lib/qp/x.c", "static struct ibv_qp *qp;\n", True),
    (tidy.check_verbs_structures, "drivers/loop/x.h", "struct  ibv_wc;\n", True),
    (tidy.check_verbs_structures, "lib/qp/x.c", "/* struct ibv_qp */ // struct ibv_wc\n", False),
    (tidy.check_verbs_structures, "lib/qp/x.c", "enum ibv_qp_state s = IBV_QPS_RTS;\n", False),
    (tidy.check_verbs_structures, "drivers/preload/x.c", "struct ibv_wc wc;\n", False),
    (tidy.check_spdx, "lib/base/x.c", "int a;\n", True),
    (tidy.check_spdx, "lib/base/x.c", "int a;\nint b;\n" + C_SPDX, True),
    (tidy.check_spdx, "drivers/loop/meson.build", "driver_srcs = []\n", True),
    (tidy.check_spdx, "tools/command", "#!/bin/sh\n", True),
    (tidy.check_spdx, "tools/x.lua", "local a\n", True),
    (tidy.check_spdx, "docs/page.md", "no licence line needed\n", False),
    (tidy.check_file_size, "lib/base/x.c", "\n" * 501, True),
    (tidy.check_file_size, "app/testpmd/x.h", "\n" * 501, True),
    (tidy.check_file_size, "lib/base/x.c", "\n" * 500, False),
    (tidy.check_file_size, "lib/base/x.def", "\n" * 900, False),
    (tidy.check_file_size, "test/unit/x.c", "\n" * 501, True),
    (tidy.check_file_size, "tools/lib/x.py", "\n" * 501, True),
    (tidy.check_file_size, "test/rules.tsv", "\n" * 900, False),
    (tidy.check_function_size, "lib/base/x.c", body(71), True),
    (tidy.check_function_size, "drivers/loop/x.h", body(70) + body(71), True),
    (tidy.check_function_size, "lib/base/x.c", body(70) + body(70), False),
    (tidy.check_clocks, "lib/qp/x.c", "clock_gettime(CLOCK_MONOTONIC, &ts);\n", True),
    (tidy.check_clocks, "lib/base/x.h", "return rte_rdtsc_precise();\n", True),
    (tidy.check_clocks, "lib/engine/x.c", "t = rte_get_tsc_cycles();\n", True),
    (tidy.check_clocks, "drivers/loop/x.c", "gettimeofday(&tv, NULL);\n", True),
    (tidy.check_clocks, "lib/engine/clock_x.c", "t = rte_rdtsc();\n", False),
    (tidy.check_clocks, "lib/qp/x.c", 'puts("gettimeofday");\n', False),
    (tidy.check_threads, "drivers/shm/x.c", "\terr = pthread_create(&t, NULL, f, p);\n", True),
    (tidy.check_threads, "lib/base/own_thread.c", "\terr = pthread_create(&t, NULL, f, p);\n", False),
    (tidy.check_sleeps, "test/unit/x.c", "\tusleep(1000);\n", True),
    (tidy.check_sleeps, "test/unit/x.h", "\tnanosleep(&t, NULL);\n", True),
    (tidy.check_sleeps, "test/unit/qp/x.c", "\talarm(20);\n", True),
    (tidy.check_sleeps, "test/lib/x.c", "\twhile (time(NULL) < end)\n", True),
    (tidy.check_sleeps, "test/lib/x.c", "\trc = pthread_timedjoin_np(t, NULL, &until);\n", True),
    (tidy.check_sleeps, "test/lib/x.c", "\tsem_timedwait(&s, &until);\n", True),
    (tidy.check_sleeps, "test/unit/x.c", "\treturn poll(&p, 1, 10000) == 1;\n", True),
    (tidy.check_sleeps, "test/unit/x.c", "\tpoll(fds(1, 2), 2, WAKE);\n", True),
    (tidy.check_sleeps, "test/unit/x.c", "#define LIMIT_S 20\n", True),
    (tidy.check_sleeps, "test/unit/x.c", "\tassert_true(i < TEST_TIMEOUT_MS);\n", True),
    (tidy.check_sleeps, "test/unit/x.c", "\treturn poll(&p, 1, 0) + poll(p, n, -1) + poll(1);\n", False),
    (tidy.check_sleeps, "test/unit/x.c", "\tawait(thread_sleeps(tid)); /* sleep(1) */\n", False),
    (tidy.check_sleeps, "test/unit/x.c", "\tqp_link_advance(&p, TIMEOUT_NS + time(t));\n", False),
    (tidy.check_sleeps, "test/lib/await.c", "\tnanosleep(&t, NULL);\n", False),
    (tidy.check_sleeps, "test/verbs/x.c", "\tusleep(1000);\n", True),
    (tidy.check_sleeps, "test/e2e/x.c", "\tusleep(1000);\n", True),
    (tidy.check_sleeps, "test/matrix/x.c", "\tothers_run_us(1000);\n", False),
    (tidy.check_sleeps, "test/verbs/x.c", "\tepoll_wait(set, &got, 1, LIMIT);\n", True),
    (tidy.check_sleeps, "test/verbs/x.py", "    time.sleep(1)\n", True),
    (tidy.check_sleeps, "test/unit/app/x.py", "    time.sleep(1)\n", True),
    (tidy.check_sleeps, "test/verbs/x.py", "    subprocess.run(command, timeout=60)\n", True),
    (tidy.check_sleeps, "test/verbs/x.py", "    attr.timeout = 14  # sleep\n", False),
    (tidy.check_sleeps, "test/e2e/lib/x.py", "    time.sleep(0.1)\n", True),
    (tidy.check_sleeps, "test/e2e/lib/limit.py", "    time.sleep(0.1)\n", False),
    (tidy.check_sleeps, "test/e2e/x.py", "    done = daemon.run(program, timeout_s=LIMIT_S)\n", False),
    (tidy.check_tables, "test/unit/x_test.c", "\tconst struct CMUnitTest tests[] = {\n", True),
    (tidy.check_tables, "test/unit/x.h", "#define pair(t) cmocka_unit_test_setup(t, open)\n", True),
    (tidy.check_tables, "test/verbs/x_test.c", "\treturn cmocka_run_group_tests(t, NULL, NULL);\n", True),
    (tidy.check_tables, "test/verbs/x_test.c", "int\nmain(void)\n{\n", True),
    (tidy.check_tables, "test/verbs/x_test.c", "int main(void)\n{\n", True),
    (tidy.check_tables, "test/verbs/x_test.c", "TEST(domain(1))\n{\n\tmain(0); /* main( */\n", False),
    (tidy.check_tables, "test/sim/main.c", "int\nmain(void)\n{\n", False),
    (tidy.check_tables, "test/lib/case.c", "\tstruct CMUnitTest *tests;\n", False),
    (tidy.check_data_path, "lib/qp/x.c", DATA + "\tp = malloc(8);\n", True),
    (tidy.check_data_path, "lib/qp/x.c", DATA + "\tp = calloc (1, 8);\n", True),
    (tidy.check_data_path, "drivers/shm/x.c", DATA + '\tlog_warn("no");\n', True),
    (tidy.check_data_path, "lib/mem/sge.c", DATA + '\tprintf("no");\n', True),
    (tidy.check_data_path, "lib/queue/x.h", DATA + "\talloc_get(mem, 0, 8);\n", True),
    (tidy.check_data_path, "lib/engine/x.c", DATA + "\tnow = clock_now();\n", True),
    (tidy.check_data_path, "lib/engine/engine.c", DATA + "\tnow = clock_now();\n", False),
    (tidy.check_data_path, "lib/engine/x.c", CONTROL + DATA + "\tfree(p);\n", True),
    (tidy.check_data_path, "lib/qp/x.c", "int a;\n", True),
    (tidy.check_data_path, "lib/port/x.c", "\tp = malloc(8);\n", False),
    (tidy.check_data_path, "lib/queue/x.c", CONTROL + "\tp = malloc(8);\n", False),
    (tidy.check_data_path, "lib/queue/x.c", DATA + CONTROL + "\tp = malloc(8);\n", False),
    (tidy.check_data_path, "lib/qp/x.c", DATA + "\tslot_free(p); x_malloc(8);\n", False),
    (tidy.check_data_path, "lib/qp/x.c", DATA + "\t/* free(p) */\n", False),
    (tidy.check_cycles, "lib/base/list.h", function("a", "b") + function("b", "a"), False),
    (tidy.check_cycles, "lib/mem/key.h", function("list", "x_use"), False),
    (tidy.check_cycles, "lib/base/x.c", CYCLE, True),
    (tidy.check_cycles, "lib/base/x.c", CYCLE.replace("list_add(a)", "p->list_add(a)"), False),
    (tidy.check_cycles, "lib/base/x.c", CYCLE.replace("list_add(a)", "/* list_add(a) */"), False),
    (tidy.check_cycles, "lib/base/x.c", "static " + CYCLE, False),
    (tidy.check_cycles, "lib/base/x.c", CYCLE.replace("list_add(a);", "f = list_add;"), True),
    (tidy.check_outside_references, "lib/base/x.c", "/* see " + OUTSIDE + "/a.md */\n", True),
    (tidy.check_outside_references, "docs/page.md", "See " + OUTSIDE + ".\n", True),
    (tidy.check_outside_references, "tools/x.sh", "cd /work/" + "main\n", True),
    (tidy.check_outside_references, "test/notes.md", OUTSIDE + "\n", False),
    (tidy.check_outside_references, "docs/page.md", "a/shared/b\n", False),
    (tidy.check_map, "docs/map.md", "", True),
    (tidy.check_map, "docs/map.md", MAP + "- `lib/base/list.h`: again\n", True),
    (tidy.check_map, "docs/map.md", MAP + "- `lib/base/gone.c`: a file\n", True),
    (tidy.check_map, "docs/map.md", MAP + "See `lib/base/list.h`.\n- `lib/base`: it\n", False),
    (tidy.check_public_headers, "include/rocade/x.h", "size_t rocade_size(void);\n", True),
    (tidy.check_public_headers, "include/rocade/x.h", "int rocade_old();\n", True),
    (tidy.check_public_headers, "include/rocade/x.h", '#include "rocade/rocade.h"\n', False),
]


def tree_findings(path=None, content=None):
    with tempfile.TemporaryDirectory() as root:
        tree_write(root, CLEAN, path, content)
        tree = tidy.Tree(root)
        return {rule: list(rule(tree)) for rule in tidy.RULES}


def library_findings(check, source, *options):
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "x.so" if "-shared" in options else "x.o")
        subprocess.run(["cc", "-x", "c", "-", "-o", name, *options], input=source, text=True,
                       check=True)
        return list(check(name))


def main():
    tap = Tap()
    clean = tree_findings()
    tap.case(not any(clean.values()), "a clean tree has no findings", clean)
    for rule, path, content, fails in CASES:
        found = tree_findings(path, content)[rule]
        in_file = [line for line in found if line.startswith(path + ":")]
        name = "%s %s %r" % (rule.__name__, "finds" if fails else "accepts", content[:40])
        tap.case(bool(in_file) == fails, name, found)
    tap.case({case[0] for case in CASES if case[3]} == set(tidy.RULES), "every rule has a case")

    for text, fails in (("int\nmain(void)\n{\n\treturn 0;\n}\n", False),
                        ("int main(void) { return 0; }\n", True)):
        with tempfile.TemporaryDirectory() as root:
            tree_write(root, {"lib/a.c": text, ".clang-format": FORMAT})
            tool = format_check.find_clang_format()
            found = tool and format_check.unformatted(
                tool, root, list(format_check.sources(root)))
            tap.case(not tool or found == ["lib/a.c"] * fails,
                     "format_check %s %r" % ("finds" if fails else "accepts", text[:20]), found)

    pic = ("-shared", "-fPIC")
    tap.case(not library_findings(tidy.check_exports, "int rocade_x; int ibv_x;", *pic),
             "check_exports accepts Rocade's prefixes")
    tap.case(library_findings(tidy.check_exports, "int rocade_x; int qp_rx;", *pic),
             "check_exports finds an internal name")
    tap.case(not library_findings(tidy.check_core_symbols,
                                  "int memcmp(); int f(void) { return memcmp(); }", "-c", "-w"),
             "check_core_symbols accepts libc")
    tap.case(library_findings(tidy.check_core_symbols,
                              "int rte_eal_init(); int f(void) { return rte_eal_init(); }", "-c"),
             "check_core_symbols finds a DPDK object")
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
