# SPDX-License-Identifier: BSD-3-Clause
"""The control connection between both ends: a line of JSON for each message.

The channel is not authenticated. So an end takes from the other one only the fields that a schema
names, of the types and ranges that it names. What arrives is never executed, and never part of a
command."""

import json
import re
import select
import socket
import time

from program import Failed

LINE_MAX = 32768  # bytes of a message
TEXT_MAX = 300  # characters of a sentence
ITEMS_MAX = 64  # of a list, or of a map of counters
IDENTIFIER = re.compile(r"[a-z0-9_]{1,40}\Z")
# Of the protocol. Both ends must have the same.
FORMAT = 1


class Gone(Failed):
    """The other end has ended or does not answer."""


class Unexpected(Failed):
    """The other end has sent something that this one does not accept."""


# ---- Checks of a value. Each returns the value, or raises Unexpected. ----

def number(low=0, high=1 << 62):
    def check(value):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or \
                not low <= value <= high:  # NaN is not in the range either
            raise Unexpected("a number from %g to %g was expected" % (low, high))
        return value
    return check


def text(value):
    """Printable ASCII. Characters that could be taken for Markdown or HTML become '?'."""
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise Unexpected("a text of at most %d characters was expected" % TEXT_MAX)
    return re.sub(r"[^A-Za-z0-9 .,:;+()@/%=_'-]", "?", value)


def flag(value):
    if not isinstance(value, bool):
        raise Unexpected("true or false was expected")
    return value


def one_of(*values):
    def check(value):
        if not isinstance(value, (str, int)) or isinstance(value, bool) or value not in values:
            raise Unexpected("one of %s was expected" % ", ".join(str(v) for v in values))
        return value
    return check


def optional(check):
    return lambda value: None if value is None else check(value)


def list_of(check):
    def checked(value):
        if not isinstance(value, list) or len(value) > ITEMS_MAX:
            raise Unexpected("a list of at most %d items was expected" % ITEMS_MAX)
        return [check(item) for item in value]
    return checked


def counters(value):
    if not isinstance(value, dict) or len(value) > ITEMS_MAX or \
            not all(IDENTIFIER.match(key) for key in value):
        raise Unexpected("at most %d counters were expected" % ITEMS_MAX)
    return {key: number()(count) for key, count in value.items()}


def record(schema):
    """A map with exactly the fields of the schema."""
    def check(value):
        if not isinstance(value, dict) or set(value) != set(schema):
            raise Unexpected("the fields %s were expected" % ", ".join(sorted(schema)))
        out = {}
        for key, field in schema.items():
            try:
                out[key] = field(value[key])
            except Unexpected as error:
                raise Unexpected("%s: %s" % (key, error)) from None
        return out
    return check


# ---- The connection ----

class Channel:
    def __init__(self, connection):
        self.socket = connection
        self.socket.setblocking(False)
        # A host that is switched off sends no FIN: keepalive finds it within about half a minute.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5),
                              (socket.TCP_KEEPCNT, 4), (socket.TCP_USER_TIMEOUT, 30000)):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
        self.received = b""

    def send(self, message, timeout_s=10):
        data = json.dumps(message).encode() + b"\n"
        end = time.monotonic() + timeout_s
        while data:
            left = end - time.monotonic()
            if left <= 0 or not select.select([], [self.socket], [], left)[1]:
                raise Gone("the other end takes no message")
            try:
                data = data[self.socket.send(data):]
            except BlockingIOError:
                pass
            except OSError as error:
                raise Gone("the other end has ended (%s)" % error.strerror) from None

    def _read(self, timeout_s):
        """Reads what has arrived. Returns False if nothing has within the time."""
        if not select.select([self.socket], [], [], max(timeout_s, 0))[0]:
            return False
        try:
            data = self.socket.recv(4096)
        except BlockingIOError:
            return False
        except OSError as error:
            raise Gone("the other end has ended (%s)" % error.strerror) from None
        if not data:
            raise Gone("the other end has ended")
        self.received += data
        if len(self.received) > LINE_MAX:
            raise Unexpected("a message of more than %d bytes" % LINE_MAX)
        return True

    def receive(self, timeout_s):
        """Returns the next message, a map."""
        end = time.monotonic() + timeout_s
        while b"\n" not in self.received:
            if not self._read(end - time.monotonic()) and time.monotonic() >= end:
                raise Gone("the other end has not answered within %d s" % timeout_s)
        line, self.received = self.received.split(b"\n", 1)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise Unexpected("a message that is no JSON") from None
        if not isinstance(message, dict):
            raise Unexpected("a message that is no JSON object")
        return message

    def check(self):
        """Raises Gone if the other end has ended. A message that has arrived stays for receive()."""
        while self._read(0):
            pass

    def close(self):
        self.socket.close()


def endpoint(value):
    """Splits HOST:PORT or [HOST]:PORT. Raises ValueError."""
    match = re.match(r"(?:\[([^\]]+)\]|([^:\[\]]+)):(\d{1,5})\Z", value)
    if not match or not 0 < int(match[3]) < 65536:
        raise ValueError("expected HOST:PORT")
    return match[1] or match[2], int(match[3])


def resolve(host, port):
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise Failed("cannot resolve %s: %s" % (host, error.strerror)) from None


def listen(host, port):
    """Listens on this address only."""
    family, kind, _, _, address = resolve(host, port)
    listener = socket.socket(family, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise Failed("cannot listen on %s port %d: %s. Give left an address of its own host" % (
            host, port, error.strerror)) from None
    listener.listen(4)
    return listener


def accept(listener, timeout_s):
    """Returns a channel, or None if no peer has connected in time."""
    if not select.select([listener], [], [], max(timeout_s, 0))[0]:
        return None
    try:
        return Channel(listener.accept()[0])
    except OSError:
        return None  # it has gone


def connect(host, port, timeout_s):
    """Connects to left, which may not listen yet."""
    family, kind, _, _, address = resolve(host, port)
    end = time.monotonic() + timeout_s
    while True:
        connection = socket.socket(family, kind)
        connection.settimeout(min(10, max(end - time.monotonic(), 1)))
        try:
            connection.connect(address)
            return Channel(connection)
        except OSError as error:
            connection.close()
            if time.monotonic() > end:
                raise Failed("cannot connect to %s port %d within %d s: %s. Start left first, or "
                             "open this TCP port in its firewall" % (
                                 host, port, timeout_s, error.strerror or error)) from None
        time.sleep(0.2)
