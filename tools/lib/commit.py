# SPDX-License-Identifier: BSD-3-Clause
"""The newest commit of a tree, and what changed in it."""

import subprocess

DAY_S = 86400  # before the newest commit: what changed since is recent


def git(source, *arguments):
    """What git prints, or an empty string: the tree may be no clone."""
    done = subprocess.run(["git", "-C", source, *arguments], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def recent_change(source):
    """(hash of the newest commit, the files that changed in the day before it)"""
    head, _, seconds = git(source, "log", "-1", "--format=%H %ct").partition(" ")
    if not head:
        return "", set()
    base = git(source, "rev-list", "-1", "--before=%d" % (int(seconds) - DAY_S), head)
    return head, set(git(source, "diff", "--name-only", base, head).splitlines()) if base else set()


def newest_change(source):
    """The files in which the newest commit differs from its first parent."""
    return set(git(source, "diff", "--name-only", "HEAD~1", "HEAD").splitlines())


def changed_since(source, rev):
    """The files that differ from this commit in the working tree, new ones included."""
    return set(git(source, "diff", "--name-only", rev).splitlines() +
               git(source, "ls-files", "--others", "--exclude-standard").splitlines())
