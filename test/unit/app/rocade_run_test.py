#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-run --start-local: a daemon that has something to say, signals, the exit status, the list
of preloaded libraries, the host's devices, options of
sanitizers, a second script of faults, programs that the library cannot be loaded into."""

import fcntl
import functools
import glob
import os
import pty
import re
import platform
import shutil
import signal
import stat
import struct
import sys
import tempfile
import termios

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../e2e/lib"))
import process  # noqa: E402
from limit import until  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run  # noqa: E402

RUN, ROCADED = sys.argv[1:3]
# In place of Rocade's library, which can be preloaded only if it is not sanitized.
with open("/proc/self/maps", encoding="ascii") as maps:
    LIBRARY = re.search(r"/\S*/libc[.-]\S+", maps.read())[0]


def command(*program, daemon=ROCADED, library=LIBRARY):
    return [RUN, "--start-local", "--library", library, "--daemon", daemon, *program]


def started(*program, daemon=ROCADED, library=LIBRARY, **more):
    return process.run(command(*program, daemon=daemon, library=library), **more)


def in_folder(function):
    """Gives a group of cases a folder, which is removed at its end."""
    @functools.wraps(function)
    def call():
        with tempfile.TemporaryDirectory() as folder:
            function(folder)
    return call


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


@in_folder
def messages(folder):
    """The daemon prints other lines before it listens, and in parts."""
    talks = script(folder, "talks", 'echo "a first line" >&2; printf "a second " >&2\n'
                   'echo line >&2; exec %s "$@"\n' % ROCADED)
    done = started("sh", "-c", "exit 7", daemon=talks)
    case("a daemon may print lines before it listens", done.returncode == 7 and
         "a first line\na second line\n" in done.stderr, done)
    many = script(folder, "many", 'head -c 5000 /dev/zero | tr "\\0" x >&2; echo >&2\n'
                  'exec %s "$@"\n' % ROCADED)
    done = started("sh", "-c", "exit 7", daemon=many)
    case("a line of the daemon may be long", done.returncode == 7 and "x" * 400 in done.stderr, done)
    fails = script(folder, "fails", 'echo "no memory" >&2; printf "for anything" >&2\n'
                   'echo "$3" >%s/socket; exit 1\n' % folder)
    done = started("true", daemon=fails)
    with open(os.path.join(folder, "socket"), encoding="ascii") as file:
        case("a daemon that does not start leaves no folder",
             not os.path.exists(os.path.dirname(file.read().strip())))
    case("what a daemon says that does not start is printed", done.returncode == 1 and
         "no memory\nfor anything" in done.stderr and "cannot start" in done.stderr, done)
    done = started("true", daemon=os.path.join(folder, "missing"))
    case("a missing daemon is named", done.returncode == 1 and "missing" in done.stderr and
         "--daemon" in done.stderr, done)
    done = started("sh", "-c", "ls /proc/self/fd | wc -l; echo $ROCADE_SOCKET")
    lines = done.stdout.splitlines()
    case("the program gets no descriptor of the launcher", lines[0] == "4", done)
    case("the folder of the socket is removed at the end",
         lines[1].startswith("/tmp/rocade-") and not os.path.exists(os.path.dirname(lines[1])), done)


def left(launcher):
    """What an ended launcher has left: its daemon, or the folder of the socket, whose path the
    program has printed. Waits until they are gone."""
    path, found = launcher.path, []

    def none_left():
        found[:] = [path] if os.path.exists(os.path.dirname(path)) else []
        for line in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(line, "rb") as file:
                    if path.encode() in file.read().split(b"\0"):
                        found.append(line)
            except OSError:
                pass
        return not found
    until(none_left)
    return found


# Prints the path of the socket, and the signal that ends it.
PROGRAM = """trap 'echo %s; exit 9' %s
echo $ROCADE_SOCKET
while :; do sleep 0.05; done"""


SIGNALS = ("HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM")


def heed():
    """In a child: ignores no signal, whatever the caller of this test ignores."""
    for name in SIGNALS:
        signal.signal(signal.Signals["SIG" + name], signal.SIG_DFL)


def launch(*program, daemon=ROCADED, **more):
    """A launcher whose program, or daemon, prints the path of the socket first."""
    launcher = Process(command(*program, daemon=daemon), apart=True, **more)
    launcher.path = launcher.wait_line().strip()
    return launcher


def launched(name, preexec_fn=heed):
    """A launcher whose program waits for a signal."""
    return launch("sh", "-c", PROGRAM % (name, name), preexec_fn=preexec_fn)


def ended(launcher):
    """Returns the exit status, and the output behind the first line; kills what does not end."""
    status, _ = launcher.finish()
    return status, launcher.text.partition("\n")[2]


@in_folder
def signals(folder):
    for name in SIGNALS:
        launcher = launched(name)
        os.kill(launcher.pid, signal.Signals["SIG" + name])
        got = ended(launcher)
        case("SIG%s to the launcher reaches the program" % name, got == (9, name + "\n"), got)
        found = left(launcher)
        case("after SIG%s nothing is left" % name, not found, found)
    launcher = Process(command("sh", "-c", "kill -KILL $$"))
    case("the status of a program that a signal ended", ended(launcher)[0] == 128 + 9)
    waits = script(folder, "waits", 'echo "$3"; exec sleep 1000\n')
    launcher = launch("true", daemon=waits, preexec_fn=heed)
    os.kill(launcher.pid, signal.SIGTERM)
    got = ended(launcher)
    found = left(launcher)
    case("a signal before the daemon listens ends the launcher, which cleans up",
         got[0] == -signal.SIGTERM and not found, (got, found))


# Prints the path of the socket, and a line for each interrupt before SIGUSR1.
COUNTER = """
import os, signal
both = (signal.SIGINT, signal.SIGUSR1)
signal.pthread_sigmask(signal.SIG_BLOCK, both)
print(os.environ["ROCADE_SOCKET"], flush=True)
while signal.sigwait(both) == signal.SIGINT:
    print("interrupt", flush=True)
"""


def terminal():
    """Ctrl-C: the kernel sends SIGINT to the launcher and the program, which gets it once."""
    main_end, other_end = pty.openpty()
    def own_terminal():
        heed()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    launcher = launch(sys.executable, "-c", COUNTER, stdin=other_end, preexec_fn=own_terminal)
    # The launcher is stopped until the program has taken its SIGINT. Then it has one, too, which it
    # would pass on before SIGUSR1.
    os.kill(launcher.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, launcher.pid, os.WSTOPPED | os.WNOWAIT)
    os.write(main_end, b"\x03")
    launcher.wait_line("interrupt")
    os.kill(launcher.pid, signal.SIGUSR1)
    os.kill(launcher.pid, signal.SIGCONT)
    got = ended(launcher)
    case("Ctrl-C reaches the program once", got == (0, "interrupt\n"), got)
    found = left(launcher)
    case("after Ctrl-C nothing is left", not found, found)


def ignored():
    """The caller ignores signals, as nohup(1) and shells without job control do."""
    def ignore():
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    done = started("sh", "-c", "exit 7", preexec_fn=ignore)
    case("the exit status where SIGCHLD is ignored", done.returncode == 7, done)
    done = started("grep", "SigIgn", "/proc/self/status", preexec_fn=ignore)
    mask = int(done.stdout.split()[1], 16)
    case("the program ignores what the caller ignores", all(
        mask >> (number - 1) & 1 for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT)), done)
    done = started("grep", "SigBlk", "/proc/self/status")
    case("the program blocks no signal", int(done.stdout.split()[1], 16) == 0, done)
    launcher = launched("TERM", preexec_fn=ignore)
    os.kill(launcher.pid, signal.SIGINT)
    os.kill(launcher.pid, signal.SIGTERM)
    got = ended(launcher)
    case("an ignored signal is not passed on", got == (9, "TERM\n"), got)


@in_folder
def preloads(folder):
    """The library is preloaded once, before what the user preloads."""
    library, longer, other = [os.path.join(folder, name) for name in ("a.so", "a.so.old", "b.so")]
    for path in (library, longer, other):
        shutil.copy(os.path.join(os.path.dirname(LIBRARY), "libdl.so.2"), path)
    for before, want in [("", library), (longer, library + ":" + longer),
                         (other + " " + longer, "%s:%s %s" % (library, other, longer)),
                         (library, library), (other + " " + library, other + " " + library),
                         (longer + ":" + library, longer + ":" + library)]:
        # A sanitizer refuses to be loaded behind other libraries.
        env = dict(os.environ, LD_PRELOAD=before, ASAN_OPTIONS="verify_asan_link_order=0")
        done = started("sh", "-c", "echo $LD_PRELOAD", library=library, env=env)
        case("preloaded with '%s'" % before.replace(folder + "/", ""),
             done.stdout == want + "\n", done)
    for name in ("a b.so", "a:b.so"):
        done = started("true", library=os.path.join(folder, name))
        case("refused: --library '%s'" % name, done.returncode == 2 and name in done.stderr and
             "blanks and colons" in done.stderr, done)


def host_devices():
    """The host's own devices are hidden by ROCADE_OFF, which keeps its other entries."""
    for option, before, want in [
            ([], "", "host-devices"), ([], "tlp", "host-devices,tlp"),
            ([], "tlp,host-devices", "tlp,host-devices"),
            (["--host-devices", "hide"], "cnp", "host-devices,cnp"),
            (["--host-devices", "show"], "", ""), (["--host-devices", "show"], "host-devices", ""),
            (["--host-devices=show"], "tlp,host-devices,cnp", "tlp,cnp"),
            (["--host-devices", "show"], "cnp,tlp", "cnp,tlp")]:
        done = process.run([RUN, *option, *command("sh", "-c", "echo $ROCADE_OFF")[1:]],
                           env=dict(os.environ, ROCADE_OFF=before))
        case("ROCADE_OFF=%s %s: %s" % (before, " ".join(option), want), done.returncode == 0 and
             done.stdout == want + "\n", done)
    done = process.run([RUN, "--host-devices", "some", "true"])
    case("refused: --host-devices some", done.returncode == 2 and
         "'some'" in done.stderr and "expected show or hide" in done.stderr, done)


def sanitizers():
    """What the run-time libraries of sanitizers read comes before the user's options."""
    def options(name, value):
        # A sanitized rocade-run reads the user's options, too.
        done = started("sh", "-c", "echo $%s" % name, env=dict(os.environ, **{name: value}))
        return done.stdout.rstrip("\n")
    off = "verify_asan_link_order=0"
    for before, want in [("", off), ("exitcode=5", off + ":exitcode=5"),
                         ("exitcode=5:" + off, "exitcode=5:" + off)]:
        got = options("ASAN_OPTIONS", before)
        case("ASAN_OPTIONS '%s'" % before, got == want, got)
    got = options("TSAN_OPTIONS", "exitcode=5")
    found = re.fullmatch('suppressions="(/.*/tsan.supp)":exitcode=5', got)
    case("TSAN_OPTIONS names a file of suppressions", found, got)
    with open(found[1] if found else "/dev/null", encoding="ascii") as file:
        lines = file.read().splitlines()
    case("the file has suppressions for the library", {
        "called_from_lib:librocade-verbs.so", "thread:librocade-verbs.so"} <= set(lines), lines)
    got = options("TSAN_OPTIONS", "print_suppressions=1")
    case("an option whose name ends in suppressions names no file", re.fullmatch(
        'suppressions="(/.*/tsan.supp)":print_suppressions=1', got), got)
    got = options("TSAN_OPTIONS", "exitcode=5:suppressions=/dev/null")
    case("a file behind other options", got == "exitcode=5:suppressions=/dev/null", got)
    got = options("TSAN_OPTIONS", "suppressions=/dev/null")
    case("the user's file of suppressions stays alone", got == "suppressions=/dev/null", got)


@in_folder
def impairment(folder):
    """The daemon gets the options as they were given. What is wrong is refused before it is started."""
    said = os.path.join(folder, "said")
    daemon = script(folder, "daemon", 'echo "$@" >%s; exit 1\n' % said)
    start = [RUN, "--start-local", "--library", LIBRARY, "--daemon", daemon]
    for more, want in [((), ""), (("--impair", "loss=1%"), " --impair loss=1%"),
                       (("--impair", "off", "--impair-seed", "7"), " --impair off --impair-seed 7")]:
        process.run(start + list(more) + ["true"])
        with open(said, encoding="ascii") as file:
            got = re.sub(r"--socket \S+", "--socket PATH", file.read())
        case("the daemon's options with '%s'" % " ".join(more),
             got == "--local --socket PATH%s\n" % want, got)
        os.unlink(said)
    for words, wrong in [
            ((*start, "--impair", "loss=1%,loss=2%"), "it names loss twice; expected off, or some of loss"),
            ((*start, "--impair", "loss=150%"), "it has '150%' for loss, which is no share from 1ppm to 100%"),
            ((*start, "--impair", "x=1%"), "it has 'x' where a kind of fault is expected"),
            ((*start, "--impair", "loss=1%", "--impair-seed", "one"),
             "invalid value 'one' for --impair-seed: expected a number from 0"),
            ((*start, "--impair-seed", "1"), "--impair-seed requires --impair"),
            ((RUN, "--impair", "loss=1%"), "--impair requires --start-local")]:
        done = process.run([*words, "true"])
        case("refused: " + " ".join(words[len(start) if len(words) > 5 else 1:]), done.returncode == 2 and
             done.stderr.count("\n") == 1 and wrong in done.stderr and not os.path.exists(said), done)
    done = process.run(command()[:-2] + ["--daemon", ROCADED, "--impair", "loss=1%,dup=0.5%", "true"])
    case("a line says that packets are impaired", done.returncode == 0 and
         "packets between clients are impaired on purpose: loss=1%,dup=0.5%, seed 1" in done.stderr, done)


@in_folder
def scripts(folder):
    """Of two scripts of faults the first one would have no effect."""
    one, two = script(folder, "one", ""), script(folder, "two", "")
    done = process.run([RUN, "--faults", one, "--faults", two, "touch", os.path.join(folder, "started")])
    case("a second script of faults is refused", done.returncode == 2 and done.stderr == "rocade-run: invalid value "
         "'%s' for --faults: expected no second script: --faults is given twice\n" % two and
         sorted(os.listdir(folder)) == ["one", "two"], done)


# Machine in the ELF header, and a program that ends with status 7.
MACHINES = {"x86_64": (62, "bf07000000 b83c000000 0f05"), "aarch64": (183, "e00080d2 a80b80d2 010000d4")}
MUSL = b"/no/ld-musl-x86_64.so.1"


def static_program(path):
    """An ELF file without PT_INTERP."""
    machine, code = MACHINES[platform.machine()]
    code = bytes.fromhex(code)
    entry, size = 0x400000 + 64 + 56, 64 + 56 + len(code)
    with open(path, "wb") as file:
        file.write(b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
            "<HHIQQQIHHHHHH", 2, machine, 1, entry, 64, 0, 0, 64, 56, 1, 0, 0, 0))
        file.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, size, size, 0x1000) + code)
    os.chmod(path, 0o755)
    return path


def linker_of(path):
    """The run-time linker that an ELF file names."""
    with open(path, "rb") as file:
        return re.search(rb"/lib[\w/-]*/ld-[\w.-]+", file.read())[0]


def with_linker(path, original, name):
    """A copy of a program that names another run-time linker, which need not exist."""
    with open(original, "rb") as file:
        content = file.read()
    old = linker_of(original)
    with open(path, "wb") as file:
        file.write(content.replace(old, name.ljust(len(old), b"\0"), 1))
    os.chmod(path, 0o755)
    return path


def with_rights(path, original):
    """A set-user-ID program of another user, and whether the kernel makes it one. Without `su`, a user other than root
    has none: the original."""
    if os.geteuid() != 0:
        path = shutil.which("su", path="/bin:/usr/bin:/sbin") or original
    else:
        shutil.copy(original, path)
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o4755)
    with open("/proc/self/status", encoding="ascii") as file:
        free = re.search(r"^NoNewPrivs:\s*0$", file.read(), re.M)
    return path, bool(free) and not os.statvfs(path).f_flag & os.ST_NOSUID and os.stat(path).st_mode & stat.S_ISUID


@in_folder
def out_of_reach(folder):
    """One line says why the library is not loaded, and the program runs."""
    true = os.path.realpath(shutil.which("true"))
    fixed = static_program(os.path.join(folder, "fixed"))
    musl = with_linker(os.path.join(folder, "musl"), true, MUSL)
    rights, kept = with_rights(os.path.join(folder, "rights"), true)
    linkers = [shutil.copy(fixed, os.path.join(folder, name)) for name in ("ld-linux-x86-64.so.2", "ld-2.31.so")]
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo, 0o755)
    scripts = [os.path.join(folder, name) for name in ("script", "of_script", "of_shell", "of_fifo")]
    for path, interpreter in zip(scripts, (fixed + " -x", " " + scripts[0], "/bin/sh", fifo)):
        with open(path, "w", encoding="ascii") as file:
            file.write("#!%s\nexit 7\n" % interpreter)
        os.chmod(path, 0o755)
    static = "is linked statically, so Rocade's library cannot be loaded"
    of_script = "is a script, and its interpreter '%s' %s" % (fixed, static)
    path = dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]))
    for name, words, status, said, env in [
            ("a static program", (fixed,), 7, "'%s' %s" % (fixed, static), None),
            ("one that PATH finds", ("fixed",), 7, "'fixed' " + static, path),
            ("a script of one", (scripts[0],), 7, of_script, None),
            ("a script of such a script", (scripts[1],), 7, of_script, None),
            ("a program with musl", (musl,), 127, "is linked with musl, and Rocade's library needs glibc", None),
            ("a set-user-ID program", (rights, "--version"), 0,
             "is set-user-ID, set-group-ID or has capabilities" if kept else "", None),
            ("a dynamic program", ("true",), 0, "", None),
            ("a script of one that is dynamic", (scripts[2],), 7, "", None),
            ("a FIFO, which is not opened,", (fifo,), 127, "", None),
            ("a script of a FIFO", (scripts[3],), 127, "", None),
            ("another run-time linker", (linkers[0],), 7, "", None),
            ("an older one", (linkers[1],), 7, "", None),
            ("the run-time linker", (linker_of(true).decode(), true), 0, "", None)]:
        done = started(*words, **({"env": env} if env else {}))
        lines = [line for line in done.stderr.splitlines()
                 if line.startswith("rocade-run: ") and "cannot run" not in line]
        case("%s: %s" % (name, said.replace(folder, "") or "no line"), done.returncode == status and
             (len(lines) == 1 and said in lines[0] if said else not lines), done)
    done = process.run([RUN, "--no-advice", *command(fixed)[1:]])
    case("--no-advice prints no such line", done.returncode == 7 and
         "rocade-run:" not in done.stderr, done)


if __name__ == "__main__":
    sys.exit(run(messages, signals, preloads, terminal, ignored, host_devices, sanitizers, impairment, scripts,
                 out_of_reach))
