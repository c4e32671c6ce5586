/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include "wire/hdr.h"
#include "wire/opcode.h"

#define FETH_LEN 4
#define ATOMIC_ACK_LEN 8
#define IMM_LEN 4
#define IETH_LEN 4

#define BYTES_IF(hdrs, flag, len) (((hdrs) & (flag)) ? (len) : 0)

/* Bytes before the RETH, AtomicETH, AETH or DETH. */
#define LEAD_BYTES(hdrs)                                                                 \
	(BYTES_IF(hdrs, HDR_XRCETH, sizeof(struct xrceth)) +                             \
		BYTES_IF(hdrs, HDR_FETH, FETH_LEN))

#define EXT_BYTES(hdrs)                                                                  \
	(LEAD_BYTES(hdrs) + BYTES_IF(hdrs, HDR_DETH, sizeof(struct deth)) +              \
		BYTES_IF(hdrs, HDR_RETH, sizeof(struct reth)) +                          \
		BYTES_IF(hdrs, HDR_ATOMIC, sizeof(struct atomic_eth)) +                  \
		BYTES_IF(hdrs, HDR_AETH, sizeof(struct aeth)) +                          \
		BYTES_IF(hdrs, HDR_ATOMIC_ACK, ATOMIC_ACK_LEN) +                         \
		BYTES_IF(hdrs, HDR_IMM, IMM_LEN) + BYTES_IF(hdrs, HDR_IETH, IETH_LEN) +  \
		BYTES_IF(hdrs, HDR_SETH, sizeof(struct seth)))

#define OPCODE(value, name, svc, knd, position, headers)                                 \
	static_assert(EXT_BYTES(headers) <= EXT_LEN_MAX, #name);
#include "wire/opcode.def"

#define OPCODE(value, name, svc, knd, position, headers)                                 \
	[(value)] = {                                                                    \
		.kind = OP_##knd,                                                        \
		.pos = POS_##position,                                                   \
		.service = SERVICE_##svc,                                                \
		.ext_len = EXT_BYTES(headers),                                           \
		.hdrs = (headers),                                                       \
		.main_off = LEAD_BYTES(headers),                                         \
	},
const struct op_row op_rows[256] = {
#include "wire/opcode.def"
};
