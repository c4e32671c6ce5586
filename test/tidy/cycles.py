# SPDX-License-Identifier: BSD-3-Clause
"""Finds the cycles of files in the call graph of a folder.

A node of the graph is a file: X.c and X.h together, or a header alone. There is an arrow from one
file to another if a body in the first names a function that the second defines: a call, or a
function put into a table. Prototypes are no arrows."""

import os
import re

# A definition, as clang-format writes it: the name stands at the start of a line, below its type.
DEFINITION = re.compile(r"^(\w[^\n;(){}]*)\n(\w+)\([^;{}]*\)\n\{", re.M)
# Neither the name of a member nor of a type.
NAME = re.compile(r"(?<![\w.])(?<!->)\w+")
TYPE = re.compile(r"\b(?:struct|union|enum)\s+\w+")


def bodies(code):
    """The text within braces and macros, as one string."""
    kept, depth = [], 0
    for line in code.split("\n"):
        if depth > 0 or line.startswith("\t"):
            kept.append(line)
        depth += line.count("{") - line.count("}")
    return "\n".join(kept)


def call_graph(files, ignored=()):
    """files: {name: code without comments and strings}, of one folder. ignored: functions that are
    no arrow. Returns {node: {node: {function, ...}}}."""
    def node(name):
        return os.path.splitext(name)[0]

    owner, private = {}, {}
    for name, code in sorted(files.items()):
        private[name] = set()
        for kind, function in DEFINITION.findall(code):
            if "static" in kind.split() and name.endswith(".c"):
                private[name].add(function)
            else:
                owner.setdefault(function, node(name))
    graph = {node(name): {} for name in files}
    for name, code in files.items():
        names = set(NAME.findall(TYPE.sub("", bodies(code))))
        for function in names - private[name] - set(ignored):
            to = owner.get(function, node(name))
            if to != node(name):
                graph[node(name)].setdefault(to, set()).add(function)
    return graph


def reachable(graph, start):
    """The nodes that a path of at least one arrow leads to."""
    found, todo = set(), list(graph[start])
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            todo += graph[at]
    return found


def cycles(graph):
    """The strongly connected components of more than one node, each a sorted list."""
    reach = {node: reachable(graph, node) for node in graph}
    found = []
    for node in sorted(graph):
        if node in reach[node]:
            group = sorted(other for other in reach[node] if node in reach[other])
            if group not in found:
                found.append(group)
    return found


def calls_within(graph, group):
    """'a -> b: f g' for each arrow between the nodes of a cycle."""
    for node in group:
        for other in sorted(set(graph[node]) & set(group)):
            yield "%s -> %s: %s" % (node, other, " ".join(sorted(graph[node][other])))
