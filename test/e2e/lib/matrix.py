# SPDX-License-Identifier: BSD-3-Clause
"""The programs that must run unchanged: a row for each, with the bytes that Rocade has to carry.
docs/programs.md shows the table that text() makes."""

from collections import namedtuple

# args: arguments of the program. A client has the server's address behind them.
# least: bytes that Rocade must have carried. The daemon counts whole packets: slightly more.
# quick: whether every run of the tests has the row, or only the long runs.
# port: TCP port at which the server waits for the client's QP number; 0: RDMA-CM connects them.
# server: arguments of the server where they differ from args.
Row = namedtuple("Row", "group env program args port least quick server")

GROUPS = [
    ("ibverbs-utils", "GID 0, 200 times 4096 bytes each way; data is compared where the program "
                      "can (`-c`)"),
    ("perftest", "GID 0 (`-x 0`), 64 KiB for bandwidth, 2 bytes for latency"),
    ("perftest, many options", "every combination that perftest itself accepts"),
    ("UCX, one transport", "`ucx_perftest -d rocade0:1 -x TRANSPORT`, 1000 times"),
    ("UCX, all layers", "1000 times; with `UCX_NET_DEVICES=rocade0:1` where `UCX_TLS` is set, else with "
                        "`rocade-run` defaults"),
    ("libfabric", "`-d rocade0-dgram`, data is compared"),
    ("RDMA-CM", "the server's address is the device's, 192.0.2.1"),
]

PERFTEST_PORT = 18515
UCX_PORT = 13337
FABRIC_PORT = 47592


ADDRESS = "192.0.2.1"


def row(group, program, args, least, quick=False, env="", port=PERFTEST_PORT, server=None):
    return Row(group, env, program, args, port, int(least), quick, server)


def pingpongs():
    both = 2 * 200 * 4096
    for program, args, least in [
            ("rc", "-c", both), ("rc", "-c -e", both), ("rc", "-c -N", both),
            ("rc", "-c -t", both), ("rc", "-c -s 100000", 2 * 200 * 100000),
            ("uc", "-c", both), ("uc", "-e", both),
            ("ud", "-c -s 1024", both / 4), ("ud", "-c -e -s 1024", both / 4),
            ("srq", "-c", both), ("srq", "-c -e", both), ("srq", "-c -q 4", both),
            ("xsrq", "", both), ("xsrq", "-e", both)]:
        yield row("ibverbs-utils", "ibv_%s_pingpong" % program, args, least, True)


PINGPONG_ALL = "-g 0 -n 200"
PERFTEST_ALL = "-F"


def perftest():
    """A selection: each service, verb and kind of option once."""
    def one(program, args, least):
        return row("perftest", program, args, least, True)

    big = 65536
    for verb, services in [("send", "RC UC UD XRC"), ("write", "RC UC XRC"),
                           ("read", "RC XRC"), ("atomic", "RC XRC")]:
        for service in services.split():
            size = 8 if verb == "atomic" else 1024 if service == "UD" else big
            sized = "" if verb == "atomic" else " -s %d" % size
            yield one("ib_%s_bw" % verb, "-x 0 -c %s -n 500%s" % (service, sized), 500 * size)
            yield one("ib_%s_lat" % verb, "-x 0 -c %s -n 500" % service, 500 * 2)
    yield one("ib_send_bw", "-x 0 -n 300 -e", 300 * big)
    yield one("ib_send_bw", "-x 0 -n 300 -b", 2 * 300 * big)
    yield one("ib_send_bw", "-x 0 -n 100 -q 16", 16 * 100 * big)
    yield one("ib_send_bw", "-x 0 -n 300 --use-srq -q 4", 4 * 300 * big)
    yield one("ib_send_bw", "-x 0 -n 500 -I 64 -s 64", 500 * 64)
    yield one("ib_send_bw", "-x 1 -n 500 -c UD -g -s 1024", 500 * 1024)
    yield one("ib_send_bw", "-x 0 -n 500 -c UD -g -s 1024 -M 0:0:0:0:0:0:0:0:0:0:255:255:239:1:1:1",
              500 * 1024)
    yield one("ib_send_lat", "-x 0 -n 500 -e", 500 * 2)
    yield one("ib_write_bw", "-x 0 -n 300 -b", 2 * 300 * big)
    yield one("ib_write_bw", "-x 0 -n 100 -q 16", 16 * 100 * big)
    yield one("ib_write_bw", "-x 0 -D 3 -f 1", 1 << 20)
    yield one("ib_write_bw", "-x 0 -n 304 -l 8", 304 * big)
    yield one("ib_write_lat", "-x 0 -n 500 -I 64 -s 64", 500 * 64)
    yield one("ib_read_bw", "-x 0 -n 100 -q 16", 16 * 100 * big)
    yield one("ib_atomic_bw", "-x 0 -n 500 -A CMP_AND_SWAP", 500 * 8)


def accepted(verb, kind, service, option):
    """Whether perftest accepts the combination. It refuses, for example, events where the peer is
    passive."""
    words = option.split()
    send = verb == "send"
    if "-e" in words and (verb == "write" or (kind == "lat" and service == "XRC" and not send)):
        return False
    if "--use-srq" in words and not send:
        return False
    # The SRQ then has a part of the -r receives, and UC and UD have no flow control: messages are
    # lost on any network.
    if "--use-srq" in words and "-q" in words and service in ("UC", "UD"):
        return False
    if "-g" in words and (service != "UD" or not send):
        return False
    if "-I" in words and verb in ("read", "atomic"):
        return False
    return not ("-a" in words and verb == "atomic")


def all_options():
    """Yields every accepted combination. Sizes: 2 bytes to 8 MiB with -a, 64 bytes with -I, 1 KiB
    in datagrams."""
    options = {"bw": ["", "-e", "-q 16", "-b", "-b -e", "-a", "-D 3 -f 1", "-I 64", "--use-srq",
                      "--use-srq -q 16", "-l 8", "-g"],
               "lat": ["", "-e", "-a", "-D 3 -f 1", "-I 64", "--use-srq", "-g"]}
    for verb, services in [("send", "RC UC UD XRC"), ("write", "RC UC XRC"),
                           ("read", "RC XRC"), ("atomic", "RC XRC")]:
        for kind in "bw", "lat":
            for service in services.split():
                for option in options[kind]:
                    if accepted(verb, kind, service, option):
                        yield all_row(verb, kind, service, option)


def all_row(verb, kind, service, option):
    words = option.split()
    size = 64 if "-I" in words or kind == "lat" else 1024 if service == "UD" else 65536
    count = 20 if "-a" in words else 200
    least = count * size
    args = "-x %d -c %s" % ("-g" in words, service)
    if verb == "atomic":
        least = count * 8
    elif "-a" in words:
        least = count * (4096 if service == "UD" else 16 << 20)
    elif "-D" in words:
        least = 1 << 16
    if "-D" not in words:
        args += " -n %d" % count
    if "-a" not in words and verb != "atomic":
        args += " -s %d" % size
    if "-q" in words:
        least *= 16
    if "-b" in words:
        least *= 2
    return row("perftest, many options", "ib_%s_%s" % (verb, kind), (args + " " + option).strip(),
               least)


def ucx():
    group = "UCX, one transport"
    for transport, test, size, args in [
            ("rc_verbs", "am_lat", 8, ""), ("rc_verbs", "am_bw", 4096, "-D bcopy"),
            ("rc_verbs", "put_lat", 8, ""), ("rc_verbs", "put_bw", 65536, "-D zcopy"),
            ("rc_verbs", "get", 65536, "-D zcopy"), ("rc_verbs", "fadd", 8, ""),
            ("rc_verbs", "cswap", 8, ""), ("rc_verbs", "add_mr", 8, ""),
            ("ud_verbs", "am_lat", 8, ""), ("ud_verbs", "am_bw", 2048, "-D bcopy"),
            ("ud_verbs", "am_bw", 2048, "-D zcopy")]:
        text = "-d rocade0:1 -x %s -t %s -s %d -n 1000 %s" % (transport, test, size, args)
        yield row(group, "ucx_perftest", text.strip(), 1000 * size,
                  quick=test in ("am_lat", "put_bw", "fadd"), port=UCX_PORT)
    yield row("UCX, all layers", "ucx_perftest", "-t tag_bw -s 65536 -n 1000", 1000 * 65536, True,
              port=UCX_PORT)
    for tls in "rc_verbs,ud_verbs:aux,self", "ud_verbs,self":
        for test, size in [("tag_lat", 8), ("tag_bw", 65536), ("ucp_am_bw", 65536),
                           ("ucp_put_lat", 8), ("ucp_put_bw", 65536), ("ucp_get", 65536),
                           ("ucp_add", 8), ("ucp_fadd", 8), ("ucp_swap", 8), ("ucp_cswap", 8),
                           ("stream_lat", 8), ("stream_bw", 65536)]:
            yield row("UCX, all layers", "ucx_perftest", "-t %s -s %d -n 1000" % (test, size),
                      1000 * size, quick=test in ("tag_bw", "ucp_get", "ucp_fadd"),
                      env="UCX_TLS=" + tls, port=UCX_PORT)


def fabric():
    for size in "64", "1024", "100000":
        yield row("libfabric", "fi_pingpong",
                  "-p verbs;ofi_rxd -e rdm -d rocade0-dgram -c -I 200 -S " + size,
                  2 * 200 * int(size), size == "1024", port=FABRIC_PORT)


def cm():
    def one(program, args, least, quick=False, **more):
        return row("RDMA-CM", program, args, least, quick, port=0, **more)

    yield one("rping", "-c -a %s -C 50 -V" % ADDRESS, 2 * 50 * 64, True, server="-s -C 50 -V")
    yield one("ucmatose", "-s %s -c 4 -C 20" % ADDRESS, 4 * 20 * 100, True, server="-c 4 -C 20")
    yield one("udaddy", "-s %s -c 4 -C 20" % ADDRESS, 4 * 20 * 100, True, server="-c 4 -C 20")
    for verb, kind, args in [("send", "bw", ""), ("send", "bw", " -q 4"), ("send", "lat", ""),
                             ("write", "bw", ""), ("write", "lat", ""), ("read", "bw", ""),
                             ("atomic", "bw", ""), ("send", "bw", " -c UD -s 1024")]:
        size = 8 if verb == "atomic" else 1024 if "UD" in args else 65536
        yield one("ib_%s_%s" % (verb, kind), "-R -n 200" + args,
                  200 * (2 if kind == "lat" else size), (verb, kind, args) == ("send", "bw", ""))
    for provider, kind in ("verbs", "msg"), ("verbs;ofi_rxm", "rdm"):
        yield row("RDMA-CM", "fi_pingpong", "-p %s -e %s -c -I 200 -S 1024" % (provider, kind),
                  2 * 200 * 1024, True, port=FABRIC_PORT)


ROWS = [*pingpongs(), *perftest(), *all_options(), *ucx(), *fabric(), *cm()]


def command(r, server=False):
    """Returns the command line as a list. For most clients the server's address follows it."""
    more = []
    if r.program.startswith("ibv_"):
        more = PINGPONG_ALL.split()
    elif r.program.startswith("ib_"):
        more = PERFTEST_ALL.split()
    env = r.env.split()
    if r.env.startswith("UCX_TLS"):
        env.append("UCX_NET_DEVICES=rocade0:1")
    return (["env", *env] if env else []) + [
        r.program, *more, *(r.server if server and r.server is not None else r.args).split()]


def address(r):
    """Returns the last arguments of the client."""
    if r.group != "RDMA-CM":
        return ["127.0.0.1"]
    return [] if r.server is not None else [ADDRESS]


def name(r):
    return " ".join(" ".join((r.env, r.program, r.args)).split())


def text():
    """Returns the table of docs/programs.md: a line for each program, and forced transport, of a
    group."""
    lines = []
    for group, what in GROUPS:
        lines += ["### " + group[0].upper() + group[1:], "", what + ".", "",
                  "| program | in every run | in long runs |", "|---|---|---|"]
        programs = []
        for r in ROWS:
            if r.group == group and (r.env, r.program) not in programs:
                programs.append((r.env, r.program))
        for env, program in programs:
            cells = [[], []]
            for r in ROWS:
                if (r.group, r.env, r.program) == (group, env, program):
                    cells[not r.quick].append("`%s`" % r.args if r.args else "plain")
            title = ("`%s` " % env if env else "") + "`%s`" % program
            lines.append("| %s | %s | %s |" % (title, ", ".join(cells[0]), ", ".join(cells[1])))
        lines.append("")
    return "\n".join(lines)
