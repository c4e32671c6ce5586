/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets with PKT_RX_HEADERS: with a copy of their headers. */
#ifndef ROCADE_TEST_HEADERS_H
#define ROCADE_TEST_HEADERS_H

#include <stdlib.h>
#include <string.h>

#include "wire/pkt_parse.h"

/* Returns the copy, which the caller frees. The frame is not shorter than PARSE_HEADERS. */
static inline struct pkt_headers *
headers_make(const uint8_t *frame)
{
	struct pkt_headers *headers = malloc(sizeof(*headers));

	assert_non_null(headers);
	memcpy(headers->bytes, frame, PARSE_HEADERS);
	headers->frame = frame;
	return headers;
}

/* The packet comes with this copy. */
static inline void
headers_use(struct pkt *pkt, struct pkt_headers *headers)
{
	pkt->data = headers->bytes;
	pkt->flags |= PKT_RX_HEADERS;
}

#endif
