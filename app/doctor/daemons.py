# SPDX-License-Identifier: BSD-3-Clause
"""The daemons of this host: their options, from their command line and configuration file."""

import glob
import ipaddress
import os
import re
from collections import namedtuple

from hostinfo import interface_of_vdev, read

# Kinds of ports whose interface the kernel has, and whose frames the kernel sees, too.
KERNEL_KINDS = ("net_af_packet", "net_af_xdp", "net_tap")
EAL_KEYS = {"m": "-m", "a": "-a", "allow": "-a", "vdev": "--vdev", "no-huge": "--no-huge"}
# With values: the others stand alone.
EAL_VALUES = ("-m", "-a", "--vdev")

# kind: local, none (not known), pci, or the driver of a virtual device. device: PCI address or
# arguments of the virtual device. pid, uid: None if the daemon does not run. space: its network
# namespace, None if this user may not know.
Daemon = namedtuple("Daemon", "pid uid space kind device interface memory_mb huge options")

DEFAULT_MB = 64  # of EAL, with hugepages


def config_words(text):
    """Returns EAL arguments and options of a configuration file, as words of a command line."""
    section, eal, options = "", [], []
    for line in (text or "").splitlines():
        line = line.split("#")[0].strip()
        if re.fullmatch(r"\[\w+\]", line):
            section = line[1:-1]
        elif "=" in line:
            key, value = (part.strip() for part in line.split("=", 1))
            if section == "eal":
                name = EAL_KEYS.get(key, "-" + key if len(key) == 1 else "--" + key)
                eal += [name, value] if value else [name]
            elif not (key == "local" and value == "no"):
                options += ["--" + key] if key == "local" else ["--" + key, value]
    return eal, options


def split_words(words):
    """Returns EAL arguments and options of rocaded's command line."""
    if "--" in words:
        at = words.index("--")
        return words[:at], words[at + 1:]
    return [], words


def values(words, *names):
    """Returns the values of an option: "--name value", "--name=value" or, of one letter,
    "-nvalue"."""
    found = []
    for number, word in enumerate(words):
        for name in names:
            if word == name and number + 1 < len(words):
                found.append(words[number + 1])
            elif name.startswith("--") and word.startswith(name + "="):
                found.append(word[len(name) + 1:])
            elif not name.startswith("--") and word.startswith(name) and len(word) > 2:
                found.append(word[2:])
    return found


def last(words, name, default=None):
    return (values(words, name) or [default])[-1]


def parse(words, config="", pid=None, uid=None, space=None):
    """Returns the daemon of a command line without its first word, and of its configuration."""
    eal, options = split_words(words)
    more_eal, more_options = config_words(config)
    eal, options = more_eal + eal, more_options + options
    vdevs, devices = values(eal, "--vdev"), values(eal, "-a", "--allow")
    kind, device = "none", ""
    if "--local" in options:
        kind = "local"
    elif vdevs:
        device = vdevs[0]
        kind = re.sub(r"\d*(,.*)?\Z", "", device)
    elif devices:
        device, kind = devices[0].split(",")[0], "pci"
    memory = last(eal, "-m", "")
    return Daemon(pid, uid, space, kind, device, interface_of_vdev(device),
                  int(memory) if memory.isdigit() else DEFAULT_MB,
                  kind not in ("local", "none") and "--no-huge" not in eal, options)


def option(daemon, name, default=None):
    return last(daemon.options, "--" + name, default) if daemon else default


def networks(daemon):
    """Returns the addresses with their prefixes that the daemon was started with."""
    found = []
    for text in (option(daemon, "address") or "").split(","):
        try:
            found.append(ipaddress.ip_interface(text.strip()))
        except ValueError:
            pass
    return found


def gateway(daemon, version):
    text = option(daemon, "gateway%d" % version)
    try:
        return ipaddress.ip_address(text) if text else None
    except ValueError:
        return None


def config_of(words, folder):
    """Returns the text of the configuration file that a command line names."""
    path = last(split_words(words)[1], "--config")
    return read(os.path.join(folder, path), "") if path else ""


def space_of(process):
    """Returns the network namespace of a process, given its folder in /proc; None: not allowed."""
    try:
        return os.readlink(os.path.join(process, "ns/net"))
    except OSError:
        return None


def running(proc="/proc"):
    """Returns the daemons that run in this host's process namespace."""
    found = []
    for folder in glob.glob(os.path.join(proc, "[0-9]*")):
        if read(os.path.join(folder, "comm")) != "rocaded":
            continue
        words = (read(os.path.join(folder, "cmdline"), "") or "").split("\0")[1:]
        status = read(os.path.join(folder, "status"), "") or ""
        uid = re.search(r"^Uid:\s+(\d+)", status, re.M)
        found.append(parse([word for word in words if word],
                           config_of(words, os.path.join(folder, "cwd")),
                           int(os.path.basename(folder)), int(uid[1]) if uid else None,
                           space_of(folder)))
    return sorted(found, key=lambda daemon: daemon.pid)
