#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the header fields that tshark decodes in captures, a line per frame, as expected values
for the tests of lib/wire: headers_tsv.py FILE.pcap... > headers.tsv. Columns: capture, frame, UDP
length, and FIELDS in hexadecimal; - where tshark has no value (it does not decode CNP, XRC, FLUSH
and ATOMIC WRITE)."""

import os
import subprocess
import sys

FIELDS = """bth.opcode bth.destqp bth.psn bth.a bth.se bth.padcnt bth.p_key aeth.syndrome
    aeth.msn reth.va reth.r_key reth.dmalen immdt ieth deth.q_key deth.srcqp
    atomiceth.swapdt atomiceth.cmpdt atomicacketh.origremdt""".split()
BYTES = ("immdt", "ieth")


def number(field, text):
    if text == "":
        return "-"
    return "%x" % int(text, 16 if field in BYTES else 0)


def main():
    print("#capture frame udp.length " + " ".join(FIELDS))
    for path in sys.argv[1:]:
        name = os.path.basename(path).removesuffix(".pcap")
        args = ["tshark", "--disable-protocol", "rpcordma", "-r", path, "-T", "fields",
                "-E", "occurrence=f", "-e", "udp.length"]
        for field in FIELDS:
            args += ["-e", "infiniband." + field]
        run = subprocess.run(args, check=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
        for frame, line in enumerate(run.stdout.splitlines(), 1):
            values = line.split("\t")
            print(name, frame, values[0],
                  *[number(f, v) for f, v in zip(FIELDS, values[1:])])


if __name__ == "__main__":
    main()
