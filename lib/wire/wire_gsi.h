/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* QP 1, the general services interface (IBA 13.5): datagrams of 256 bytes between
 * management agents. */
#ifndef ROCADE_WIRE_GSI_H
#define ROCADE_WIRE_GSI_H

#include "wire/build.h"
#include "wire/pkt_parse.h"

#define GSI_QPN 1
#define GSI_QKEY 0x80010000u
#define GSI_LEN 256

/* A management datagram, MAD. */
struct mad {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid;  /* as on the wire: a response repeats it */
	uint16_t attr; /* big-endian */
	uint16_t reserved;
	uint32_t modifier;
	uint8_t data[GSI_LEN - 24];
} PACKED;
static_assert(
	sizeof(struct mad) == GSI_LEN && offsetof(struct mad, data) == 24, "IBA 13.4.2");

struct gsi_msg {
	uint8_t sgid[16]; /* the port's address, in both directions */
	uint8_t dgid[16]; /* the peer's, in both directions */
	uint8_t bytes[GSI_LEN];
	/* only of a message to send: it answers the peer, see net_resolve_answer() */
	bool answer;
};

/* Checks that a datagram is one between management agents: returns DROP_none, or why it
 * is not. The caller checks its addresses and ICRC. */
enum drop_reason gsi_admit(const struct pkt_view *view);

/* Builds a frame with the message. addr: the caller sets GIDs, MACs, VLAN and offload;
 * this function fills in the rest. */
void gsi_frame_build(struct pkt *frame, struct path_addr *addr, uint32_t psn,
	const uint8_t bytes[GSI_LEN]);

#endif
