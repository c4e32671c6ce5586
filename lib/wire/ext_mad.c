/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <string.h>

#include <rte_byteorder.h>

#include "wire/ext_mad.h"
#include "wire/extensions.h"

#define BASE_VERSION 1
#define CLASS_VERSION 1
#define METHOD_GET 0x01
#define METHOD_GET_RESP 0x81
#define ATTR_EXTENSIONS 0x0001

struct ext_mad_bytes {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid;
	uint16_t attr;
	uint16_t reserved;
	uint32_t modifier;
	uint8_t rmpp[12];
	uint8_t reserved_vendor;
	uint8_t oui[3];
	uint32_t options;
	uint8_t unused[GSI_LEN - 44];
} PACKED;
static_assert(sizeof(struct ext_mad_bytes) == GSI_LEN &&
		      offsetof(struct ext_mad_bytes, rmpp) == 24 &&
		      offsetof(struct ext_mad_bytes, options) == 40,
	"IBA 16.5.1");

static bool
is_ours(const struct ext_mad_bytes *m)
{
	return m->class_version == CLASS_VERSION &&
	       m->attr == RTE_BE16(ATTR_EXTENSIONS) && be24_get(m->oui) == EXT_VENDOR_ID;
}

enum ext_mad_kind
ext_mad_read(const uint8_t bytes[GSI_LEN], struct ext_mad *mad)
{
	const struct ext_mad_bytes *m = (const struct ext_mad_bytes *)bytes;
	uint32_t extensions = ext_common(be24_get(m->oui), rte_be_to_cpu_32(m->options));

	if (m->base_version != BASE_VERSION || m->mgmt_class != EXT_MAD_CLASS)
		return EXT_MAD_OTHER;
	mad->tid = rte_be_to_cpu_64(m->tid);
	if (m->method == METHOD_GET_RESP) {
		/* Linux has no agent for the class. It returns the query with a status (IBA
		 * 13.4.7), as a host with an agent of another vendor would. */
		mad->extensions = m->status == 0 && is_ours(m) ? extensions : 0;
		return EXT_MAD_ANSWER;
	}
	if (m->method != METHOD_GET || !is_ours(m))
		return EXT_MAD_OTHER;
	mad->extensions = extensions;
	return EXT_MAD_QUERY;
}

void
ext_mad_write(uint8_t bytes[GSI_LEN], enum ext_mad_kind kind, const struct ext_mad *mad)
{
	struct ext_mad_bytes m = {
		.base_version = BASE_VERSION,
		.mgmt_class = EXT_MAD_CLASS,
		.class_version = CLASS_VERSION,
		.method = kind == EXT_MAD_QUERY ? METHOD_GET : METHOD_GET_RESP,
		.tid = rte_cpu_to_be_64(mad->tid),
		.attr = RTE_BE16(ATTR_EXTENSIONS),
		.options = rte_cpu_to_be_32(ext_options(mad->extensions)),
	};

	be24_put(m.oui, EXT_VENDOR_ID);
	memcpy(bytes, &m, GSI_LEN);
}
