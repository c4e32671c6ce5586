/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of all captures in test/captures, in the order of their names. */
#ifndef ROCADE_TEST_WIRE_CAPTURES_H
#define ROCADE_TEST_WIRE_CAPTURES_H

#include <stddef.h>
#include <stdint.h>

#define CAPTURED_FRAMES 1497

struct captured {
	char capture[64];
	unsigned number; /* from 1 */
	const uint8_t *data;
	size_t len;
	uint16_t tci; /* the whole tag: these captures carry priority 3 */
	uint16_t vlan;
	size_t ip_off;
};

extern struct captured captured[CAPTURED_FRAMES];
extern size_t captured_count;

/* 0, or -1 with a line on stderr: a file that cannot be read, or more frames than there
 * are. */
int
captures_load(const char *folder);
void
captures_unload(void);
/* Of a group of cases, with the folder of the tree. */
int
captures_setup(void **state);
int
captures_teardown(void **state);

#endif
