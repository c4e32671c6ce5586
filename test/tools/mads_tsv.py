#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the fields that tshark decodes in CM MADs of captures, as expected values for the tests of
lib/cm: mads_tsv.py FILE.pcap... > mads.tsv. A line is capture, frame, message, field (its name in
lib/cm/mad.def), value in hexadecimal. tshark decodes neither MRA nor SIDR, and decodes flow label
and packet rate of a REQ wrongly."""

import ipaddress
import os
import subprocess
import sys

PATH = {"locallid": "local_lid", "remotelid": "remote_lid", "localgid": "local_gid",
        "remotegid": "remote_gid", "localgid_ipv4": "local_gid", "remotegid_ipv4": "remote_gid",
        "tfcclass": "tclass", "hoplim": "hop_limit", "sl": "sl",
        "subnetlocal": "subnet_local", "localacktout": "ack_timeout"}
FIELDS = {
    "req": {"cm.req": "local_id", "cm.req.serviceid": "service_id", "cm.req.localcaguid": "ca_guid",
            "cm.req.localqkey": "local_qkey", "cm.req.localqpn": "local_qpn",
            "cm.req.responderres": "responder_resources", "cm.req.localeecn": "local_eecn",
            "cm.req.initdepth": "initiator_depth", "cm.req.remoteeecn": "remote_eecn",
            "cm.req.remoteresptout": "remote_timeout", "cm.req.transpsvctype": "transport",
            "cm.req.e2eflowctrl": "flow_control", "cm.req.startpsn": "starting_psn",
            "cm.req.localresptout": "local_timeout", "cm.req.retrcount": "retry_count",
            "cm.req.pkey": "pkey", "cm.req.pppmtu": "path_mtu", "cm.req.rdcexist": "rdc_exists",
            "cm.req.rnrretrcount": "rnr_retry_count", "cm.req.maxcmretr": "max_cm_retries",
            "cm.req.srq": "srq", "cm.req.ext_transport": "extended_transport",
            "cm.req.ip_cm.sport": "sport", "cm.req.ip_cm.sip4": "src", "cm.req.ip_cm.dip4": "dst",
            **{"cm.req.prim_" + k: "primary_" + v for k, v in PATH.items()}},
    "rep": {"cm.rep": "local_id", "cm.rep.remotecommid": "remote_id",
            "cm.rep.localqkey": "local_qkey", "cm.rep.localqpn": "local_qpn",
            "cm.rep.localeecn": "local_eecn", "cm.rep.startpsn": "starting_psn",
            "cm.rep.respres": "responder_resources", "cm.rep.initdepth": "initiator_depth",
            "cm.rep.tgtackdelay": "target_ack_delay", "cm.rep.failoveracc": "failover",
            "cm.rep.e2eflowctrl": "flow_control", "cm.rep.rnrretrcount": "rnr_retry_count",
            "cm.rep.srq": "srq", "cm.rep.localcaguid": "ca_guid"},
    "rtu": {"cm.rtu.localcommid": "local_id", "cm.rtu.remotecommid": "remote_id"},
    "rej": {"cm.rej.localcommid": "local_id", "cm.rej.remotecommid": "remote_id",
            "cm.rej.msgrej": "message", "cm.rej.rejinfolen": "info_len",
            "cm.rej.reason": "reason"},
    "dreq": {"cm.dreq.localcommid": "local_id", "cm.dreq.remotecommid": "remote_id",
             "cm.req.remoteqpneecn": "remote_qpn"},
    "drep": {"cm.drsp.localcommid": "local_id", "cm.drsp.remotecommid": "remote_id"},
}
ATTRS = {0x10: "req", 0x12: "rej", 0x13: "rep", 0x14: "rtu", 0x15: "dreq", 0x16: "drep"}


def number(text):
    if "." in text:
        return "%x" % (0xffff << 32 | int(ipaddress.IPv4Address(text)))
    if ":" in text:
        return "%x" % int(ipaddress.IPv6Address(text))
    return "%x" % int(text, 0)


def main():
    columns = sorted({f for fields in FIELDS.values() for f in fields})
    print("# SPDX-License-Identifier: BSD-3-Clause")
    for path in sys.argv[1:]:
        name = os.path.basename(path).removesuffix(".pcap")
        args = ["tshark", "--disable-protocol", "rpcordma", "-r", path, "-T", "fields",
                "-E", "occurrence=f", "-e", "infiniband.mad.attributeid"]
        for column in columns:
            args += ["-e", "infiniband." + column]
        run = subprocess.run(args, check=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
        for frame, line in enumerate(run.stdout.splitlines(), 1):
            values = line.split("\t")
            attr = ATTRS.get(int(values[0], 0)) if values[0] else None
            for column, value in zip(columns, values[1:]):
                if attr and value and column in FIELDS[attr]:
                    print(name, frame, attr.upper(), FIELDS[attr][column], number(value),
                          sep="\t")


if __name__ == "__main__":
    main()
