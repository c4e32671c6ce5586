#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/release.sh, judged by git, tar, gpg, sha256sum and apt-get: a small tree and small packages
become a release, from which apt-get fetches a package."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402

TOP = sys.argv[1]
USER = "Release Test <release@example.org>"
TREE = {"meson.build": "project('rocade', 'c',\n  version: '1.2.0',\n)\n",
        "debian/changelog": "rocade (1.2.0) unstable; urgency=medium\n\n  * One.\n",
        "CHANGELOG.md": "# Changes\n\n## 1.2.0 (2027-01-01)\n\n- New.\n\n## 1.1.0 (2026-01-01)\n\n- Old.\n",
        "lib/a.c": "int a;\n"}
with open(os.path.join(TOP, "action.yml"), encoding="utf-8") as action:
    TREE["action.yml"] = action.read()
# Release of Debian, package, architecture, what it needs.
PACKAGES = [("bookworm", "rocade", "amd64", "librocade0 (= 1.2.0), libc6 (>= 2.36)"),
            ("bookworm", "librocade0", "amd64", "libibverbs1 | other"),
            ("bookworm", "rocade-doc", "all", ""),
            ("noble", "librocade-dev", "amd64", ""), ("noble", "rocade", "amd64", "librocade0")]


def command(*words, env=None, cwd=None):
    """Returns exit status and output."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, cwd=cwd, env=dict(os.environ, **env or {}))
    return done.returncode, done.stdout


def must(*words, **more):
    status, text = command(*words, **more)
    assert status == 0, (words, text)
    return text


class World:
    """A folder with the tree, the packages and a key."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {"GNUPGHOME": os.path.join(folder, "gpg"), "GIT_CONFIG_GLOBAL": "/dev/null",
                    "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_AUTHOR_DATE": "2027-01-01T00:00:00Z",
                    "GIT_COMMITTER_DATE": "2027-01-01T00:00:00Z", "GIT_AUTHOR_NAME": "A",
                    "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
                    "GIT_COMMITTER_EMAIL": "a@example.org"}
        os.mkdir(self.env["GNUPGHOME"], 0o700)
        must("gpg", "--batch", "--passphrase", "", "--quick-generate-key", USER, "default", "sign",
             env=self.env)
        self.tree = self.path("tree")
        for name, text in TREE.items():
            self.write("tree/" + name, text)
        shutil.copytree(os.path.join(TOP, "tools/release"), self.path("tree/tools/release"),
                        ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(os.path.join(TOP, "tools/release.sh"), self.path("tree/tools"))
        self.git("init", "-q")
        self.commit()
        for number, (release, name, kind, needs) in enumerate(PACKAGES):
            self.package(number, release, name, kind, needs)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def git(self, *words):
        return must("git", "-C", self.tree, *words, env=self.env)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a")

    def package(self, number, release, name, kind, needs, folder="packages"):
        tree = "deb%d" % number
        self.write(tree + "/usr/share/%s/text" % name, release)
        self.write(tree + "/DEBIAN/control",
                   "Package: %s\nVersion: 1.2.0\nArchitecture: %s\nMaintainer: %s\nDescription: a\n%s" % (
                       name, kind, USER, "Depends: %s\n" % needs if needs else ""))
        os.makedirs(self.path(folder + "/" + release), exist_ok=True)
        must("dpkg-deb", "--root-owner-group", "-b", self.path(tree),
             self.path("%s/%s/%s_1.2.0_%s.deb" % (folder, release, name, kind)))

    def release(self, out, *options, packages="packages"):
        return command(self.path("tree/tools/release.sh"), "--out", self.path(out), "--packages",
                       self.path(packages), *(options or ["--key", USER]), env=self.env)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()


def apt_get(world, out, *words):
    """apt-get with nothing but the repository of the release, in a folder of its own."""
    root = world.path("apt-" + out)
    for name in ("state/lists/partial", "cache/archives/partial", "etc/preferences.d", "got"):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    with open(os.path.join(root, "sources.list"), "w", encoding="utf-8") as file:
        file.write("deb [arch=amd64 signed-by=%s] file:%s bookworm main\n" % (
            world.path("out/apt/rocade.asc"), world.path(out + "/apt")))
    with open(os.path.join(root, "status"), "w", encoding="utf-8"):
        pass
    conf = {"Dir::Etc": root + "/etc", "Dir::Etc::SourceList": root + "/sources.list",
            "Dir::Etc::SourceParts": "/dev/null", "Dir::State": root + "/state", "Dir::Cache": root + "/cache",
            "Dir::State::status": root + "/status", "APT::Architecture": "amd64",
            "APT::Architectures": "amd64", "APT::Sandbox::User": "", "Acquire::Languages": "none"}
    options = [word for name, value in conf.items() for word in ("-o", "%s=%s" % (name, value))]
    return command("apt-get", "-q", *options, *words, cwd=root + "/got")


def of_apt(world):
    """apt-get fetches a package of the release, refuses lists that were changed, and those without a
    signature."""
    updated, said = apt_get(world, "out", "update", "--error-on=any")
    got, more = apt_get(world, "out", "download", "rocade", "rocade-doc")
    fetched = sorted(os.listdir(world.path("apt-out/got")))
    shutil.copytree(world.path("out"), world.path("changed"))
    with open(world.path("changed/apt/dists/bookworm/InRelease"), "r+", encoding="utf-8") as file:
        text = file.read().replace("Label: Rocade", "Label: Rocad")
        file.seek(0)
        file.truncate()
        file.write(text)
    changed, _ = apt_get(world, "changed", "update", "--error-on=any")
    unsigned, _ = apt_get(world, "unsigned", "update", "--error-on=any")
    return [("apt-get takes the repository", (updated, said if updated else ""), (0, "")),
            ("apt-get fetches packages", (got, more if got else "", fetched),
             (0, "", ["rocade-doc_1.2.0_all.deb", "rocade_1.2.0_amd64.deb"])),
            ("apt-get refuses changed lists", changed != 0, True),
            ("apt-get refuses lists that are not signed", unsigned != 0, True)]


def of_files(world):
    """Two runs make the same files; sums and signatures are right."""
    made = [world.release(out) for out in ("out", "again")]
    without = world.release("unsigned", "--unsigned")
    sums = command("sha256sum", "--quiet", "-c", "SHA256SUMS", cwd=world.path("out"))
    signed = [command("gpg", "--batch", "--verify", name + ".asc", name, cwd=world.path("out"),
                      env=world.env)[0] for name in ("SHA256SUMS", "rocade-1.2.0.tar.gz")]
    listed = [line.split("  ")[1] for line in world.text("out/SHA256SUMS").splitlines()]
    unlike = [name for name in listed if not name.endswith((".asc", ".gpg", "InRelease")) and command(
        "cmp", world.path("out/" + name), world.path("again/" + name))[0] != 0]
    archive = must("tar", "tzf", world.path("out/rocade-1.2.0.tar.gz")).split()
    return [("releases are made", [status for status, _ in [*made, without]], [0, 0, 0]),
            ("the sums are right", sums, (0, "")), ("gpg finds the signatures good", signed, [0, 0]),
            ("all files but these are in the sums", sorted(
                set(must("find", ".", "-type", "f", "-printf", "%P\n", cwd=world.path("out")).split()) -
                set(listed)), ["SHA256SUMS", "SHA256SUMS.asc"]),
            ("the same commit makes the same files", unlike, []),
            ("the archive has the tree", "rocade-1.2.0/lib/a.c" in archive, True),
            ("the notes are the first section", world.text("out/NOTES.md"),
             "## 1.2.0 (2027-01-01)\n\n- New.\n\n"),
            ("nothing is left beside it", [name for name in os.listdir(world.folder) if ".part" in name], [])]


def of_materials(world):
    """The bill of materials names each file that was made, and what it needs."""
    bill = json.loads(world.text("out/rocade-1.2.0.spdx.json"))
    names = {row["SPDXID"]: row["name"] for row in bill["packages"]}
    needs = sorted((row["spdxElementId"], row["relatedSpdxElement"]) for row in bill["relationships"]
                   if row["relationshipType"] == "DEPENDS_ON")
    rocade = "SPDXRef-deb-bookworm-rocade-amd64"
    sums = {row["checksums"][0]["checksumValue"] for row in bill["packages"] if "checksums" in row}
    listed = {line.split("  ")[0] for line in world.text("out/SHA256SUMS").splitlines()
              if line.endswith((".deb", ".tar.gz"))}
    return [("the bill has the sum of each file", sums, listed),
            ("the bill has no reference to nothing", [
                one for row in bill["relationships"]
                for one in (row["spdxElementId"], row["relatedSpdxElement"])
                if one not in names and one != "SPDXRef-DOCUMENT"], []),
            ("the bill has what packages need", [(one, names[other]) for one, other in needs], [
                ("SPDXRef-deb-bookworm-librocade0-amd64", "libibverbs1"), (rocade, "librocade0"),
                (rocade, "libc6"), ("SPDXRef-deb-noble-rocade-amd64", "librocade0")])]


def of_action(world):
    """The action has the packages of Ubuntu 24.04 and no step that builds."""
    text = world.text("out/action/action.yml")
    names = [line.split(":")[1].strip() for line in text.splitlines() if line.startswith("    - name:")]
    return [("the action installs, then starts", names, ["Install Rocade", "Start a daemon"]),
            ("the action has packages", sorted(os.listdir(world.path("out/action"))),
             ["SHA256SUMS", "action.yml", "rocade_1.2.0_amd64.deb"]),
            ("the action checks them", command("sha256sum", "--quiet", "-c", "SHA256SUMS",
                                               cwd=world.path("out/action")), (0, ""))]


def refused(world, word, *options, **more):
    """Whether the release is refused with status 3 and a sentence with this word, and leaves nothing."""
    status, text = world.release("bad", *options, **more)
    return status == 3 and word in text and not os.path.exists(world.path("bad")) or (status, text)


def of_faults(world):
    rows = [("a folder that is there", world.release("out")[0], 3),
            ("no packages", refused(world, "no package in", packages="none"), True),
            ("a key that gpg does not have", refused(world, "--list-secret-keys", "--key", "nobody@"), True),
            ("neither --key nor --unsigned", world.release("bad", "--draft")[0], 2)]
    world.write("tree/new.c", "")
    rows.append(("a file that is not committed", refused(world, "not committed: new.c, of 1"), True))
    os.unlink(world.path("tree/new.c"))
    world.write("tree/CHANGELOG.md", "# Changes\n\n## 1.2.0 (unreleased)\n\n- New.\n")
    world.commit()
    rows += [("a version without a date", refused(world, "(unreleased)"), True),
             ("--draft makes it", world.release("draft", "--key", USER, "--draft")[0], 0)]
    world.write("tree/meson.build", TREE["meson.build"].replace("1.2.0", "1.3.0"))
    world.commit()
    rows.append(("versions that differ", refused(world, "meson.build has 1.3.0"), True))
    world.write("tree/debian/changelog", "rocade (1.3.0) unstable; urgency=medium\n")
    world.write("tree/CHANGELOG.md", "## 1.3.0 (2027-02-01)\n")
    world.commit()
    rows.append(("packages of another version", refused(world, "has version 1.2.0: expected 1.3.0"), True))
    world.git("tag", "v1.3.0", "HEAD^")
    rows.append(("a tag of another commit", refused(world, "the tag v1.3.0"), True))
    return rows


def main():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a short path for gpg's sockets
        world = World(folder)
        try:
            return cases.run([row for part in (of_files, of_materials, of_apt, of_action, of_faults)
                              for row in part(world)])
        finally:
            command("gpgconf", "--kill", "gpg-agent", env=world.env)


if __name__ == "__main__":
    sys.exit(main())
