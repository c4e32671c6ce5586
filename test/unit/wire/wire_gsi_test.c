/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of QP 1: what gsi_frame_build() builds is admitted, other datagrams are not. */

#include "case.h"
#include "frame.h"
#include "wire/wire_gsi.h"

#define FRAME_MAX (PATH_HDR_MAX + 12 + 8 + GSI_LEN + 4)

/* Builds a datagram in a buffer of exactly its size, so that a sanitizer reports accesses
 * beyond it. */
static uint8_t *
datagram_build(bool v6, uint32_t psn, struct pkt_view *view)
{
	struct path_addr addr = {
		.src_gid = {[10] = 0xff, 0xff, 192, 0, 2, 1},
		.dst_gid = {[10] = 0xff, 0xff, 192, 0, 2, 2},
		.src_mac = {2, [5] = 1},
		.dst_mac = {2, [5] = 2},
	};
	uint8_t bytes[GSI_LEN], *data = malloc(FRAME_MAX);
	struct pkt frame = {.data = data, .room = FRAME_MAX};

	assert_non_null(data);
	if (v6)
		addr.src_gid[0] = addr.dst_gid[0] = 0xfd;
	for (unsigned i = 0; i < GSI_LEN; i++)
		bytes[i] = (uint8_t)(i * 7 + psn);
	memset(data, 0xEE, FRAME_MAX);
	gsi_frame_build(&frame, &addr, psn, bytes);
	assert_int_equal(pkt_parse(&frame, 0, view), DROP_none);
	assert_memory_equal(view->payload, bytes, GSI_LEN);
	return data;
}

TEST(built_datagram_is_admitted)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		uint8_t want[16] = {[10] = 0xff, 0xff, 192, 0, 2}, src[16], dst[16];
		struct pkt_view view;
		uint8_t *data = datagram_build(v6, 0x1FFFFFF + v6, &view);

		assert_int_equal(gsi_admit(&view), DROP_none);
		assert_int_equal(view.ip_version, v6 ? 6 : 4);
		assert_int_equal(view.dest_qpn, 1);
		assert_int_equal(view.psn, v6 ? 0 : 0xFFFFFF);
		assert_int_equal(view.pkey, 0xFFFF);
		assert_int_equal(view_deth(&view)->reserved, 0);
		view_gids(&view, src, dst);
		want[0] = v6 ? 0xfd : 0;
		want[15] = 1;
		assert_memory_equal(src, want, 16);
		want[15] = 2;
		assert_memory_equal(dst, want, 16);
		free(data);
	}
}

TEST(other_datagrams_are_refused)
{
	struct pkt_view good, view;
	uint8_t *data = datagram_build(false, 5, &good);
	struct deth *deth = (struct deth *)(uintptr_t)view_deth(&good);

#define CASE(want, change)                                                               \
	do {                                                                             \
		view = good;                                                             \
		change;                                                                  \
		assert_int_equal(gsi_admit(&view), want);                                \
	} while (0)
	CASE(DROP_none, view.pkey = 0x7FFF);
	CASE(DROP_pkey, view.pkey = 0x1234);
	CASE(DROP_qp_type, view.opcode = OPCODE_UD_SEND_ONLY_IMM);
	CASE(DROP_qp_type, view.opcode = 0x04);
	CASE(DROP_length, view.payload_len = GSI_LEN - 4);
	CASE(DROP_length, view.payload_len = GSI_LEN + 4);
	CASE(DROP_qpn, be24_put(deth->src_qpn, 2));
	CASE(DROP_qkey, deth->qkey ^= 1);
#undef CASE
	free(data);
}
