/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>

#include "cm/mad.h"
#include "port/net.h"

#define MAD_BASE_VERSION 1
#define MAD_CLASS_CM 0x07
#define MAD_CLASS_VERSION 2
#define MAD_METHOD_SEND 0x03
#define CMA_VERSION 0

const struct mad_field_row mad_field_rows[MAD_FIELD_COUNT] = {
#define MAD_FIELD(attr_, field, byte, bit_, width_)                                      \
	[MAD_##attr_##_##field] = {.name = #field,                                       \
		.attr = MAD_##attr_,                                                     \
		.bit = (byte)*8 + (bit_),                                                \
		.width = (width_)},
#include "cm/mad.def"
};

static const struct mad_attr_row {
	const char *name;
	uint8_t private_byte, private_len;
} mad_attr_rows[] = {
#define MAD_ATTR(id, name, byte, len) [id - MAD_ATTR_FIRST] = {#name, byte, len},
#include "cm/mad.def"
};
#define MAD_ATTR(id, name, byte, len)                                                    \
	static_assert(byte + len == sizeof(((struct mad *)0)->data), "ends with the MAD");
#include "cm/mad.def"
static_assert(RTE_DIM(mad_attr_rows) == MAD_ATTR_LAST - MAD_ATTR_FIRST + 1, "contiguous");

enum cm_drop
mad_check(const uint8_t *bytes, size_t len)
{
	const struct mad *mad = (const struct mad *)bytes;

	if (len != MAD_LEN)
		return CM_DROP_length;
	if (mad->base_version != MAD_BASE_VERSION)
		return CM_DROP_version;
	if (mad->mgmt_class != MAD_CLASS_CM)
		return CM_DROP_class;
	if (mad->class_version != MAD_CLASS_VERSION)
		return CM_DROP_version;
	if (mad->method != MAD_METHOD_SEND)
		return CM_DROP_method;
	return mad_attr_name(mad_attr_of(mad)) != NULL ? CM_DROP_none : CM_DROP_attribute;
}

void
mad_init(struct mad *mad, enum mad_attr attr, uint64_t tid)
{
	*mad = (struct mad){
		.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_CM,
		.class_version = MAD_CLASS_VERSION,
		.method = MAD_METHOD_SEND,
		.tid = tid,
		.attr = rte_cpu_to_be_16((uint16_t)attr),
	};
}

enum mad_attr
mad_attr_of(const struct mad *mad)
{
	return (enum mad_attr)rte_be_to_cpu_16(mad->attr);
}

const char *
mad_attr_name(unsigned attr)
{
	return attr >= MAD_ATTR_FIRST && attr <= MAD_ATTR_LAST
		       ? mad_attr_rows[attr - MAD_ATTR_FIRST].name
		       : NULL;
}

static const struct mad_field_row *
field_row(const struct mad *mad, enum mad_field field)
{
	const struct mad_field_row *row = &mad_field_rows[field];

	assert(row->attr == mad_attr_of(mad));
	return row;
}

uint64_t
mad_get(const struct mad *mad, enum mad_field field)
{
	const struct mad_field_row *row = field_row(mad, field);
	uint64_t value = 0;

	assert(row->width <= 64);
	for (unsigned bit = row->bit; bit < row->bit + row->width; bit++)
		value = value << 1 | (mad->data[bit / 8] >> (7 - bit % 8) & 1);
	return value;
}

void
mad_put(struct mad *mad, enum mad_field field, uint64_t value)
{
	const struct mad_field_row *row = field_row(mad, field);

	assert(row->width <= 64);
	for (unsigned bit = row->bit + row->width; bit-- > row->bit; value >>= 1) {
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		mad->data[bit / 8] = (uint8_t)(value & 1 ? mad->data[bit / 8] | mask
							 : mad->data[bit / 8] & ~mask);
	}
}

const uint8_t *
mad_bytes(const struct mad *mad, enum mad_field field)
{
	const struct mad_field_row *row = field_row(mad, field);

	assert(row->bit % 8 == 0);
	return mad->data + row->bit / 8;
}

void
mad_put_bytes(struct mad *mad, enum mad_field field, const uint8_t *bytes)
{
	const struct mad_field_row *row = field_row(mad, field);

	assert(row->bit % 8 == 0 && row->width % 8 == 0);
	memcpy(mad->data + row->bit / 8, bytes, row->width / 8);
}

void
mad_put_ece(struct mad *mad, const struct cm_ece *ece)
{
	if (mad_attr_of(mad) == MAD_REQ) {
		mad_put(mad, MAD_REQ_vendor_id, ece->vendor_id);
	} else {
		mad_put(mad, MAD_REP_vendor_id_high, ece->vendor_id >> 16);
		mad_put(mad, MAD_REP_vendor_id_middle, ece->vendor_id >> 8);
		mad_put(mad, MAD_REP_vendor_id_low, ece->vendor_id);
	}
	mad->modifier = rte_cpu_to_be_32(ece->options);
}

struct cm_ece
mad_get_ece(const struct mad *mad)
{
	struct cm_ece ece = {.options = rte_be_to_cpu_32(mad->modifier)};

	if (mad_attr_of(mad) == MAD_REQ)
		ece.vendor_id = (uint32_t)mad_get(mad, MAD_REQ_vendor_id);
	else
		ece.vendor_id = (uint32_t)(mad_get(mad, MAD_REP_vendor_id_high) << 16 |
					   mad_get(mad, MAD_REP_vendor_id_middle) << 8 |
					   mad_get(mad, MAD_REP_vendor_id_low));
	return ece;
}

static uint32_t
mad_be32_get(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return rte_be_to_cpu_32(word);
}

uint32_t
mad_local_id(const struct mad *mad)
{
	return mad_be32_get(mad->data);
}

uint32_t
mad_remote_id(const struct mad *mad)
{
	return mad_be32_get(mad->data + 4);
}

static const struct mad_attr_row *
attr_row(enum mad_attr attr)
{
	return &mad_attr_rows[attr - MAD_ATTR_FIRST];
}

size_t
mad_private_max(enum mad_attr attr)
{
	return attr_row(attr)->private_len;
}

const uint8_t *
mad_private(const struct mad *mad, size_t *len)
{
	const struct mad_attr_row *row = attr_row(mad_attr_of(mad));

	*len = row->private_len;
	return mad->data + row->private_byte;
}

void
mad_put_private(struct mad *mad, size_t off, const void *bytes, size_t len)
{
	const struct mad_attr_row *row = attr_row(mad_attr_of(mad));

	assert(off <= row->private_len && len <= row->private_len - off);
	if (len != 0)
		memcpy(mad->data + row->private_byte + off, bytes, len);
}

/* ---- RDMA IP CM ---- */

static void
ip_put(uint8_t at[16], const uint8_t gid[16])
{
	memcpy(at, gid, 16);
	/* An IPv4 address occupies the last four bytes; the others are zero. */
	if (gid_is_ipv4(gid))
		memset(at, 0, 12);
}

static void
ip_get(const uint8_t at[16], bool v4, uint8_t gid[16])
{
	memcpy(gid, at, 16);
	if (v4) {
		memset(gid, 0, 10);
		memset(gid + 10, 0xff, 2);
	}
}

void
cma_put(struct mad *mad, const struct cma_hdr *hdr)
{
	uint8_t bytes[CMA_HDR_LEN] = {CMA_VERSION, gid_is_ipv4(hdr->dst) ? 0x40 : 0x60,
		(uint8_t)(hdr->sport >> 8), (uint8_t)hdr->sport};

	ip_put(bytes + 4, hdr->src);
	ip_put(bytes + 20, hdr->dst);
	mad_put_private(mad, 0, bytes, sizeof(bytes));
}

int
cma_get(const struct mad *mad, struct cma_hdr *hdr)
{
	size_t len;
	const uint8_t *at = mad_private(mad, &len);
	unsigned ip = at[1] >> 4;

	if (at[0] != CMA_VERSION || (ip != 4 && ip != 6))
		return -EINVAL;
	hdr->sport = (uint16_t)(at[2] << 8 | at[3]);
	ip_get(at + 4, ip == 4, hdr->src);
	ip_get(at + 20, ip == 4, hdr->dst);
	return 0;
}
