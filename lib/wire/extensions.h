/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Extensions of RoCEv2 that two hosts use only after both have said that they understand
 * them (docs/protocol.md 20): how hosts name them in the options of enhanced connection
 * establishment (ECE) and in queries on QP 1. */
#ifndef ROCADE_WIRE_EXTENSIONS_H
#define ROCADE_WIRE_EXTENSIONS_H

#include <stdint.h>

#define EXT_VENDOR_ID 0x02524Fu /* a locally administered OUI */

/* The options: version in bits 31 to 28, an extension in each other bit. */
#define EXT_VERSION 1u
#define EXT_VERSION_SHIFT 28
#define EXT_SACK 0x1u    /* selective acknowledgements, docs/protocol.md 20.4 */
#define EXT_ALL EXT_SACK /* those that this implementation knows */

/* The options that announce these extensions (EXT_*). */
static inline uint32_t
ext_options(uint32_t extensions)
{
	return EXT_VERSION << EXT_VERSION_SHIFT | extensions;
}

/* The extensions that the options of another host name and this implementation knows. 0 if
 * they are of another vendor or version. */
static inline uint32_t
ext_common(uint32_t vendor_id, uint32_t options)
{
	if (vendor_id != EXT_VENDOR_ID || options >> EXT_VERSION_SHIFT != EXT_VERSION)
		return 0;
	return options & EXT_ALL;
}

#endif
