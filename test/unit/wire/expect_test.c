/* SPDX-License-Identifier: BSD-3-Clause */
/* What is expected is found, whatever its payload; everything else is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include "frame.h"
#include "wire/build.h"
#include "wire/expect.h"

#include <cmocka.h>

#define VLAN 100
#define PATHS 4            /* IPv4 or 6, tagged or not */
#define FIRST_PSN 0xFFFFFE /* and on past 0 */

static struct path_hdr hdr;
static uint16_t vlan;

static void
path_set(unsigned path)
{
	struct path_addr addr = {
		.src_gid = {0xfd, [15] = 1},
		.dst_gid = {0xfd, [15] = 2},
		.src_mac = {0x02, [5] = 0x0a},
		.dst_mac = {0x02, [5] = 0x0b},
		.vlan = path & 2 ? VLAN : 0,
		.udp_sport = 0xC169,
		.tclass = 0x68,
		.hop_limit = 64,
	};

	if (path & 1) {
		memcpy(addr.src_gid, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF\xC6\x12\x00\x0B", 16);
		memcpy(addr.dst_gid, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF\xC6\x12\x00\x0C", 16);
	}
	vlan = addr.vlan;
	path_hdr_init(&hdr, &addr);
}

/* In a buffer of exactly its length, which the caller frees. */
static struct pkt
frame_make(uint32_t psn, uint32_t len, uint8_t fill)
{
	struct bth_fields bth = {.opcode = OPCODE_RC_SEND_ONLY,
		.psn = psn,
		.dest_qpn = 0x1234,
		.pkey = 0xFFFF,
		.ack_req = true};
	uint32_t room = frame_len(&hdr, bth.opcode, len);
	struct pkt pkt = {.data = malloc(room), .room = (uint16_t)room};

	assert_non_null(pkt.data);
	frame_begin(&hdr, &pkt, &bth, len);
	memset(frame_payload(&hdr, &pkt, bth.opcode), fill, len);
	frame_end(&hdr, &pkt, len);
	return pkt;
}

/* From a packet with the PSN before. */
static void
learn(struct expect *x, uint32_t psn, uint32_t len)
{
	struct pkt pkt = frame_make(psn - 1, len, 0x11);
	struct pkt_view view;

	assert_int_equal(pkt_parse_headers(&pkt, vlan, &view), DROP_none);
	expect_like(x, &pkt, &view, psn & PSN_MASK);
	free(pkt.data);
}

/* One after the other, each with a payload of its own: it is where pkt_parse() finds it. */
static void
test_row(void **state)
{
	static const uint32_t lens[] = {0, 1, 63, 64, 1024};

	(void)state;
	for (unsigned i = 0; i < PATHS * RTE_DIM(lens); i++) {
		struct expect x;

		path_set(i % PATHS);
		learn(&x, FIRST_PSN, lens[i / PATHS]);
		for (uint32_t n = 0; n < 4; n++) {
			uint32_t psn = (FIRST_PSN + n) & PSN_MASK;
			struct pkt pkt =
				frame_make(psn, lens[i / PATHS], (uint8_t)(n + 7));
			struct pkt_view parsed;

			expect_psn(&x, psn);
			assert_int_equal(pkt_parse(&pkt, vlan, &parsed), DROP_none);
			assert_ptr_equal(expect_match(&x, &pkt), parsed.payload);
			assert_int_equal(x.view.payload_len, parsed.payload_len);
			assert_int_equal(x.view.psn, parsed.psn);
			/* But not in the place of another. */
			expect_psn(&x, psn + 1);
			assert_null(expect_match(&x, &pkt));
			free(pkt.data);
		}
	}
}

/* Any bit that is not as expected, of the headers or, by the ICRC, of the rest. */
static void
test_bits(void **state)
{
	(void)state;
	for (unsigned path = 0; path < PATHS; path++) {
		struct expect x;
		struct pkt pkt;

		path_set(path);
		learn(&x, 5, 62);
		pkt = frame_make(5, 62, 0x22);
		for (unsigned bit = 0; bit < pkt.len * 8u; bit++) {
			pkt.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_null(expect_match(&x, &pkt));
			pkt.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		assert_non_null(expect_match(&x, &pkt));
		pkt.flags = PKT_RX_IPV4_CKSUM_BAD;
		assert_null(expect_match(&x, &pkt));
		free(pkt.data);
	}
}

/* Another length; and a frame that ends where the headers do not. */
static void
test_lengths(void **state)
{
	(void)state;
	for (unsigned path = 0; path < PATHS; path++) {
		struct expect x;

		path_set(path);
		learn(&x, 5, 64);
		for (uint32_t len = 0; len < 130; len++) {
			struct pkt pkt = frame_make(5, len, 0x33);

			assert_int_equal(expect_match(&x, &pkt) != NULL, len == 64);
			free(pkt.data);
		}
		for (uint16_t len = 1; len < 100; len++) {
			struct pkt pkt = {.data = calloc(1, len), .len = len};

			assert_non_null(pkt.data);
			assert_null(expect_match(&x, &pkt));
			free(pkt.data);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_row),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
