#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The recipes for other people's machines, as far as one without their services can try them:
config/kubernetes.yaml, whose two containers run their own words in namespaces, without capabilities;
a daemon and programs of RDMA-CM, each in namespaces of its own; action.yml, whose form is checked and
whose daemon is started as on a runner. The step of action.yml that builds, and Containerfile, are not
run."""

import os
import re
import shlex
import shutil
import sys
import tempfile

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import LIBRARY, ROCADED, RUN, STATUS_PROGRAM, Daemon, both, rping_status  # noqa: E402
from process import Process, run as execute, until  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import SOURCE, is_root  # noqa: E402

# The layout of a build directory, in which rocade-run finds the library and the daemon.
IMAGE = {"app/rocaded/rocaded": ROCADED, "app/run/rocade-run": RUN,
         "app/status/rocade-status": STATUS_PROGRAM, "drivers/librocade-verbs.so": LIBRARY}
PROGRAMS = {os.path.basename(path) for path in IMAGE} | {"sh"}
DISTRIBUTION = "/usr/sbin:/usr/bin:/sbin:/bin"

# The first process of a pod: a loopback interface, the volumes, a root that is read-only. Then it is
# the container's user, without capabilities. $1 has the programs, $2 is the root of the node.
POD = """set -e
ip link set lo up
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/image /mnt/node
mount --bind "$1" /mnt/image
mount --bind "$2" /mnt/node
mount -t tmpfs -o mode=755 tmpfs /run
%s
mount -o remount,bind,ro /run
mount -o remount,bind,ro /
exec setpriv --reuid=%d --regid=%d --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs \\
    -- env -i %s %s
"""


class Node:
    """A folder in the place of a node's root, and the image."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="rocade-node-")
        self.image, self.root = (os.path.join(self.folder, name) for name in ("image", "root"))
        for name, path in IMAGE.items():
            os.makedirs(os.path.join(self.image, os.path.dirname(name)), exist_ok=True)
            shutil.copy(path, os.path.join(self.image, name))
        for folder, _, names in os.walk(self.image):
            os.chmod(folder, 0o755)
            for name in names:
                os.chmod(os.path.join(folder, name), 0o755)
        os.mkdir(self.root)
        os.chmod(self.root, 0o755)

    def host_path(self, volume):
        """Does what the kubelet does for a volume. Returns the folder."""
        path = self.root + volume["hostPath"]["path"]
        if volume["hostPath"]["type"] == "DirectoryOrCreate":
            os.makedirs(path, 0o755, exist_ok=True)
        assert os.path.isdir(path), "%s is no directory" % volume
        return volume["hostPath"]["path"]

    def pod(self, spec, words=None, mounts=True):
        """Starts the container of a pod, or other words in its place."""
        container = spec["containers"][0]
        user = dict(spec.get("securityContext", {}), **container["securityContext"])
        volumes = {v["name"]: self.host_path(v) for v in spec["volumes"]}
        binds = []
        for mount in container["volumeMounts"] if mounts else []:
            at = shlex.quote(mount["mountPath"])
            binds += ["mkdir -p " + at,
                      "mount --bind %s %s" % (shlex.quote("/mnt/node" + volumes[mount["name"]]), at)]
            if mount.get("readOnly"):
                binds.append("mount -o remount,bind,ro " + at)
        env = {"PATH": ":".join("/mnt/image/" + os.path.dirname(n) for n in IMAGE) + ":" + DISTRIBUTION}
        env.update({e["name"]: e["value"] for e in container.get("env", [])})
        script = POD % ("\n".join(binds), user["runAsUser"], user.get("runAsGroup", 0),
                        " ".join(shlex.quote("%s=%s" % row) for row in env.items()),
                        shlex.join(words or container["command"] + container.get("args", [])))
        return Process(["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork",
                        "--kill-child=TERM", "--mount-proc", "sh", "-c", script, "sh", self.image,
                        self.root])

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def manifest():
    with open(os.path.join(SOURCE, "config/kubernetes.yaml"), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def faults_of(spec, other, root):
    """Returns what a cluster with strict rules would refuse, or what would not work."""
    container = spec["containers"][0]
    security = container["securityContext"]
    pod = spec["securityContext"]
    checks = {
        "one container": len(spec["containers"]) == 1,
        "no namespace of the node": not {"hostNetwork", "hostPID", "hostIPC"} & set(spec),
        "no token": spec["automountServiceAccountToken"] is False,
        "no capability": security["capabilities"] == {"drop": ["ALL"]},
        "no privileges": not security.get("privileged") and
                         security["allowPrivilegeEscalation"] is False,
        "a read-only root": security["readOnlyRootFilesystem"] is True,
        "the runtime's filter": pod["seccompProfile"] == {"type": "RuntimeDefault"},
        "an ordinary user": root or (pod["runAsNonRoot"] is True and pod["runAsUser"] > 0),
        "programs of the image": container["command"][0] in PROGRAMS,
        "a pinned policy": container["imagePullPolicy"] == "IfNotPresent",
        "the same folder": [v["hostPath"]["path"] for v in spec["volumes"]] ==
                           [v["hostPath"]["path"] for v in other["volumes"]],
        "its volumes": {m["name"] for m in container["volumeMounts"]} ==
                       {v["name"] for v in spec["volumes"]},
    }
    return [name for name, good in checks.items() if not good]


def kubernetes_form():
    daemon, client = manifest()
    case("kubernetes.yaml: a DaemonSet and a Pod",
         (daemon["apiVersion"], daemon["kind"]) == ("apps/v1", "DaemonSet") and
         (client["apiVersion"], client["kind"]) == ("v1", "Pod"))
    template = daemon["spec"]["template"]
    case("kubernetes.yaml: the selector is of the pods' labels",
         daemon["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items())
    for name, spec, other, root in (("daemon", template["spec"], client["spec"], True),
                                    ("client", client["spec"], template["spec"], False)):
        wrong = faults_of(spec, other, root)
        case("kubernetes.yaml: the %s has no rights that it does not need" % name, not wrong, wrong)
    server, user = template["spec"]["containers"][0], client["spec"]["containers"][0]
    socket = server["args"][server["args"].index("--socket") + 1]
    case("kubernetes.yaml: the client has the daemon's socket, in a folder that it cannot change",
         {"name": "ROCADE_SOCKET", "value": socket} in user["env"] and
         user["volumeMounts"][0].get("readOnly") is True and
         socket.startswith(user["volumeMounts"][0]["mountPath"] + "/") and
         server["readinessProbe"]["exec"]["command"] == ["rocade-status", "--socket", socket])


def rping_of_pods(node, spec):
    """Two pods connect by RDMA-CM. The daemon knows neither by a PID."""
    socket = node.root + "/run/rocade/rocade.sock"
    server = node.pod(spec, ["rocade-run", "rping", "-s", "-C", "50", "-V"])
    until(lambda: '"listeners": 1' in execute([STATUS_PROGRAM, "--socket", socket, "--json"]).stdout
          or server.poll() is not None)
    served, status, text = both(server, node.pod(
        spec, ["rocade-run", "rping", "-c", "-a", "127.0.0.1", "-C", "50", "-V"]), 60)
    case("kubernetes.yaml: two pods connect by RDMA-CM", served == 0 and status == 0, text)


def kubernetes_runs():
    if not is_root():
        skip("kubernetes.yaml", "needs root")
        return
    daemon, client = manifest()
    template, spec = daemon["spec"]["template"]["spec"], client["spec"]
    node = Node()
    try:
        server = node.pod(template)
        server.wait_line("listening at", 20)
        probe = template["containers"][0]["readinessProbe"]["exec"]["command"]
        status, text = node.pod(template, probe).finish()
        case("kubernetes.yaml: the daemon is ready", status == 0 and "this machine only" in text, text)
        status, text = node.pod(spec).finish()
        case("kubernetes.yaml: a pod without privileges, ibv_rc_pingpong at both ends",
             status == 0 and text.count("1000 iters in") == 2 and "invalid data" not in text, text)
        status, text = node.pod(spec, ["rocade-status", "--json"]).finish()
        # Through the daemon, and directly from one process of the pod to the other.
        ended = re.search(r'"departed": \{([^}]*)\}', text)
        moved = re.findall(r'"(?:rx|pair)_bytes": (\d+)', ended.group(1) if ended else "")
        case("kubernetes.yaml: the daemon's counters have its packets",
             status == 0 and len(moved) == 2 and sum(map(int, moved)) > 2 * 1000 * 4096, text)
        status, text = node.pod(spec, ["sh", "-c", "grep -E '^(Uid|CapBnd|CapEff|NoNewPrivs)' "
                                       "/proc/self/status; touch /run/rocade/x"]).finish()
        case("kubernetes.yaml: the pod has no capability and cannot change the folder",
             status != 0 and re.findall(r"^Cap\w+:\s+(\w+)", text, re.M) == ["0" * 16] * 2 and
             re.search(r"Uid:\s+1000\s", text) and "Read-only file system" in text, text)
        rping_of_pods(node, spec)
        status, text = node.pod(spec, mounts=False).finish()
        case("kubernetes.yaml: a pod without the volume gets an error",
             status != 0 and "rocade-run: " in text and "iters" not in text, text)
        server.kill()
        status, text = node.pod(spec).finish()
        case("kubernetes.yaml: without its daemon the pod's program does not start",
             status != 0 and "rocade-run: " in text and "iters" not in text, text)
    finally:
        node.remove()


# Options of unshare(1) for each kind of namespace. A container has one of each.
SPACES = {"pid": ["--pid", "--fork", "--kill-child"], "net": ["--net"], "mount": ["--mount"],
          "ipc": ["--ipc"], "user": ["--user", "--map-root-user"]}


class Apart(Daemon):
    """A daemon, and programs, each in namespaces of its own."""

    def __init__(self, options):
        super().__init__(through=["unshare", *options])
        self.inside = ["unshare", *options]

    def serve(self):
        self.process = Process(self.command)
        self.first_line = self.said("listening at")

    def __exit__(self, *_):
        self.process.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


def rping_apart(daemon, name):
    server = daemon.start("rping", "-s", "-C", "50", "-V")
    daemon.wait_listener(server)
    served, status, text = both(server, daemon.start(
        "rping", "-c", "-a", "127.0.0.1", "-C", "50", "-V"), 60)
    case(name + ": two programs connect by RDMA-CM", served == 0 and status == 0 and
         daemon.moved() >= 2 * 50 * 64, text)
    case(name + ": the daemon notices their ends", until(daemon.idle), daemon.status())


def end_apart(daemon, name):
    """The daemon notices the end of a program without a PID, and tells its peer."""
    server = daemon.start("rping", "-s")
    daemon.wait_listener(server)
    before = daemon.moved()
    client = daemon.start("rping", "-c", "-a", "127.0.0.1")
    moving = until(lambda: daemon.moved() > before + 100000)
    shown = [c["pid"] for c in daemon.status()["clients"]]
    client.kill()
    status, text = server.finish()
    case(name + ": the peer of a killed program is disconnected", moving and
         rping_status(status, text) is not None and "DISCONNECT" in text and until(daemon.idle),
         "%s\n%s\n%s" % (status, text, daemon.status()))
    case(name + ": the PIDs of programs are not known", shown == [0, 0], shown)


def namespaces():
    if not is_root():
        skip("namespaces", "needs root")
        return
    for name, options in SPACES.items():
        with Apart(options) as daemon:
            rping_apart(daemon, "%s namespaces" % name)
    with Apart(["--mount-proc"] + [word for options in SPACES.values() for word in options]) as daemon:
        rping_apart(daemon, "all namespaces")
        end_apart(daemon, "all namespaces")


COMPOSITE = {"top": {"name", "description", "inputs", "outputs", "runs", "branding", "author"},
             "input": {"description", "required", "default", "deprecationMessage"},
             "output": {"description", "value"},
             "step": {"name", "id", "if", "shell", "env", "run", "working-directory",
                      "continue-on-error"}}


def action():
    with open(os.path.join(SOURCE, "action.yml"), encoding="utf-8") as file:
        return yaml.safe_load(file)


def strings(value):
    """Returns all strings in a value of YAML."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


def action_form():
    found = action()
    steps = found["runs"]["steps"]
    unknown = (set(found) - COMPOSITE["top"] | {k for i in found["inputs"].values() for k in i} -
               COMPOSITE["input"] | {k for o in found["outputs"].values() for k in o} -
               COMPOSITE["output"] | {k for s in steps for k in s} - COMPOSITE["step"])
    case("action.yml: the keys of a composite action", not unknown and
         set(found["runs"]) == {"using", "steps"} and found["runs"]["using"] == "composite", unknown)
    case("action.yml: each step has a shell and commands",
         steps and all(s["shell"] == "bash" and s["run"].strip() for s in steps))
    case("action.yml: inputs are described strings, none is required",
         all(i["description"] and i["required"] is False and isinstance(i["default"], str)
             for i in found["inputs"].values()))
    known = {"inputs." + name for name in found["inputs"]} | {"github.action_path"} | {
        "steps.%s.outputs.socket" % s["id"] for s in steps if "id" in s}
    used = [e.strip() for text in strings(found) for e in re.findall(r"\$\{\{(.*?)\}\}", text)]
    used += re.findall(r"(inputs\.\w+)", " ".join(s.get("if", "") for s in steps))
    case("action.yml: expressions name what there is", used and set(used) <= known, used)
    # An input in a command would be commands of another person's pull request.
    case("action.yml: commands have no expression", not any("${{" in s["run"] for s in steps))
    for step in steps:
        done = execute(["shellcheck", "--shell=bash", "-"], feed="#!/bin/bash\n" + step["run"])
        case("action.yml: shellcheck accepts \"%s\"" % step["name"], done.returncode == 0,
             done.stdout)


# A job: a step of the action, then a step that uses what that has written for later steps.
JOB = """set -eo pipefail
bash --noprofile --norc -eo pipefail "$RUNNER_TEMP/step.sh"
set -a
. "$GITHUB_ENV"
. "$GITHUB_OUTPUT"
set +a
[ "$socket" = "$ROCADE_SOCKET" ]
rocade-status
rocade-run sh -e -c 'ibv_rc_pingpong -g 0 -c & sleep 1; ibv_rc_pingpong -g 0 -c 127.0.0.1; wait $!'
rocade-run ibv_devinfo -v | grep 192.0.2.9
"""


def action_starts():
    """The step that starts a daemon, with the inputs that its description names."""
    found = action()
    step = [s for s in found["runs"]["steps"] if s.get("id") == "start"][0]
    inputs = {name: row["default"] for name, row in found["inputs"].items()}
    inputs.update(address="192.0.2.9/24", options="--max-clients 7 --log-level info")
    folder = tempfile.mkdtemp(prefix="rocade-action-")
    with open(os.path.join(folder, "step.sh"), "w", encoding="utf-8") as file:
        file.write(step["run"])
    programs = [os.path.dirname(os.path.abspath(path)) for path in (ROCADED, RUN, STATUS_PROGRAM)]
    env = dict(os.environ, RUNNER_TEMP=folder, GITHUB_ENV=folder + "/env",
               GITHUB_OUTPUT=folder + "/output", PATH=":".join(programs + [os.environ["PATH"]]))
    env.update({name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: inputs[m.group(1)], text)
                for name, text in step["env"].items()})
    env.pop("ROCADE_SOCKET", None)
    job = Process(["bash", "-c", JOB], env=env)
    try:
        status = job.wait(60)
        case("action.yml: a later step uses the daemon that the action has started",
             status == 0 and job.text.count("1000 iters in") == 2 and
             "invalid data" not in job.text, job.text)
        case("action.yml: with the inputs of its user",
             re.search(r"GID\[ *\d\]:.*192\.0\.2\.9", job.text) and "max-clients" not in job.text,
             job.text)
    finally:
        job.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(run(kubernetes_form, kubernetes_runs, namespaces, action_form, action_starts))
