/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of which packets were written: each is an interface of the file. */
#ifndef DUMP_INTERFACES_H
#define DUMP_INTERFACES_H

#include <stdint.h>
#include <stdio.h>

#include <rocade/dump.h>

struct interface {
	uint32_t client;
	uint64_t written; /* packets */
};

struct interfaces {
	struct interface *rows;
	uint32_t count;
};

/* Returns the index of the client's interface, which it writes if it is new; UINT32_MAX: no
 * memory. dump: knows the client's name. */
uint32_t interface_of(struct interfaces *all, FILE *to, uint32_t client,
	struct rocade_dump *dump, uint32_t snap);

#endif
