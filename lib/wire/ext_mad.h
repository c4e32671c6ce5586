/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The query on QP 1 by which a host finds out which extensions another host understands, and
 * its answer (docs/protocol.md 20.3): MADs of a vendor class (IBA 13.4, 16.5). */
#ifndef ROCADE_WIRE_EXT_MAD_H
#define ROCADE_WIRE_EXT_MAD_H

#include <stdbool.h>

#include "wire/wire_gsi.h"

#define EXT_MAD_CLASS 0x32 /* vendor class of range 2: the OUI names the vendor */

enum ext_mad_kind {
	EXT_MAD_QUERY,
	EXT_MAD_ANSWER,
	EXT_MAD_OTHER, /* neither, or not well-formed */
};

struct ext_mad {
	uint64_t tid; /* transaction ID: the answer repeats the query's */
	/* EXT_*: of the sender of a query; of an answer: those that both ends understand, 0 if
	 * it reports an error or is of another vendor */
	uint32_t extensions;
};

static inline bool
ext_mad_is_class(const uint8_t bytes[GSI_LEN])
{
	return bytes[1] == EXT_MAD_CLASS;
}

/* Fills in *mad, unless it returns EXT_MAD_OTHER. */
enum ext_mad_kind ext_mad_read(const uint8_t bytes[GSI_LEN], struct ext_mad *mad);
/* kind: EXT_MAD_QUERY or EXT_MAD_ANSWER. */
void ext_mad_write(
	uint8_t bytes[GSI_LEN], enum ext_mad_kind kind, const struct ext_mad *mad);

#endif
