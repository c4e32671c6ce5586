/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of all captures in test/captures, in the order of their names. */
#ifndef ROCADE_TEST_WIRE_CAPTURES_H
#define ROCADE_TEST_WIRE_CAPTURES_H

#include <stddef.h>
#include <stdint.h>

#define CAPTURED_FRAMES 2014

struct captured {
	char capture[64];
	unsigned number; /* starts at 1 */
	const uint8_t *data;
	size_t len;
	uint16_t tci; /* the whole TCI: these captures have priority 3 */
	uint16_t vlan;
	size_t ip_off;
};

extern struct captured captured[CAPTURED_FRAMES];
extern size_t captured_count;

/* Returns 0, or -1 after a line on stderr: a file cannot be read, or there are more
 * frames than CAPTURED_FRAMES. */
int captures_load(const char *folder);
void captures_unload(void);
/* Setup and teardown of a group of cases; loads the captures of the source tree. */
int captures_setup(void **state);
int captures_teardown(void **state);

#endif
