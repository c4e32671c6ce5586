/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the connection manager (IBA 12.6, 13.4): MADs of 256 bytes on QP 1.
 * Functions read and write a field by name in host byte order, the private data, and the
 * header of RDMA IP CM in the private data (annex A11). */
#ifndef ROCADE_CM_MAD_H
#define ROCADE_CM_MAD_H

#include "wire/wire_gsi.h"

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

/* Why a message was dropped. */
enum cm_drop {
#define CM_DROP(name, text) CM_DROP_##name,
#include "cm/cm_stats.def"
	CM_DROP_COUNT
};

/* A row of mad.def. */
struct mad_field_row {
	const char *name;
	uint8_t attr;
	uint16_t bit; /* of data */
	uint16_t width;
};
extern const struct mad_field_row mad_field_rows[MAD_FIELD_COUNT];

/* Returns CM_DROP_none if the bytes are a CM message with a known attribute, else why the
 * message is dropped. */
enum cm_drop mad_check(const uint8_t *bytes, size_t len);

/* Sets the header; everything else is zero. */
void mad_init(struct mad *mad, enum mad_attr attr, uint64_t tid);

/* mad_attr_of() is for a MAD that passed mad_check(). mad_attr_name() returns NULL for an
 * unknown number. */
enum mad_attr mad_attr_of(const struct mad *mad);
const char *mad_attr_name(unsigned attr);

/* True for a message that opens a connection. Every other one answers the other host, or
 * belongs to a connection. */
static inline bool
mad_opens(const struct mad *mad)
{
	enum mad_attr attr = mad_attr_of(mad);

	return attr == MAD_REQ || attr == MAD_SIDR_REQ;
}

/* The field must belong to the MAD's attribute (asserted) and have at most 64 bits.
 * mad_put() truncates a value that does not fit. */
uint64_t mad_get(const struct mad *mad, enum mad_field field);
void mad_put(struct mad *mad, enum mad_field field, uint64_t value);

/* For fields longer than 64 bits. mad_bytes() returns a pointer into the MAD. */
const uint8_t *mad_bytes(const struct mad *mad, enum mad_field field);
void mad_put_bytes(struct mad *mad, enum mad_field field, const uint8_t *bytes);

/* Options of a QP for enhanced connection establishment (docs/protocol.md 20.2). */
struct cm_ece {
	uint32_t vendor_id; /* up to CM_VENDOR_ID_MAX; 0: the QP has no options */
	uint32_t options;
};
#define CM_VENDOR_ID_MAX 0xFFFFFFu

/* For a REQ or REP only (asserted). */
void mad_put_ece(struct mad *mad, const struct cm_ece *ece);
struct cm_ece mad_get_ece(const struct mad *mad);

/* The sender's communication ID and the receiver's. All messages but SIDR have the first;
 * all but REQ and SIDR have the second. */
uint32_t mad_local_id(const struct mad *mad);
uint32_t mad_remote_id(const struct mad *mad);

/* Returns the address of the private data, and its size for this attribute. */
const uint8_t *mad_private(const struct mad *mad, size_t *len);
size_t mad_private_max(enum mad_attr attr);
/* Copies len bytes to offset off of the private data; they must fit (asserted). The other
 * bytes stay as they are: zero after mad_init(). */
void mad_put_private(struct mad *mad, size_t off, const void *bytes, size_t len);

/* The header of RDMA IP CM: the first 36 bytes of the private data of REQ and SIDR_REQ.
 * The destination's port is part of the service ID. */
#define CMA_HDR_LEN 36
#define CMA_REQ_PRIVATE (92 - CMA_HDR_LEN)
#define CMA_SIDR_PRIVATE (216 - CMA_HDR_LEN)

struct cma_hdr {
	uint16_t sport;
	uint8_t src[16]; /* GIDs: an IPv4 address is mapped */
	uint8_t dst[16];
};

void cma_put(struct mad *mad, const struct cma_hdr *hdr);
/* Returns 0, or -EINVAL for an unknown version of the header or of IP. */
int cma_get(const struct mad *mad, struct cma_hdr *hdr);

/* Port spaces of RDMA IP CM (annex A11.3). A service ID consists of the byte 1, the port
 * space and the port. */
#define CMA_PS_TCP 0x06
#define CMA_PS_UDP 0x11

static inline uint64_t
cma_service_id(uint8_t port_space, uint16_t port)
{
	return UINT64_C(0x1000000) | (uint64_t)port_space << 16 | port;
}

#endif
