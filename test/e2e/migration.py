#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""QEMU's live migration over RDMA: the guest of docs/tasks/live-migration.md, which writes its memory
while it is migrated and checks it. Through `rocaded --local` and between two hosts, with rdma-pin-all
and without. The memory of both QEMUs is compared, and the daemons' counters prove that Rocade carried
all pages that QEMU has sent."""

import filecmp
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import Daemon  # noqa: E402
from hosts import V4, joined  # noqa: E402
from process import until  # noqa: E402
from rows import row  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import LONG, SOURCE, is_root  # noqa: E402

PAGE = os.path.join(SOURCE, "docs", "tasks", "live-migration.md")
MEMORY = 64 << 20
PAGES = 63 * 256  # that the guest writes
PORT = 4444


def built(folder):
    """Builds the guest of the page. Returns its image."""
    with open(PAGE, encoding="utf-8") as file:
        commands = re.search(r"^cat >guest\.s.*?(?=^```$)", file.read(), re.M | re.S)[0]
    process.run(["bash", "-e"], feed=commands, check=True, cwd=folder)
    return os.path.join(folder, "guest.img")


class Machine:
    """A QEMU, as a client of a daemon, that takes QMP commands."""

    def __init__(self, host, folder, image, name, *options):
        self.serial, self.memory = (os.path.join(folder, name + end) for end in (".serial", ".memory"))
        self.qemu = host.start(
            "qemu-system-x86_64", "-accel", "tcg", "-m", str(MEMORY >> 20), "-nodefaults", "-display",
            "none", "-qmp", "stdio", "-serial", "file:" + self.serial, "-drive",
            "if=floppy,format=raw,readonly=on,file=" + image, *options, feed=True, cwd=folder)
        self.command("qmp_capabilities")

    def command(self, name, **arguments):
        """Returns what a command returns."""
        after = len(self.qemu.text)
        self.qemu.say(json.dumps({"execute": name, "arguments": arguments, "id": after}) + "\n")
        said = self.qemu.expect(r'^\{.*"id": %d\b.*\}\r?$' % after, 30, after)
        if not said or "return" not in json.loads(said[0]):
            raise self.qemu.failure("waited for the reply to %s" % name)
        return json.loads(said[0])["return"]

    def passes(self):
        """Returns what the guest has printed so far."""
        with open(self.serial, encoding="ascii") as file:
            return file.read()

    def runs(self, lines):
        """Waits until the guest has printed as many lines. Returns whether it has."""
        return until(lambda: self.passes().count("\n") >= lines)

    def save(self):
        self.command("pmemsave", val=0, size=MEMORY, filename=self.memory)


def wrong(text):
    """Returns the first line that is not the one of the next pass, or None."""
    for number, line in enumerate(text.split("\n")[:-1]):
        if line != "%08x %08x" % (number + 1, number * PAGES % (1 << 32)):
            return "line %d: %s" % (number + 1, line)
    return None


def migrate(source, target, address, pin):
    """Migrates the guest. Returns the state of the migration."""
    for machine in source, target:
        machine.command("migrate-set-capabilities", capabilities=[
            {"capability": "rdma-pin-all", "state": pin}])
    source.command("migrate", uri="rdma:%s:%d" % (address, PORT))
    state = {}

    def rounds():
        state.update(source.command("query-migrate"))
        return state["status"] == "failed" or state.get("ram", {}).get("dirty-sync-count", 0) > 1

    def ended():
        state.update(source.command("query-migrate"))
        return state["status"] in ("completed", "failed")

    # By default QEMU sends 128 MiB a second and stops the guest for at most 300 ms. The guest writes all
    # its memory again in less time, so that the migration does not end before this limit is changed.
    until(rounds, 60, 0.1)
    source.command("migrate-set-parameters", **{"downtime-limit": 2000})
    until(ended, 60, 0.1)
    return state


def migration(name, folder, image, hosts, counters, pin):
    """hosts: source and target. counters: calls that return the bytes which the daemon of an end has
    carried so far."""
    title = "%s, rdma-pin-all %s: " % (name, "on" if pin else "off")
    before = [counter() for counter in counters]
    address = V4[len(hosts) - 1]
    target = Machine(hosts[-1], folder, image, "target", "-S", "-incoming",
                     "rdma:%s:%d" % (address, PORT))
    hosts[-1].wait_listener(target.qemu)
    source = Machine(hosts[0], folder, image, "source")
    started = source.runs(100)
    state = migrate(source, target, address, pin)
    case(title + "a running guest is migrated", started and state.get("status") == "completed",
         "%s\n%s\n%s" % (state, source.qemu.output(), target.qemu.output()))
    sent = state["ram"]["normal"] * 4096
    moved = [counter() - was for counter, was in zip(counters, before)]
    case(title + "Rocade carries all pages, some of them again", min(moved) >= sent > MEMORY,
         "%s of %d bytes, memory %d" % (moved, sent, MEMORY))
    for machine in source, target:
        machine.save()
    case(title + "source and destination have the same memory", filecmp.cmp(
        source.memory, target.memory, False), str(state))
    at_source = source.passes()
    target.command("cont")
    goes_on = target.runs(100)
    for machine in target, source:
        machine.command("quit")
    ends = [machine.qemu.finish() for machine in (source, target)]
    text = at_source + target.passes()
    case(title + "the guest goes on where it was", goes_on and not wrong(text) and
         source.passes() == at_source, wrong(text))
    left = [host.status() for host in hosts if not until(host.idle)]
    case(title + "both QEMUs end and leave nothing", [status for status, _ in ends] == [0, 0] and
         not left, "%s\n%s" % (ends, left))
    print("# %s%d passes, the guest stood still for %d ms" % (title, text.count("\n"),
                                                            state["downtime"]))
    row("QEMU live migration, `rdma-pin-all` " + ("on" if pin else "off"), "qemu-system-x86",
        "RC over RDMA-CM, " + name, state["total-time"] / 1e3, min(moved), "memory compared")


def one_host():
    with tempfile.TemporaryDirectory() as folder, Daemon() as daemon:
        image = built(folder)
        for pin in [False, True] if LONG else [False]:
            migration("one host", folder, image, [daemon], [daemon.moved], pin)


def two_hosts():
    if not is_root():
        skip("two hosts", "needs root")
        return
    with tempfile.TemporaryDirectory() as folder, joined() as hosts:
        image = built(folder)
        for pin in [True, False] if LONG else [True]:
            migration("two hosts", folder, image, hosts, [host.wire for host in hosts], pin)


if __name__ == "__main__":
    sys.exit(run(one_host, two_hosts))
