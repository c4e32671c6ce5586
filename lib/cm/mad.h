/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datagrams of the connection manager (IBA 12.6, 13.4): a MAD of 256 bytes on QP 1.
 * Fields by name, in host order; the private data and its header of RDMA IP CM (annex
 * A11).
 */
#ifndef ROCADE_CM_MAD_H
#define ROCADE_CM_MAD_H

#include "wire/gsi.h"

#define MAD_LEN GSI_LEN

enum mad_attr {
#define MAD_ATTR(id, name, private_byte, private_len) MAD_##name = id,
#include "cm/mad.def"
};
#define MAD_ATTR_FIRST MAD_REQ
#define MAD_ATTR_LAST MAD_APR

enum mad_field {
#define MAD_FIELD(attr, field, byte, bit, width) MAD_##attr##_##field,
#include "cm/mad.def"
	MAD_FIELD_COUNT
};

/* Why a message was thrown away. */
enum cm_drop {
#define CM_DROP(name, text) CM_DROP_##name,
#include "cm/cm_stats.def"
	CM_DROP_COUNT
};

struct mad {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid;  /* as on the wire: whoever answers repeats it */
	uint16_t attr; /* big-endian */
	uint16_t reserved;
	uint32_t modifier;
	uint8_t data[MAD_LEN - 24];
} PACKED;
static_assert(
	sizeof(struct mad) == MAD_LEN && offsetof(struct mad, data) == 24, "IBA 13.4.2");

/* A row of mad.def. */
struct mad_field_row {
	const char *name;
	uint8_t attr;
	uint16_t bit; /* of data */
	uint16_t width;
};
extern const struct mad_field_row mad_field_rows[MAD_FIELD_COUNT];

/* Whether bytes are a message that this reads: CM_DROP_none, or why not. */
enum cm_drop
mad_check(const uint8_t *bytes, size_t len);

/* All zero but for the header. */
void
mad_init(struct mad *mad, enum mad_attr attr, uint64_t tid);

/* The attribute of a MAD that mad_check() let pass; its name, NULL for another number. */
enum mad_attr
mad_attr_of(const struct mad *mad);
const char *
mad_attr_name(unsigned attr);

/* The field is one of the MAD's attribute (asserted), and of 64 bits at the most; a value
 * that does not fit is cut. */
uint64_t
mad_get(const struct mad *mad, enum mad_field field);
void
mad_put(struct mad *mad, enum mad_field field, uint64_t value);

/* The longer ones: where they stand. */
const uint8_t *
mad_bytes(const struct mad *mad, enum mad_field field);
void
mad_put_bytes(struct mad *mad, enum mad_field field, const uint8_t *bytes);

/* The communication id that the sender gave, and the one it addresses: what all but REQ
 * and SIDR have. */
uint32_t
mad_local_id(const struct mad *mad);
uint32_t
mad_remote_id(const struct mad *mad);

/* Private data: where it stands, and how much there is for this attribute. */
const uint8_t *
mad_private(const struct mad *mad, size_t *len);
size_t
mad_private_max(enum mad_attr attr);
/* len is no more than that (asserted). What lies behind stays zero. */
void
mad_put_private(struct mad *mad, size_t off, const void *bytes, size_t len);

/*
 * The header of RDMA IP CM: the first 36 bytes of the private data of REQ and SIDR_REQ.
 * The destination's port is part of the service id.
 */
#define CMA_HDR_LEN 36
#define CMA_REQ_PRIVATE (92 - CMA_HDR_LEN)
#define CMA_SIDR_PRIVATE (216 - CMA_HDR_LEN)

struct cma_hdr {
	uint16_t sport;
	uint8_t src[16]; /* GIDs: an IPv4 address is mapped */
	uint8_t dst[16];
};

void
cma_put(struct mad *mad, const struct cma_hdr *hdr);
/* -EINVAL: another version of the header, or of IP. */
int
cma_get(const struct mad *mad, struct cma_hdr *hdr);

/* Port spaces of RDMA IP CM (annex A11.3): a service id is 1, one of them, and a port. */
#define CMA_PS_TCP 0x06
#define CMA_PS_UDP 0x11

static inline uint64_t
cma_service_id(uint8_t port_space, uint16_t port)
{
	return UINT64_C(0x1000000) | (uint64_t)port_space << 16 | port;
}

/* One line without newline: header fields, every field that is not zero, and how much
 * private data there is. Returns what snprintf would. */
int
mad_print(char *buf, size_t size, const struct mad *mad);

#endif
