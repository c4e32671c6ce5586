#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The lengths of tools/test.sh: what takes turns, what a change concerns, and wrong options."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(SOURCE, "tools/lib"))
import cases  # noqa: E402
import change  # noqa: E402
import commit  # noqa: E402
import mutants  # noqa: E402
import test_targets  # noqa: E402
import turns  # noqa: E402

HEADS = [hashlib.sha1(b"%d" % n).hexdigest() for n in range(200)]
STAGES = sorted(stage for row in turns.TURNS for stage in row)
PROJECT = {
    "meson.build": """project('p', 'c')
part = static_library('part', 'part.c')
test('one', executable('one', 'one.c', link_with: part))
test('two', executable('two', 'two.c'))
test('sim', executable('sim', 'two.c', 'sim.c', link_with: part))
test('script', find_program('python3'), args: files('script.py'))
test('rule', find_program('python3'), args: files('script.py'), suite: 'tidy')
""",
    "part.h": "int part(void);\n",
    "part.c": "#include \"part.h\"\nint part(void) { return 0; }\n",
    "one.c": "#include \"part.h\"\nint main(void) { return part(); }\n",
    "two.c": "__attribute__((weak)) int main(void) { return 0; }\n",
    "sim.c": "int main(void) { return 0; }\n",
    "script.py": "",
    "page.md": "",
}
FUNCTIONS = """static int a;

/* One. */
int
one(void)
{
	return a;
}

int
two(void)
{
	int b = a + 1;

	return b;
}
"""
FAULTS = "".join("fault %s\nin " "part.c" "%s\nline %s\nis \treturn 7;\nkillers sim\n\n" % row for row in (
    ("in one", " one", "return a;"), ("in two", " two", "return b;"), ("in none", "", "static int a;")))


def left_of_all():
    """How many stages a turn leaves, and whether each stage is in a turn."""
    left = [turns.left_stages(head) for head in HEADS]
    everywhere = set(STAGES).intersection(*left)
    return sorted(set(map(len, left))), everywhere


def sanitized():
    """Which kinds of tests stage sanitize has."""
    words = "--no-suite=tidy", "--no-suite=scripts"
    with open(os.path.join(SOURCE, "tools/lib/stages.sh"), encoding="utf-8") as file:
        assert "local tests=(%s %s)\n" % words in file.read()
    tests = [{"name": "+".join(suites), "suite": ["p:" + suite for suite in suites]} for suites in (
        ("unit", "quick"), ("verbs",), ("runner",), ("runner", "scripts"), ("tidy",))]
    return [test["name"] for test in test_targets.chosen(tests, words)]


def programs_of_all():
    names = ["%d.py" % n for n in range(10)]
    runs = [turns.e2e_programs(names, head, {"test/e2e/3.py"}, set()) for head in HEADS]
    return (set().union(*runs) == set(names), all("3.py" in run for run in runs),
            sorted(set(map(len, runs))))


def programs_of_a_day():
    """All programs have changed in a day, two of them in the newest commit: how many run, whether these do, how many
    are never run, and whether two hashes draw the same."""
    names = sorted("%d.py" % n for n in range(60))
    paths = {"test/e2e/" + name for name in names}
    runs = [turns.e2e_programs(names, head, paths, {"test/e2e/3.py", "test/e2e/4.py"}) for head in HEADS]
    return ({len(run) for run in runs}, all({"3.py", "4.py"} <= set(run) for run in runs),
            set(names) - set().union(*runs), runs[0] == runs[1])


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=False, **more)


def git(folder, *words):
    return run("git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e", *words)


def project(folder):
    for name, text in PROJECT.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    run("meson", "setup", "build", cwd=folder)
    run("ninja", "-C", "build", cwd=folder)
    with open(os.path.join(folder, ".gitignore"), "w", encoding="utf-8") as file:
        file.write("/build/\n")
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")


def concerned(folder, name):
    """The tests that a change of this file concerns."""
    path = os.path.join(folder, name)
    before = PROJECT.get(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write("\n")
    names = commit.changed_since(folder, "HEAD")
    tests = change.Graph(folder, os.path.join(folder, "build")).concerned(names)
    if before is None:
        os.remove(path)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(before)
    return sorted(names), sorted(test["name"] for test in tests)


def targets(folder, *names):
    done = run(sys.executable, os.path.join(SOURCE, "tools/lib/test_targets.py"),
               os.path.join(folder, "build"), *names)
    return done.returncode, done.stdout.split()


def written(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def since(folder, text, rev="HEAD"):
    """The exit status of mutants.py, and the mutants that it lists of a file with this text."""
    written(folder, "part.c", text)
    done = run(sys.executable, os.path.join(SOURCE, "tools/lib/mutants.py"), "--list", "--in", "part.c", "--since",
               rev, folder, "/nonexistent")
    return done.returncode, done.stdout.splitlines() or done.stderr.strip()


def functions(folder):
    """Changes of a file of two functions, and the mutants of these: (name, mutants, expected)."""
    every = ["in one", "in two", "in none"]
    written(folder, "test/mutants/f.mutants", FAULTS)
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    yield "mutants of a new file", since(folder, FUNCTIONS), (0, every)
    git(folder, "add", ".")
    git(folder, "commit", "-m", "second")
    for name, old, new, want in (
            ("a changed function", "\t", "\tif (a == 5)\n\t\treturn 1;\n\t", ["in one", "in none"]),
            ("a comment above a function", "One.", "1.", ["in one", "in none"]),
            ("a line that is gone from a function", "\n\treturn b", "\treturn b", ["in two", "in none"]),
            ("a new function", "int\ntwo", "int\nnew(void)\n{\n\treturn 3;\n}\n\nint\ntwo", ["in none"]),
            ("a changed declaration", "/* One", "struct s;\n\n/* One", every),
            ("a declaration that is gone", "static int a;\n\n", "", every),
            ("nothing", "", "", ["in none"])):
        yield "mutants of " + name, since(folder, FUNCTIONS.replace(old, new, 1)), (0, want)
    yield "mutants since no commit", since(folder, FUNCTIONS, "none"), (
        2, "mutants.py: invalid value 'none' for --since: expected a commit")


def copied(folder):
    """A tree with what tools/test.sh needs to look at its options and its folder."""
    os.makedirs(os.path.join(folder, "tools/lib"))
    for name in ("tools/test.sh", "tools/lib/session.sh"):
        shutil.copy(os.path.join(SOURCE, name), os.path.join(folder, name))
    return folder


def refused(top, *words, **variables):
    """The exit status of tools/test.sh, and what it says without its name."""
    done = run(os.path.join(top, "tools/test.sh"), *words, env=dict(os.environ, **variables))
    return done.returncode, done.stderr.strip().partition(": ")[2]


def stages_of_help():
    """The stages that --help names, and those that --stage accepts."""
    program = os.path.join(SOURCE, "tools/test.sh")
    told = run(program, "--help").stdout.partition("Stages, in this order:\n")[2].partition("\n\n")[0]
    named = [line[2:].split()[0] for line in told.splitlines() if line[2] != " "]
    return named, run(program, "--stage", "none").stderr.rpartition("expected one of ")[2].split()


def listed(*options):
    """The mutants that tools/lib/mutants.py would try."""
    return run(sys.executable, os.path.join(SOURCE, "tools/lib/mutants.py"), "--list", *options,
               SOURCE, "/nonexistent").stdout.splitlines()


def tool(name, *words):
    """The exit status of a program of tools/lib, and what it says."""
    done = run(sys.executable, os.path.join(SOURCE, "tools/lib", name), *words)
    return done.returncode, (done.stderr or done.stdout).strip()


def nothing_to_do(folder):
    """Programs of tools/lib that are given nothing to do, or no build: (name, what they say, expected)."""
    build = os.path.join(folder, "test/cost")
    os.makedirs(build)
    program = os.path.join(build, "cost")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    os.chmod(program, 0o755)
    none = "[Errno 2] No such file or directory: '%s/" % folder
    yield "a pattern that no mutant matches", tool("mutants.py", SOURCE, folder, "of no mutant"), (
        2, "mutants.py: no mutant of %s/test/mutants matches 'of no mutant'" % SOURCE)
    yield "a file without mutants", tool("mutants.py", "--in", "a.md", SOURCE, folder), (
        2, "mutants.py: no mutant of %s/test/mutants is in a.md" % SOURCE)
    yield "a pattern that is none", tool("mutants.py", SOURCE, folder, "(")[0], 2
    yield "a build without fuzz targets", tool("fuzz.py", SOURCE, folder, folder, "1"), (
        2, "fuzz.py: no program %s/test/fuzz/*_fuzz: configure the build with -Dfuzz=true" % folder)
    yield "a cost program without workloads", tool("cost.py", folder), (
        1, "1..1\nnot ok 1 - counted\n# %s lists no workload" % os.path.realpath(program))
    yield "the coverage of a folder without a limit", tool("coverage.py", SOURCE, folder, folder, "lib")[0], 2
    yield "the targets of no build", tool("test_targets.py", folder, "one"), (
        1, "test_targets.py: %smeson-info/intro-targets.json'" % none)
    yield "a test that runs alone is marked", [change.line_of({"name": name, "is_parallel": parallel}) for name, parallel in (
        ("one", True), ("two", False), ("fabric", True))], ["test one", "alone two", "fabric"]
    yield "the change of no build", tool("change.py", folder, folder, "HEAD"), (
        1, "change.py: %smeson-info/intro-targets.json'" % none)


def mutants_in(path):
    """The mutants of the tree whose line is in this file."""
    return [fault["fault"] for fault in mutants.read_all(SOURCE)
            if getattr(mutants.locate(SOURCE, fault), "path", "") == os.path.join(SOURCE, path)]


def rows():
    yield "each stage of TURNS is in one turn", len(set(STAGES)), len(STAGES)
    yield "no stage is left by each commit", left_of_all()[1], set()
    yield "a turn has one row of TURNS", left_of_all()[0], sorted(
        {len(STAGES) - len(row) for row in turns.TURNS})
    yield "each program has a turn, and a changed one runs always", programs_of_all(), (
        True, True, [2, 3, 4])
    yield "of many changed ones the hash draws some, and the newest commit's run", programs_of_a_day(), (
        {turns.E2E_MOST}, True, set(), False)
    yield "sanitize has each test of compiled code", sanitized(), ["unit+quick", "verbs", "runner"]
    yield "a tree without commits has the first turn", turns.turn("", 5), 0
    yield "tools/test.sh knows each stage of TURNS", [
        stage for stage in STAGES if " %s" % stage not in run(
            os.path.join(SOURCE, "tools/test.sh"), "--help").stdout], []
    yield "each stage of --help, and no other, can be the only one", *stages_of_help()
    with tempfile.TemporaryDirectory() as folder:
        project(folder)
        for name, tests in (
                ("part.c", ["one", "sim"]), ("part.h", ["one", "sim"]), ("one.c", ["one"]),
                ("two.c", ["sim", "two"]), ("script.py", ["script"]), ("page.md", []),
                ("meson.build", ["one", "script", "sim", "two"]),
                ("new.c", []), ("tools/new.sh", ["script"])):
            yield "a change of " + name, concerned(folder, name), ([name], tests)
        yield "the targets of a test", targets(folder, "one"), (0, ["one"])
        yield "the targets of a suite", targets(folder, "--suite=p", "script"), (
            0, ["one", "sim", "two"])
        yield "the targets of all but a suite", targets(folder, "--no-suite=tidy"), (0, ["one", "sim", "two"])
        yield "the targets of no test", targets(folder, "three"), (1, [])
    yield "the mutants of a changed file", listed("--in", "lib/qp/tlp.c"), mutants_in(
        "lib/qp/tlp.c")
    yield "the mutants of a page", listed("--in", "docs/testing.md"), []
    yield "a file of mutants has some", mutants_in("lib/qp/tlp.c") != [], True
    with tempfile.TemporaryDirectory() as folder:
        yield from functions(folder)
    with tempfile.TemporaryDirectory() as folder:
        yield from nothing_to_do(folder)
    with tempfile.TemporaryDirectory() as folder:
        copied(folder)
        yield "--change in no git tree", refused(folder, "--change"), (
            2, "--change compares with a commit, and %s is no git tree" % folder)
        git(folder, "init")
        yield "--change with an unknown commit", refused(folder, "--change", "none"), (
            2, "invalid value 'none' for --change: expected a commit")
        yield "--change in a git tree of another user", refused(
            folder, "--change", "none", GIT_TEST_ASSUME_DIFFERENT_OWNER="1"), (
            2, "invalid value 'none' for --change: expected a commit")
        yield "--change with a stage", refused(folder, "--change", "--stage", "tidy"), (
            2, "--change cannot be combined with --stage or --long")
        yield "an unknown stage", refused(folder, "--stage", "none")[0], 2
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield "a tree below /tmp", refused(copied(folder)), (
            3, "the tree is in '%s': expected a folder that is not below /tmp, /var/tmp, /run or "
            "/dev" % folder)
        blank = copied(os.path.join(folder, "a tree"))
        yield "a path with a blank", refused(blank), (
            3, "the tree is in '%s': expected a path without blanks" % blank)
    here = os.getcwd()  # of the build
    if os.geteuid() == 0 and not here.startswith(("/tmp/", "/var/tmp/", "/run/", "/dev/")):
        with tempfile.TemporaryDirectory(dir=here) as folder:
            yield "a folder that others may not enter", refused(copied(folder), "--stage", "e2e"), (
                3, "the tree is in '%s': expected a folder that other users may enter, for the stage "
                "e2e" % folder)


if __name__ == "__main__":
    sys.exit(cases.run(list(rows())))
