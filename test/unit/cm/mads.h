/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of the connection manager in all captures. */
#ifndef ROCADE_TEST_CM_MADS_H
#define ROCADE_TEST_CM_MADS_H

#include "../wire/captures.h"
#include "cm/cm_core.h"

#define CAPTURED_MADS 96

struct captured_mad {
	const struct captured *frame;
	struct mad mad;
	uint8_t src[16], dst[16]; /* of the packet */
};
extern struct captured_mad mads[CAPTURED_MADS + 1];
extern unsigned mad_count;

/* cmocka's setup and teardown of a group: read and free the captures. */
int mads_load(void **state);
int mads_unload(void **state);

/* Fails the test when there is none. */
const struct captured_mad *mad_captured(const char *capture, unsigned number);

static inline const struct mad *
mad_of(const char *capture, unsigned number)
{
	return &mad_captured(capture, number)->mad;
}

#endif
