# SPDX-License-Identifier: BSD-3-Clause
"""Walks through Containerfile and action.yml: buildah builds the image without a service, and the
steps of the action run as an ordinary user with sudo, as on a runner."""

import json
import os
import re
import shutil

from build import copy_source
from chroots import copy_of, must, output_of
from pingpong import PINGPONG, passed
from tap import case

LIMIT_S = 3600


class Buildah:
    """buildah with a storage of its own."""

    def __init__(self, folder):
        self.words = ["buildah", "--root", folder + "/root", "--runroot", folder + "/run",
                      "--storage-driver", "vfs"]
        # The isolation that needs neither a runtime nor a cgroup
        self.env = dict(os.environ, BUILDAH_ISOLATION="chroot", TMPDIR=folder)

    def __call__(self, *words, limit_s=LIMIT_S):
        return output_of(self.words + list(words), limit_s, env=self.env)

    def must(self, *words):
        return must(self.words + list(words), limit_s=LIMIT_S, env=self.env).strip()


def container(top, release, work):
    """Containerfile, with a base image that is the minimal system of the release."""
    if shutil.which("buildah") is None:
        case("%s: Containerfile: buildah is installed" % release, False, "apt-get install buildah")
        return
    folder = os.path.join(work, "image-" + release)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    system = copy_of(release, work, "image-base")
    system.must("apt-get -qy install ccache && apt-get clean")
    buildah = Buildah(folder)
    made = buildah.must("from", "scratch")
    buildah.must("add", "--quiet", made, system.folder, "/")
    buildah.must("config", "--env", "PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin",
                 "--env", "CCACHE_DIR=/ccache", "--env", "CCACHE_UMASK=000", made)
    buildah.must("commit", "--quiet", made, "localhost/base")
    buildah.must("rm", made)
    system.remove()
    tree = os.path.join(folder, "tree")
    copy_source(top, tree)
    status, text = buildah("bud", "--isolation", "chroot", "--build-arg", "BASE=localhost/base",
                           "--pull-never", "-v", os.path.join(work, "ccache") + ":/ccache",
                           "-f", "Containerfile", "-t", "localhost/rocade", tree)
    if case("%s: Containerfile: buildah builds the image" % release, status == 0, text):
        made = buildah.must("from", "--pull-never", "localhost/rocade")
        config = json.loads(buildah.must("inspect", made))["OCIv1"]["config"]
        status, text = buildah("run", made, "--", *config["Entrypoint"], *config["Cmd"], limit_s=60)
        case("%s: Containerfile: the image's own command shows the device" % release,
             status == 0 and re.search(r"hca_id:\s+rocade0", text), text)
        status, text = buildah("run", made, "--", *config["Entrypoint"], "sh", "-e", "-c",
                               "id -u; " + PINGPONG, limit_s=60)
        case("%s: Containerfile: ibv_rc_pingpong in it, without root" % release,
             passed(status, text) and text.startswith("65534\n"), text)
        status, text = buildah("run", made, "--", "sh", "-c",
                               "ls -d /packages /build 2>/dev/null; ls /var/lib/apt/lists", limit_s=60)
        case("%s: Containerfile: nothing of its making is left in it" % release, not text.strip(), text)
    shutil.rmtree(folder, ignore_errors=True)


def action(top, release, work):
    """All steps of action.yml with their default inputs, and a step of the job that uses it."""
    import yaml  # Debian's package: not needed to import this file
    with open(os.path.join(top, "action.yml"), encoding="utf-8") as file:
        found = yaml.safe_load(file)
    system = copy_of(release, work, "action", {"/ccache": os.path.join(work, "ccache")})
    # A runner has these. The second is the job's own.
    system.must("apt-get -qy install build-essential ccache sudo\napt-get -qy install ibverbs-utils\n"
                "echo 'alice ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/alice")
    copy_source(top, system.path("/home/alice/action"))
    values = {"inputs." + name: row["default"] for name, row in found["inputs"].items()}
    values["github.action_path"] = "/home/alice/action"
    script = ["export PATH=/usr/local/bin:$PATH RUNNER_TEMP=/home/alice/temp GITHUB_ENV=/home/alice/env",
              "export GITHUB_OUTPUT=/home/alice/output",
              "mkdir -p $RUNNER_TEMP", "touch $GITHUB_ENV $GITHUB_OUTPUT"]
    for number, step in enumerate(found["runs"]["steps"]):
        system.write("/home/alice/step%d.sh" % number, step["run"])
        env = " ".join("%s='%s'" % (name, re.sub(r"\$\{\{ ([\w.]+) \}\}",
                                                 lambda m: values[m.group(1)], text))
                       for name, text in step["env"].items())
        script.append("%s bash --noprofile --norc -eo pipefail /home/alice/step%d.sh" % (env, number))
    script += ["set -a", ". /home/alice/env", "set +a", "rocade-run sh -e -c '%s'" % PINGPONG,
               "rocade-status"]
    system.must("chown -R alice: /home/alice")
    status, text = system.run("\n".join(script), user="alice", limit_s=LIMIT_S)
    case("%s: action.yml: all steps run, and a later step uses the daemon" % release,
         passed(status, text) and "this machine only" in text, text)
    system.remove()
