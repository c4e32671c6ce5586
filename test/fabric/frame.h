/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames under way in the fabric. */
#ifndef ROCADE_FABRIC_FRAME_H
#define ROCADE_FABRIC_FRAME_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/common.h"

#define FRAME_ROOM 4352
#define FRAME_L1_BYTES 24     /* preamble, FCS and gap: time on the wire */
#define FRAME_PAYLOAD_MIN 128 /* shorter frames are acknowledgements and the like */

struct frame {
	STAILQ_ENTRY(frame) link;
	uint64_t arrives; /* while it is on a wire */
	uint16_t len;
	uint16_t src, dst; /* hosts */
	uint16_t sport;    /* UDP source port */
	uint8_t hops;      /* switches so far */
	bool payload;      /* it carries payload */
	uint8_t data[FRAME_ROOM] LINE_ALIGNED;
};
STAILQ_HEAD(frame_list, frame);

struct frame *frame_get(void);
void frame_put(struct frame *frame);
/* Frames that were taken and not given back. */
uint32_t frames_in_use(void);

/* Reads src, dst, sport and payload from the bytes. False: no RoCEv2 packet over IPv4
 * between hosts of the fabric. */
bool frame_classify(struct frame *frame);

/* Sets the ECN field to CE if the packet is ECN-capable. Returns whether it was. */
bool frame_mark_ce(struct frame *frame);

/* The addresses of host n: a MAC and an IPv4 address end in its number. */
void host_mac(unsigned n, uint8_t mac[6]);
/* Returns the host, or -1. */
int host_of_mac(const uint8_t mac[6]);

#endif
