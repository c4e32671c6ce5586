#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles each installed header by itself, as C and as C++, with the warnings that programs turn on,
and the C of docs/embedding.md. Each structure that may grow is in the table of sized_test.c, and
null_args_test.c calls each function that gets a pointer, but those that rocade.h excepts."""

import os
import re
import shutil
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsyntax-only"]
# It is a part of struct rocade_peer, and does not grow.
PART = {"rocade_peer_window"}
# What the parts of programs in docs/embedding.md take from the rest of these programs.
AROUND = """
#include <stdio.h>
#include <sys/epoll.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_power_pmd_mgmt.h>
#include <rocade/cm.h>
#include <rocade/mbuf.h>
#include <rocade/shared.h>
void forward(struct rte_mbuf **frames, uint16_t n);
void part(struct rocade_port *port, struct rocade_engine *engine, struct rte_mbuf **frames, uint16_t n,
	struct ibv_context *context, struct rocade_cm *cm, struct rocade_cm_listener *listener,
	struct ibv_qp *qp, union ibv_gid peer, void *mine, struct rocade_cm_id *id,
	struct rocade_cm_event event, int fd, int epoll_fd, struct epoll_event *events,
	struct ibv_cq *cq, struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr attr,
	struct rte_mempool *pool, struct rte_mbuf *m, struct ibv_recv_wr *bad, uint16_t port_id, uint16_t queue);
void part(struct rocade_port *port, struct rocade_engine *engine, struct rte_mbuf **frames, uint16_t n,
	struct ibv_context *context, struct rocade_cm *cm, struct rocade_cm_listener *listener,
	struct ibv_qp *qp, union ibv_gid peer, void *mine, struct rocade_cm_id *id,
	struct rocade_cm_event event, int fd, int epoll_fd, struct epoll_event *events,
	struct ibv_cq *cq, struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr attr,
	struct rte_mempool *pool, struct rte_mbuf *m, struct ibv_recv_wr *bad, uint16_t port_id, uint16_t queue)
{
%s
}
"""
PARTLY = ["-Wno-unused-variable", "-Wno-unused-parameter", "-Wno-unused-but-set-parameter",
          "-Wno-shadow", "-Wno-switch", "-Wno-deprecated-declarations"]


def compiled(command, text, language):
    """Returns what the compiler says; '' if it accepts the text."""
    done = subprocess.run(command + ["-x", language, "-"], input=text, text=True, capture_output=True,
                          check=False)
    return done.stderr if done.returncode != 0 else ""


def headers(root):
    with open(os.path.join(root, "include/meson.build"), encoding="utf-8") as file:
        return re.findall(r"'(rocade/\w+\.h)'", file.read())


def not_in_table(root):
    """Returns the structures that programs know and the table of layouts lacks."""
    structs = set()
    for name in headers(root):
        with open(os.path.join(root, "include", name), encoding="utf-8") as file:
            structs |= set(re.findall(r"^struct (\w+) \{", file.read(), re.M))
    with open(os.path.join(root, "test/verbs/sized_test.c"), encoding="utf-8") as file:
        table = set(re.findall(r"LAYOUT\((rocade_\w+),", file.read()))
    return sorted(structs - PART - table)


def arguments(text):
    """Returns the arguments, or parameters, of a function: the text begins behind its parenthesis."""
    found, depth = [""], 0
    for sign in text:
        if sign == ")" and depth == 0:
            break
        if sign == "," and depth == 0:
            found.append("")
            continue
        depth += (sign in "({[") - (sign in ")}]")
        found[-1] += sign
    return [argument.strip() for argument in found]


def pointers(text):
    """Returns (function, place) of the parameters that are pointers, with names without _sized, which the functions
    of a header call."""
    declared = re.findall(r"^\w[\w *]*?\b(rocade_\w+)\(([^{;]*?)\)[;\s]", text, re.M)
    declared += re.findall(r"^(rocade_\w+)\(([^{;]*?)\)\n\{", text, re.M)
    return {(name.replace("_sized", ""), place) for name, args in declared
            for place, parameter in enumerate(arguments(args)) if "*" in parameter}


def nulls(text):
    """Returns (function, place) of the arguments that are NULL."""
    return {(call.group(1), place) for call in re.finditer(r"\b(rocade_\w+)\(", text)
            for place, argument in enumerate(arguments(text[call.end():])) if argument == "NULL"}


def without_null(root):
    """Returns the functions of which null_args_test.c leaves a pointer that is never NULL, and those that rocade.h
    excepts although it does not."""
    parameters, excepted = set(), set()
    for name in headers(root):
        with open(os.path.join(root, "include", name), encoding="utf-8") as file:
            text = file.read()
        parameters |= pointers(text)
        for names in re.findall(r"the pointers of\n \* (rocade_.*?) must be valid", text, re.S):
            excepted |= set(re.findall(r"(rocade_\w+)\(\)", names))
    with open(os.path.join(root, "test/verbs/null_args_test.c"), encoding="utf-8") as file:
        given = nulls(file.read())
    left = {name for name, _ in parameters - given}
    return sorted(left ^ excepted)


def parts(text):
    """Returns the blocks of C: (line, text, whole program)."""
    for block in re.finditer(r"^```c\n(.*?)^```$", text, re.M | re.S):
        code = block.group(1)
        yield text.count("\n", 0, block.start()) + 1, code, code.startswith("#include")


def as_program(code):
    """The dots of a part stand for more of it, and what begins with a case is of a switch."""
    code = re.sub(r"^\s*\.\.\.$", "", code, flags=re.M)
    first = re.search(r"^\tcase ", code, re.M)
    if first and "switch" not in code:
        code = code[:first.start()] + "switch (event.type) {\n" + code[first.start():] + "; default: break; }"
    return AROUND % code


def document(command, root):
    with open(os.path.join(root, "docs/embedding.md"), encoding="utf-8") as file:
        for line, code, whole in parts(file.read()):
            text = code if whole else as_program(code)
            yield line, compiled(command + ([] if whole else PARTLY), text, "c")


def selftest(command):
    """The check finds what it is for."""
    declarations = "int rocade_a_sized(void *p);\nconst char *rocade_b(\n\tint i, char *c);\nint rocade_c(int i);\n" \
                   "static inline int\nrocade_d(int *i)\n{\n}\n"
    return all([pointers(declarations) == {("rocade_a", 0), ("rocade_b", 1), ("rocade_d", 0)},
                nulls("REFUSED(rocade_a(&(struct s){1, f(2)}, NULL, b), NULL);") == {("rocade_a", 1)},
                compiled(command, "int f(void)\n{\n\tputs(\"\");\n}\n", "c"),
                not compiled(command, "int main(void)\n{\n\treturn 0;\n}\n", "c"),
                [whole for _, _, whole in parts("```c\n#include <a.h>\n```\n\n```c\nf();\n```\n")] == [True, False]])


def main():
    root, cc = sys.argv[1], sys.argv[2:]
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], text=True, capture_output=True,
                           check=True).stdout.replace("-I", "-isystem").split()
    include = ["-I", os.path.join(root, "include")]
    command = cc + WARNINGS + include
    cases = [("the check finds errors", "" if selftest(command) else "it does not"),
             ("the table of layouts has each structure", " ".join(not_in_table(root))),
             ("each function that gets pointers is given NULL for each", " ".join(without_null(root)))]
    for name in headers(root):
        text = "#include <%s>\n" % name
        cases.append((name + " is C", compiled(command, text, "c")))
        for plus in ("g++", "clang++"):
            if shutil.which(plus):
                cases.append(("%s is C++ for %s" % (name, plus),
                              compiled([plus] + WARNINGS + include, text, "c++")))
    for line, wrong in document(command + flags, root):
        cases.append(("docs/embedding.md:%d" % line, wrong))
    print("1..%d" % len(cases))
    for number, (name, wrong) in enumerate(cases, 1):
        print("%s %d - %s" % ("not ok" if wrong else "ok", number, name))
        for line in wrong.splitlines():
            print("# " + line)


if __name__ == "__main__":
    main()
