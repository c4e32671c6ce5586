# SPDX-License-Identifier: BSD-3-Clause
"""The tree that is released: its version, whether it is ready, and its archive."""

import gzip
import os
import re

from commands import NotReady, output_of, write

# Where the version stands, and as what.
VERSIONS = [("meson.build", r"^  version: '([^']+)',$"),
            ("debian/changelog", r"\Arocade \(([^)]+)\) "),
            ("CHANGELOG.md", r"^## (\S+)")]
UNRELEASED = "(unreleased)"


class Source:
    """The newest commit of the tree at `top`."""

    def __init__(self, top):
        self.top = top
        self.commit = self.git("rev-parse", "HEAD").strip()
        self.time_s = int(self.git("log", "-1", "--format=%ct"))
        self.versions = {path: self._find(path, pattern) for path, pattern in VERSIONS}
        self.version = self.versions["meson.build"]

    def git(self, *words, text=True):
        return output_of("git", "-C", self.top, *words, text=text)

    def file(self, path):
        return self.git("show", "HEAD:" + path)

    def _find(self, path, pattern):
        found = re.search(pattern, self.file(path), re.M)
        if not found:
            raise NotReady("no version in %s: expected %s" % (path, pattern))
        return found[1]

    def faults(self):
        """What a release must not have, a sentence each."""
        faults = []
        if len(set(self.versions.values())) > 1:
            faults.append("the versions differ: " + ", ".join(
                "%s has %s" % (path, version) for path, version in self.versions.items()))
        if UNRELEASED in self._heading():
            faults.append("the first section of CHANGELOG.md is \"%s\": expected \"## VERSION (DATE)\""
                          % self._heading())
        changed = self.git("status", "--porcelain").splitlines()
        if changed:
            faults.append("not committed: %s, of %d" % (changed[0][3:], len(changed)))
        tag = "v" + self.version
        tagged = self.git("tag", "--list", tag) and self.git("rev-list", "-1", tag).strip()
        if tagged and tagged != self.commit:
            faults.append("the tag %s is of another commit: expected HEAD, or no such tag" % tag)
        return faults

    def _heading(self):
        return re.search(r"^## .*$", self.file("CHANGELOG.md"), re.M)[0]

    def notes(self):
        """The first section of CHANGELOG.md."""
        text = self.file("CHANGELOG.md")
        start = text.index(self._heading())
        end = text.find("\n## ", start)
        return text[start:end + 1 if end >= 0 else len(text)]

    def archive(self, out):
        """Writes the archive. Its bytes depend on the commit only. Returns its path."""
        name = "rocade-%s" % self.version
        data = self.git("archive", "--format=tar", "--prefix=%s/" % name, "HEAD", text=False)
        path = os.path.join(out, name + ".tar.gz")
        write(path, gzip.compress(data, mtime=0))
        return path
