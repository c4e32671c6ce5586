# SPDX-License-Identifier: BSD-3-Clause
"""What an end does: the steps that left orders, at its own end and at the other one."""

import check
import interop
import nic
import patterns
import traffic
from channel import Gone, Unexpected, flag, list_of, number, one_of, optional, record, text
from program import Failed, stop_all

EMPTY = record({})
RDMA = record({"present": flag, "reason": optional(text), "name": text, "driver": text})
# step: arguments, answer, seconds until the answer
STEPS = {
    "check": (EMPTY, check.CHECK, 60),
    "bind": (EMPTY, EMPTY, 120),
    "start": (record({"case": one_of(*traffic.CASES), "role": one_of("send", "sink"),
                      "path_mtu": one_of(*traffic.PATH_MTUS)}), EMPTY, traffic.START_S + 30),
    "wait": (EMPTY, traffic.RESULT, traffic.RUN_S + 30),
    "stop": (EMPTY, traffic.RESULT, 90),
    "rdma": (EMPTY, RDMA, 30),
    "pingpong_device": (EMPTY, EMPTY, 60),
    "pingpong_rocade": (record({"path_mtu": one_of(*traffic.PATH_MTUS)}), EMPTY, 120),
    "pingpong_wait": (EMPTY, interop.RESULT, interop.LIMIT_S + 60),
    "pingpong_stop": (EMPTY, EMPTY, 60),
}
# The same with --hosts. members: places in --hosts.
HOST_STEPS = {
    "check": STEPS["check"], "bind": STEPS["bind"],
    "host_open": (record({"run": one_of(*patterns.RUNS), "role": one_of(*patterns.MODES),
                          "path_mtu": one_of(*traffic.PATH_MTUS),
                          "members": list_of(number(0, patterns.HOSTS_MAX - 1))}), EMPTY,
                  traffic.START_S + 30),
    "host_go": (EMPTY, EMPTY, 30),
    "host_wait": (EMPTY, patterns.RESULT, traffic.RUN_S + 60),
    "host_stop": (EMPTY, patterns.RESULT, 90),
}
IDLE_S = 600  # until the next step
HOST_IDLE_S = 6 * 3600  # with --hosts: the others are measured in between


class Local:
    """This end."""

    def __init__(self, options):
        self.options = options
        self.started = []
        self.channel = None
        self.nic = nic.Nic(options.dev, options.sys) if options.dev else None
        self.steps = HOST_STEPS if options.hosts else STEPS
        self.port = (patterns.Port if options.hosts else traffic.Port)(options, self.nic, self.started)
        self.control = []  # addresses of both ends of the control connection
        self.device = None
        self.pingpong = None
        self.before = self.interface()

    def interface(self):
        """Returns what the PMD of a virtual device changes on the kernel's interface below it."""
        name = None if self.nic else check.interface_of(self.port)
        for link in nic.rows("link", "show", "dev", name) if name else []:
            return ["dev", name, "mtu", str(link["mtu"]), "promisc",
                    "on" if "PROMISC" in link["flags"] else "off"]
        return None

    def ask(self, step, **arguments):
        takes, answers, _ = self.steps[step]
        return answers(getattr(self, "do_" + step)(**takes(arguments)))

    def alive(self):
        if self.channel:  # left has one for each other host, and finds one that has gone by its answer
            self.channel.check()

    def do_check(self):
        return check.check(self.port, interop.names(self.options.sys))

    def may_bind(self, control):
        """Whether the NIC has to be lent to DPDK. Raises Refused if it must not."""
        if self.nic is None or self.nic.ready():
            return False
        if not self.options.bind:
            raise nic.Refused("%s belongs to the kernel's driver %s: give --bind to lend it to "
                              "DPDK for this run" % (self.options.dev, self.nic.driver()))
        self.nic.check(control, self.options.bind)
        return True

    def do_bind(self):
        if self.may_bind(self.control):
            self.nic.bind(self.options.bind)
        return {}

    def do_start(self, case, role, path_mtu):
        self.port.start(case, role, path_mtu)
        return {}

    def do_wait(self):
        return self.port.wait(self.alive)

    def do_stop(self):
        return self.port.stop_run()

    def do_rdma(self):
        self.device, reason = interop.find(self.options.addr, self.options.rdma, self.options.sys)
        present = self.device is not None
        return {"present": present, "reason": reason,
                "name": check.plain(self.device.name) if present else "",
                "driver": check.plain(self.device.driver) if present else ""}

    def do_pingpong_device(self):
        if self.device is None:
            raise Failed("this end has no RDMA device")
        self.pingpong = interop.Pingpong(self.port, self.options.control[1] + 1)
        self.pingpong.start_device(self.device)
        return {}

    def do_pingpong_rocade(self, path_mtu):
        self.pingpong = interop.Pingpong(self.port, self.options.control[1] + 1)
        self.pingpong.start_rocade(self.control[0], path_mtu)
        return {}

    def do_pingpong_wait(self):
        if self.pingpong is None or self.pingpong.program is None:
            raise Failed("no pingpong")
        return self.pingpong.wait(self.alive)

    def do_pingpong_stop(self):
        if self.pingpong:
            self.pingpong.stop()
            self.pingpong = None
        return {}

    def do_host_open(self, run, role, path_mtu, members):
        self.port.open(run, role, path_mtu, members)
        return {}

    def do_host_go(self):
        self.port.go()
        return {}

    def do_host_wait(self):
        return self.port.wait(self.alive)

    def do_host_stop(self):
        return self.port.stop_run()

    def close(self):
        """Ends all programs and gives back what was taken."""
        stop_all(self.started)
        if self.nic:
            self.nic.unbind()
        if self.before:
            nic.run("ip", "link", "set", *self.before)


class Remote:
    """The other end, as left sees it."""

    def __init__(self, channel, name="right", steps=None):
        self.channel = channel
        self.name = name
        self.steps = steps or STEPS

    def ask(self, step, **arguments):
        self.order(step, **arguments)
        return self.answer(step)

    def order(self, step, **arguments):
        self.channel.send({"do": step, "with": arguments})

    def answer(self, step):
        _, answer, limit_s = self.steps[step]
        message = self.channel.receive(limit_s)
        if set(message) == {"failed"}:
            raise Failed("%s: %s" % (self.name, text(message["failed"])))
        if set(message) != {"done", "result"} or message["done"] != step:
            raise Unexpected("no answer to the step %s" % step)
        return answer(message["result"])

    def end(self, verdict):
        self.channel.send({"do": "end", "with": {"verdict": verdict}})


def serve(local, channel, idle_s=IDLE_S):
    """Right: does the steps that left orders. Returns left's verdict."""
    while True:
        message = channel.receive(idle_s)
        if set(message) != {"do", "with"} or not isinstance(message["with"], dict):
            raise Unexpected("a message that is no step")
        step = message["do"]
        if step == "end":
            return record({"verdict": one_of("pass", "fail")})(message["with"])["verdict"]
        if not isinstance(step, str) or step not in local.steps:
            raise Unexpected("an unknown step")
        arguments = local.steps[step][0](message["with"])
        try:
            answer = {"done": step, "result": local.ask(step, **arguments)}
        except (Gone, Unexpected):
            raise
        except (Failed, OSError) as error:
            print("%s: %s" % (step, error), flush=True)
            answer = {"failed": traffic.hidden(str(error))}
        channel.send(answer)
