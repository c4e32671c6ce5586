/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet that is expected: as one that came before, but for PSN, payload and ICRC. Whether a
 * frame is that packet is one comparison and the ICRC over what is left, where parsing looks at
 * each field, and at none of them again for what QP it is.
 */
#ifndef ROCADE_WIRE_EXPECT_H
#define ROCADE_WIRE_EXPECT_H

#include "wire/pkt_parse.h"

#define EXPECT_HEAD (14 + 4 + 40 + 8 + 12) /* to the end of the BTH */

struct expect {
	uint8_t head[EXPECT_HEAD];
	uint16_t len; /* of the frame; 0: nothing is expected */
	uint32_t flags;
	uint32_t crc;         /* of all before the payload */
	struct pkt_view view; /* of it; points into head */
};

/* From now on one like pkt, of which view is what pkt_parse() or pkt_parse_headers() say, without
 * extended headers (asserted); with this PSN. */
void expect_like(struct expect *x, const struct pkt *pkt, const struct pkt_view *view,
	uint32_t psn);

/* As expected so far, with this PSN. */
void expect_psn(struct expect *x, uint32_t psn);

/* If this is it: its payload. Else NULL. */
const uint8_t *expect_match(const struct expect *x, const struct pkt *pkt);

#endif
