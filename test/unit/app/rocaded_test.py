#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocaded's configuration file and options, without opening a port: the file of config/, messages
for wrong files, options that override the file, and the keys and options of the manual page."""

import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../e2e/lib"))
import process  # noqa: E402
from tap import case, run, skip  # noqa: E402

ROCADED, SOURCE = sys.argv[1:3]
CONFIG = os.path.join(SOURCE, "config", "rocaded.conf")
MANUAL = os.path.join(SOURCE, "docs", "man", "rocaded.8")

LOCAL = "[daemon]\nlocal = yes\n"
# Contents of the file, line of the error, part of the message.
WRONG = [
    ("local = yes\n", 1, "before the first section"),
    ("[prot]\n", 1, "unknown section [prot]: expected [daemon], [eal], [port] or [clients]"),
    ("[daemon\n", 1, "invalid section"),
    (LOCAL + "nonsense\n", 3, "expected [section] or key = value"),
    (LOCAL + "# fine\n\nsockets = /tmp/x\n", 5,
     "sockets: unknown key in [daemon]: expected one of local,"),
    ("[daemon]\nlocal = maybe\n", 2, "local: invalid value 'maybe': expected no or yes"),
    (LOCAL + "log-level = loud\n", 3,
     "log-level: invalid value 'loud': expected error, warning, info or debug"),
    (LOCAL + "seccomp = maybe\n", 3,
     "seccomp: invalid value 'maybe': expected kill, log or off"),
    (LOCAL + "socket-mode = 9\n", 3,
     "socket-mode: invalid value '9': expected an octal mode, 1 to 777"),
    (LOCAL + "metrics = :9469\n", 3, "metrics: invalid value ':9469': expected off, PORT, ADDRESS:PORT, [IPV6-"),
    (LOCAL + "metrics = ::1:9469\n", 3, "metrics: invalid value '::1:9469'"),
    (LOCAL + "metrics = [::1:9469\n", 3, "metrics: invalid value '[::1:9469'"),
    (LOCAL + "metrics = []:9469\n", 3, "metrics: invalid value '[]:9469'"),
    (LOCAL + "metrics = localhost:9469\n", 3, "metrics: invalid value 'localhost:9469'"),
    (LOCAL + "metrics = 0\n", 3, "metrics: invalid value '0'"),
    (LOCAL + "metrics = 127.0.0.1:65536\n", 3, "metrics: invalid value '127.0.0.1:65536'"),
    (LOCAL + "metrics = /" + "x" * 107 + "\n", 3, "metrics: invalid value '/xxx"),
    (LOCAL + "[port]\nmtu = 12\n", 4,
     "mtu: invalid value '12': expected 576 to 9000"),
    (LOCAL + "[port]\nmtu = 1500 # bytes\nmtu = 1400\n", 5,
     "mtu: duplicate key, first set in line 4"),
    (LOCAL + "[port]\nvlan = 5000\n", 4,
     "vlan: invalid value '5000': expected 0 to 4094"),
    (LOCAL + "[port]\nname = a/b\n", 4, 'name: "a/b" is not 1 to 63 letters'),
    (LOCAL + "[port]\naddress = 1.2.3\n", 4, 'address: invalid address "1.2.3": expected'),
    (LOCAL + "[port]\naddress = 224.0.0.1/4\n", 4, "non-host address"),
    (LOCAL + "[port]\ngateway4 = 10.1.1.1\n", 4, 'gateway4: "10.1.1.1" is not in the subnet'),
    (LOCAL + "[port]\ngateway6 = 10.1.1.1\n", 4, 'gateway6: invalid value "10.1.1.1": expected an IPv6 address'),
    (LOCAL + "[port]\nimpair = loss=1%,loss=2%\n", 4,
     "impair: invalid value 'loss=1%,loss=2%': it names loss twice; expected off, or some of loss, dup,"),
    (LOCAL + "[port]\nimpair = lost=1%\n", 4, "it has 'lost' where a kind of fault is expected; expected"),
    (LOCAL + "[port]\nimpair-seed = x\n", 4, "impair-seed: invalid value 'x': expected 0 to 18446744073709551615"),
    (LOCAL + "[clients]\nclient-ring = 100\n", 4, "client-ring: 100 is not a power of two"),
    (LOCAL + "[clients]\nclient-qps = 0\n", 4,
     "client-qps: invalid value '0': expected 1 to 65536"),
    (LOCAL + "[clients]\nclient-rate = -1\n", 4, "client-rate: invalid value '-1': expected"),
    (LOCAL + "[clients]\nmtu = 1500\n", 4, "mtu: unknown key in [clients]"),
    (LOCAL + "[eal]\nm = " + "1" * 1024 + "\n", 4, "longer than 1023"),
    (LOCAL + "[port]\nname = " + "x" * 1023 + "\n", 4, 'name: "xxx'),
    (LOCAL + "[clients]\nmax-clients = " + "1" * 1023 + "\n", 4, "': expected 1 to 65536"),
    (LOCAL + "[eal]\n" + "a = 1\n" * 40, 36, "EAL arguments"),
    (LOCAL + "socket-mode = 1000\n", 3, "socket-mode: invalid value '1000'"),
    (LOCAL + "[port]\naddress = 1.2.3.4/24" + ", 1.2.3.4/24" * 19 + "\n", 4, "address: "),
    (LOCAL + "check-config = x\n", 3, "check-config: unknown key in [daemon]"),
]


def rocaded(*args):
    return process.run([ROCADED, *args], env=dict(os.environ, LC_ALL="C"))


# The exposure that systemd-analyze(1) may find at most (0: none, 10: all), in tenths: of the unit
# alone, which serves --local and net_af_packet, and with each drop-in.
EXPOSURE = {None: 25, "local.conf": 10, "mlx5.conf": 25, "net_af_xdp.conf": 25,
            "net_memif.conf": 10, "net_tap.conf": 25, "vfio.conf": 15}


def unit(drop_in):
    """Checks the unit with systemd-analyze and the program that was built."""
    name = "the unit" + (" with " + drop_in if drop_in else "")
    analyze = shutil.which("systemd-analyze")
    # It makes /run/systemd where systemd does not run, as in a chroot that builds packages.
    lacks = not analyze and "no systemd-analyze" or not os.path.isdir(
        "/run/systemd") and not os.access("/run", os.W_OK) and "cannot make /run/systemd"
    if lacks:
        skip(name + " passes systemd-analyze", lacks)
        return
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(SOURCE, "config", "rocaded.socket"), folder)
        with open(os.path.join(SOURCE, "config", "rocaded.service"), encoding="utf-8") as file:
            text = file.read()
        path = os.path.join(folder, "rocaded.service")
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"=rocaded ", "=%s " % os.path.abspath(ROCADED), text))
        if drop_in:
            os.mkdir(path + ".d")
            shutil.copy(os.path.join(SOURCE, "config", "rocaded.service.d", drop_in), path + ".d")
        done = [process.run([analyze, *args]) for args in (
            ("verify", "--man=no", path, path.replace(".service", ".socket")),
            ("security", "--no-pager", "--offline=true", "--threshold=%d" % EXPOSURE[drop_in],
             path))]
    ours = [line for line in done[0].stderr.splitlines() if "rocaded" in line]
    case(name + " passes systemd-analyze", text.count("=rocaded --") == 2 and
         done[0].returncode == 0 and not ours, done[0].stderr)
    case("the exposure of %s is at most %.1f" % (name, EXPOSURE[drop_in] / 10),
         done[1].returncode == 0 and "exposure level" in done[1].stdout, done[1])


def settings():
    done = rocaded("--check-config", CONFIG)
    case("config/rocaded.conf is valid", done.returncode == 0 and ": OK\n" in done.stdout,
         done.stderr)
    with open(CONFIG, encoding="utf-8") as file:
        text = file.read()
    # Also with all examples of a device enabled.
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(re.sub(r"^#(?=[a-z0-9-]+ =)", "", text, flags=re.M).replace(
            "local = yes", "local = no"))
        file.flush()
        done = rocaded("--check-config", file.name)
        case("config/rocaded.conf is valid with its examples enabled", done.returncode == 0,
             done.stderr)
    for text_wrong, line, said in WRONG:
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(text_wrong)
            file.flush()
            done = rocaded("--check-config", file.name)
            case("refused: " + text_wrong.splitlines()[line - 1][:40],
                 done.returncode == 2 and done.stderr.count("\n") == 1 and
                 "rocaded: %s:%d: " % (file.name, line) in done.stderr and said in done.stderr,
                 done.stderr)
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(LOCAL + "[port]\nmtu = 1500\naddress = 1.2.3.4/24\n")
        file.flush()
        done = rocaded("--check-config", file.name, "--gateway4", "9.9.9.9")
        case("an option that conflicts with the file is refused", done.returncode == 2 and
             "rocaded: --gateway4: " in done.stderr, done.stderr)
        done = rocaded("--check-config", file.name, "--address", "9.9.9.1/24", "--gateway4",
                       "9.9.9.9")
        case("an option overrides the file", done.returncode == 0, done.stderr)
    # As long as an option may be.
    addresses = ", ".join("2001:db8:1111:2222:3333:4444:5555:%04x/64" % i for i in range(0x1000, 0x1007))
    for args in ((LOCAL + "[port]\naddress = " + addresses + "\n",),
                 (LOCAL, "--address", addresses)):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(args[0])
            file.flush()
            done = rocaded("--check-config", file.name, *args[1:])
            case("a list of %d characters is taken from %s" % (
                len(addresses), "the option" if args[1:] else "the file"), done.returncode == 0,
                done.stderr)
    done = rocaded("--check-config", "/nonexistent")
    case("a missing file is reported", done.returncode == 2 and
         "/nonexistent: No such file" in done.stderr, done.stderr)
    for text_wrong in ("#" * 70000, "[daemon]\nlocal\0 = yes\n"):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(text_wrong)
            file.flush()
            done = rocaded("--check-config", file.name)
            case("a file that is no text, or too long, is refused", done.returncode == 2 and
                 file.name + ": expected a text of at most 65535 bytes" in done.stderr, done.stderr)
    done = rocaded("--check-config", "/")
    case("a directory is refused", done.returncode == 2 and "/: Is a directory" in done.stderr,
         done.stderr)
    for args, said in [((), "missing --local or --port"),
                       (("--local", "--port", "0"), "conflicting options"),
                       (("-m", "64", "--", "--local"), "conflicting options"),
                       (("--local", "more"), "unexpected argument 'more'"),
                       (("--mtu", "12"), "invalid value '12' for --mtu: expected 576 to 9000"),
                       (("--local=maybe",), "invalid value 'maybe' for --local: expected no or yes"),
                       (("--socket-mode", "8"),
                        "invalid value '8' for --socket-mode: expected an octal mode, 1 to 777"),
                       (("--local", "--user", "nobody-here"),
                        "user: no user 'nobody-here': expected USER or USER:GROUP"),
                       (("--check-config", CONFIG, "--user", "root:nobody-here"),
                        "user: no group 'nobody-here': expected"),
                       (("--local", "--impair", "loss=1%,loss=2%"),
                        "invalid value 'loss=1%,loss=2%' for --impair: it names loss twice; expected off, or"),
                       (("--local", "--impair", "delay=1ms"),
                        "it has 'delay' where a kind of fault is expected; expected off, or some of loss,"),
                       (("--local", "--impair", "dup=101%"), "it has '101%' for dup, which is no share"),
                       (("--local", "--impair-seed", "-1"), "invalid value '-1' for --impair-seed: expected 0 to"),
                       (("--nonsense",), "unknown option '--nonsense' (see --help)")]:
        done = rocaded(*args)
        case("refused: rocaded " + " ".join(args), done.returncode == 2 and said in done.stderr,
             done.stderr)
    drop_ins = sorted(os.listdir(os.path.join(SOURCE, "config", "rocaded.service.d")))
    case("each drop-in has a limit of exposure", drop_ins == sorted(filter(None, EXPOSURE)),
         drop_ins)
    for drop_in in EXPOSURE:
        unit(drop_in)
    help_text = rocaded("--help").stdout
    with open(MANUAL, encoding="utf-8") as file:
        manual = file.read().replace("\\-", "-")
    options = re.findall(r"^  --([a-z0-9-]+)", help_text, flags=re.M)
    missing = [o for o in options if not re.search(r"\b" + o + r"\b", manual)]
    case("the manual page has every option", len(options) > 15 and not missing, missing)
    keys = re.findall(r"^#?([a-z0-9-]+) = ", text, flags=re.M)
    missing = [o for o in options if o not in keys and o not in (
        "config", "check-config", "help", "version")]
    case("config/rocaded.conf has every key", not missing, missing)


if __name__ == "__main__":
    sys.exit(run(settings))
