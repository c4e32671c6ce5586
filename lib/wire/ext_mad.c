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

/* The data of a MAD of a vendor class of range 2. */
struct vendor_data {
	uint8_t rmpp[12];
	uint8_t reserved;
	uint8_t oui[3];
	uint32_t options;
	uint8_t unused[sizeof(((struct mad *)0)->data) - 20];
} PACKED;
static_assert(
	sizeof(struct vendor_data) == sizeof(((struct mad *)0)->data), "IBA 16.5.1");

static const struct vendor_data *
vendor_data(const struct mad *m)
{
	return (const struct vendor_data *)m->data;
}

static bool
is_ours(const struct mad *m)
{
	return m->class_version == CLASS_VERSION &&
	       m->attr == RTE_BE16(ATTR_EXTENSIONS) &&
	       be24_get(vendor_data(m)->oui) == EXT_VENDOR_ID;
}

enum ext_mad_kind
ext_mad_read(const uint8_t bytes[GSI_LEN], struct ext_mad *mad)
{
	const struct mad *m = (const struct mad *)bytes;
	const struct vendor_data *data = vendor_data(m);
	uint32_t extensions =
		ext_common(be24_get(data->oui), rte_be_to_cpu_32(data->options));

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
	struct vendor_data data = {
		.options = rte_cpu_to_be_32(ext_options(mad->extensions))};
	struct mad m = {
		.base_version = BASE_VERSION,
		.mgmt_class = EXT_MAD_CLASS,
		.class_version = CLASS_VERSION,
		.method = kind == EXT_MAD_QUERY ? METHOD_GET : METHOD_GET_RESP,
		.tid = rte_cpu_to_be_64(mad->tid),
		.attr = RTE_BE16(ATTR_EXTENSIONS),
	};

	be24_put(data.oui, EXT_VENDOR_ID);
	memcpy(m.data, &data, sizeof(data));
	memcpy(bytes, &m, GSI_LEN);
}
