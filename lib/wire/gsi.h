/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1, the general services interface (IBA 13.5): datagrams of 256 bytes between
 * management agents. */
#ifndef ROCADE_WIRE_GSI_H
#define ROCADE_WIRE_GSI_H

#include "wire/build.h"
#include "wire/parse.h"

#define GSI_QPN 1
#define GSI_QKEY 0x80010000u
#define GSI_LEN 256

/* What it is for a datagram to be an agent's: its addresses and its ICRC are the caller's
 * to look at. */
enum drop_reason
gsi_admit(const struct pkt_view *view);

/* addr: the way and what is the port's; the rest of it is written here. */
void
gsi_frame(struct pkt *frame, struct path_addr *addr, uint32_t psn,
	const uint8_t bytes[GSI_LEN]);

#endif
