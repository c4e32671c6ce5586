/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "case.h"
#include "frame.h"
#include "print.h"
#include "wire/build.h"

#include "../rand.h"

#define PAYLOAD_MAX 4096
#define FRAME_MAX (PATH_HDR_MAX + 12 + EXT_LEN_MAX + PAYLOAD_MAX + 4)

/* Paths of all kinds: IPv4 and IPv6, tagged and untagged. */
enum {
	PATH_IPV4,
	PATH_IPV4_OFFLOAD,
	PATH_IPV4_VLAN,
	PATH_IPV6,
	PATH_IPV6_VLAN,
	PATH_COUNT
};

static bool
path_is_ipv4(unsigned path)
{
	return path <= PATH_IPV4_VLAN;
}

static struct path_addr
path_make(unsigned path)
{
	struct path_addr addr = {
		.src_gid = {0xfd, 0, 0, 1, [13] = 0x11, 0x22, 0x33},
		.dst_gid = {0xfd, 0, 0, 1, [13] = 0x44, 0x55, 0x66},
		.src_mac = {0x02, 0, 0, 0, 0, 0x0a},
		.dst_mac = {0x02, 0, 0, 0, 0, 0x0b},
		.udp_sport = 0xC169,
		.flow_label = 0x12345,
		.tclass = 0x6a,
		.hop_limit = 33,
		.cksum_offload = path == PATH_IPV4_OFFLOAD || path == PATH_IPV6_VLAN,
	};

	if (path_is_ipv4(path)) {
		memcpy(addr.src_gid, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF\xC6\x12\x00\x0B", 16);
		memcpy(addr.dst_gid, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF\xC6\x12\x00\x0C", 16);
	}
	if (path == PATH_IPV4_VLAN || path == PATH_IPV6_VLAN)
		addr.vlan = 100;
	return addr;
}

/* Builds the expected frame byte by byte. Returns its length. */
static size_t
ref_build(uint8_t *f, const struct path_addr *a, const struct bth_fields *bth,
	const uint8_t *ext, size_t ext_len, const uint8_t *payload, size_t len)
{
	bool v4 = a->dst_gid[10] == 0xFF;
	size_t pad = (4 - len % 4) % 4;
	size_t udp_len = 8 + 12 + ext_len + len + pad + 4;
	size_t n = 12, ip;

	memset(f, 0, FRAME_MAX);
	memcpy(f, a->dst_mac, 6);
	memcpy(f + 6, a->src_mac, 6);
	if (a->vlan != 0) {
		be16_put(f + n, 0x8100);
		be16_put(f + n + 2, a->vlan);
		n += 4;
	}
	be16_put(f + n, v4 ? 0x0800 : 0x86DD);
	ip = n += 2;
	if (v4) {
		f[n] = 0x45;
		f[n + 1] = a->tclass;
		be16_put(f + n + 2, 20 + udp_len);
		f[n + 6] = 0x40;
		f[n + 8] = a->hop_limit;
		f[n + 9] = 17;
		memcpy(f + n + 12, a->src_gid + 12, 4);
		memcpy(f + n + 16, a->dst_gid + 12, 4);
		n += 20;
	} else {
		f[n] = (uint8_t)(0x60 | a->tclass >> 4);
		f[n + 1] = (uint8_t)(a->tclass << 4 | a->flow_label >> 16);
		be16_put(f + n + 2, a->flow_label & 0xFFFF);
		be16_put(f + n + 4, udp_len);
		f[n + 6] = 17;
		f[n + 7] = a->hop_limit;
		memcpy(f + n + 8, a->src_gid, 16);
		memcpy(f + n + 24, a->dst_gid, 16);
		n += 40;
	}
	be16_put(f + n, a->udp_sport);
	be16_put(f + n + 2, 4791);
	be16_put(f + n + 4, udp_len);
	n += 8;
	f[n] = bth->opcode;
	f[n + 1] = (uint8_t)((bth->solicited ? 0x80 : 0) | 0x40 | pad << 4);
	be16_put(f + n + 2, bth->pkey);
	be24_put(f + n + 5, bth->dest_qpn);
	f[n + 8] = bth->ack_req ? 0x80 : 0;
	be24_put(f + n + 9, bth->psn);
	n += 12;
	memcpy(f + n, ext, ext_len);
	memcpy(f + n + ext_len, payload, len);
	n += ext_len + len + pad + 4;
	frame_seal(f, ip);
	if (v4 && a->cksum_offload)
		be16_put(f + ip + 10, 0);
	return n;
}

/* Builds into a dirty buffer of exactly the frame's length; the caller frees
 * pkt->data. */
static void
frame_build(struct path_hdr *hdr, struct pkt *pkt, const struct bth_fields *bth,
	const uint8_t *ext, const uint8_t *payload, uint32_t len)
{
	uint32_t room = frame_len(hdr, bth->opcode, len);
	uint8_t *at;

	*pkt = (struct pkt){
		.data = malloc(room), .room = (uint16_t)room, .flags = 0xFFFF};
	assert_non_null(pkt->data);
	memset(pkt->data, 0xA5, room);
	at = frame_begin(hdr, pkt, bth, len);
	assert_int_equal(pkt->len, room);
	assert_ptr_equal(
		frame_payload(hdr, pkt, bth->opcode), at + op_rows[bth->opcode].ext_len);
	memcpy(at, ext, op_rows[bth->opcode].ext_len);
	memcpy(frame_payload(hdr, pkt, bth->opcode), payload, len);
	frame_end(hdr, pkt, len);
}

static void
frame_check(struct path_hdr *hdr, const struct path_addr *addr,
	const struct bth_fields *bth, const uint8_t *ext, const uint8_t *payload,
	uint32_t len)
{
	static uint8_t want[FRAME_MAX];
	const struct op_row *op = &op_rows[bth->opcode];
	bool offload = hdr->ip_version == 4 && addr->cksum_offload;
	struct pkt_view view;
	struct pkt pkt;
	size_t n;

	frame_build(hdr, &pkt, bth, ext, payload, len);
	n = ref_build(want, addr, bth, ext, op->ext_len, payload, len);
	assert_int_equal(pkt.len, n);
	if (memcmp(pkt.data, want, n) != 0)
		fail_msg("%s, %u bytes: not the reference's", opcode_name(bth->opcode),
			len);
	assert_int_equal(pkt.flags, offload ? PKT_TX_IPV4_CKSUM : 0);

	if (offload)
		pkt.flags = PKT_RX_IPV4_CKSUM_OK;
	assert_int_equal(pkt_parse(&pkt, addr->vlan, &view), DROP_none);
	assert_int_equal(view.opcode, bth->opcode);
	assert_int_equal(view.dest_qpn, bth->dest_qpn & 0xFFFFFF);
	assert_int_equal(view.psn, bth->psn & 0xFFFFFF);
	assert_int_equal(view.pkey, bth->pkey);
	assert_int_equal(view.solicited, bth->solicited);
	assert_int_equal(view.ack_req, bth->ack_req);
	assert_int_equal(view.pad, -len & 3);
	assert_int_equal(view.payload_len, len);
	assert_int_equal(view.tclass, addr->tclass);
	assert_memory_equal(view.ext, ext, op->ext_len);
	assert_memory_equal(view.payload, payload, len);
	free(pkt.data);
}

TEST(built_frame_equals_reference_and_parses)
{
	static const uint32_t lens[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 63, 64, 65,
		255, 256, 511, 1023, 1024, 2047, 4093, 4096, 4095, 4094, 0};
	uint64_t seed = 0xb1d, rand = seed;
	static uint8_t payload[PAYLOAD_MAX];
	uint8_t ext[EXT_LEN_MAX];

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)rand_next(&rand);
	for (unsigned path = 0; path < PATH_COUNT; path++) {
		struct path_addr addr = path_make(path);
		struct path_hdr hdr;

		path_hdr_init(&hdr, &addr);
		for (unsigned op = 0; op < 256; op++) {
			if (op_rows[op].kind == OP_UNKNOWN)
				continue;
			for (size_t i = 0; i < sizeof(ext); i++)
				ext[i] = (uint8_t)rand_next(&rand);
			for (size_t l = 0; l < sizeof(lens) / sizeof(lens[0]); l++) {
				struct bth_fields bth = {
					.dest_qpn = (uint32_t)rand_next(&rand),
					.psn = (uint32_t)rand_next(&rand),
					.pkey = (uint16_t)rand_next(&rand),
					.opcode = (uint8_t)op,
					.solicited = rand_below(&rand, 2),
					.ack_req = rand_below(&rand, 2),
				};

				frame_check(&hdr, &addr, &bth, ext, payload, lens[l]);
			}
		}
	}
}

/* The path's cached state: the same length again, and other lengths in between. */
TEST(lengths_alternate)
{
	static const uint32_t lens[] = {64, 64, 0, 64, 64, 68, 65, 0, 0, 4096, 64};
	static const uint8_t payload[PAYLOAD_MAX] = {1, 2, 3};
	static const uint8_t ext[EXT_LEN_MAX] = {0x1F, 0, 0, 7};

	for (unsigned path = 0; path < PATH_COUNT; path++) {
		struct path_addr addr = path_make(path);
		struct path_hdr hdr;

		path_hdr_init(&hdr, &addr);
		assert_int_equal(hdr.udp_len, 0);
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct bth_fields send = {
				.opcode = OPCODE_RC_SEND_ONLY, .psn = i};
			struct bth_fields ack = {
				.opcode = OPCODE_RC_ACKNOWLEDGE, .psn = i};

			frame_check(&hdr, &addr, &send, ext, payload, lens[i]);
			assert_int_equal(hdr.udp_len, 24 + ((lens[i] + 3) & ~3u));
			if (i % 3 == 0)
				frame_check(&hdr, &addr, &ack, ext, payload, 0);
		}
	}
}

/* All kinds of templates: IPv4 or IPv6, tagged or not, checksum computed or offloaded. */
static struct path_addr
path_kind(unsigned kind)
{
	struct path_addr addr = path_make(kind & 1 ? PATH_IPV6 : PATH_IPV4);

	addr.vlan = kind & 2 ? 0x6064 : 0;
	addr.cksum_offload = kind & 4;
	return addr;
}

#define PATH_KINDS 8
#define LENGTHS 4
#define LENGTH_SEEDS 50
#define LENGTH_STEPS 100

/* Whether the frame equals that of a template which has built no other length. */
static bool
frame_is_fresh(struct path_hdr *hdr, const struct path_addr *addr, uint32_t len)
{
	static const uint8_t payload[PAYLOAD_MAX] = {4, 5, 6};
	struct bth_fields bth = {
		.opcode = OPCODE_RC_SEND_ONLY, .psn = len, .dest_qpn = 9};
	struct path_hdr fresh;
	struct pkt one, other;
	bool same;

	path_hdr_init(&fresh, addr);
	frame_build(hdr, &one, &bth, payload, payload, len);
	frame_build(&fresh, &other, &bth, payload, payload, len);
	same = one.len == other.len && one.flags == other.flags &&
	       memcmp(one.data, other.data, one.len) == 0;
	free(one.data);
	free(other.data);
	return same;
}

/* Random lengths: the state cached for the last two lengths is right for each. */
TEST(cached_lengths_in_any_order)
{
	for (uint64_t seed = 1; seed <= LENGTH_SEEDS * PATH_KINDS; seed++) {
		struct path_addr addr = path_kind(seed % PATH_KINDS);
		uint64_t rand = seed;
		uint32_t lens[LENGTHS];
		struct path_hdr hdr;

		for (unsigned i = 0; i < LENGTHS; i++)
			lens[i] = (uint32_t)rand_below(&rand, PAYLOAD_MAX + 1);
		path_hdr_init(&hdr, &addr);
		for (unsigned i = 0; i < LENGTH_STEPS; i++) {
			uint32_t len = lens[rand_below(&rand, LENGTHS)];

			if (!frame_is_fresh(&hdr, &addr, len))
				fail_msg("seed %lu, step %u: %u bytes",
					(unsigned long)seed, i, len);
		}
	}
}

/* After path_hdr_no_offload() frames carry the checksum, in any order of lengths: those
 * cached without a checksum, and others. */
TEST(checksum_is_filled_after_offload)
{
	for (unsigned kind = 0; kind < PATH_KINDS; kind++) {
		for (unsigned first = 0; first < 3; first++) {
			static const uint32_t lens[] = {100, 0, 64};
			struct path_addr addr = path_kind(kind);
			struct path_hdr hdr;

			path_hdr_init(&hdr, &addr);
			for (unsigned i = 0; i < 2; i++)
				assert_true(frame_is_fresh(&hdr, &addr, lens[i]));
			path_hdr_no_offload(&hdr);
			addr.cksum_offload = false;
			for (unsigned i = 0; i < 6; i++)
				assert_true(frame_is_fresh(&hdr, &addr,
					lens[(first + i * (1 + i / 3)) % 3]));
			assert_int_equal(hdr.pkt_flags & PKT_TX_IPV4_CKSUM, 0);
		}
	}
}

/* Whether a frame with a changed source port equals that of a path that had it at first. */
static bool
flipped_frame_is_fresh(struct path_hdr *hdr, const struct path_addr *addr,
	const struct port_flip *flip, uint32_t len)
{
	static const uint8_t payload[PAYLOAD_MAX] = {7, 8, 9};
	struct bth_fields bth = {
		.opcode = OPCODE_RC_SEND_ONLY, .psn = len, .dest_qpn = 9};
	struct path_addr moved = *addr;
	struct path_hdr fresh;
	struct pkt one, other;
	struct icrc_sum sum;
	bool same;

	moved.udp_sport ^= flip->port;
	path_hdr_init(&fresh, &moved);
	frame_build(&fresh, &other, &bth, payload, payload, len);
	one = (struct pkt){.data = malloc(other.len), .room = other.len};
	assert_non_null(one.data);
	frame_begin(hdr, &one, &bth, len);
	sum = frame_sum(hdr, &one);
	frame_flip_port(hdr, &one, &sum, flip);
	memcpy(frame_payload(hdr, &one, bth.opcode), payload, len);
	frame_end_sum(hdr, &one, len, sum);
	same = one.len == other.len && memcmp(one.data, other.data, one.len) == 0;
	free(one.data);
	free(other.data);
	return same;
}

/* The source port of single frames, and of the path, changes with the ICRC, for the cached
 * lengths and for others. */
TEST(source_port_changes)
{
	static const uint32_t lens[] = {100, 0, 64, 100, 4096, 0};

	for (unsigned kind = 0; kind < PATH_KINDS; kind++) {
		struct path_addr addr = path_kind(kind);
		struct path_hdr hdr;

		path_hdr_init(&hdr, &addr);
		for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct port_flip flip =
				port_flip_make((uint16_t)(0x1001 * i & 0x3FFF));

			assert_true(flipped_frame_is_fresh(&hdr, &addr, &flip, lens[i]));
			assert_true(frame_is_fresh(&hdr, &addr, lens[i]));
			flip = port_flip_make((uint16_t)(0x0357 * (i + 1)));
			path_hdr_flip_port(&hdr, &flip);
			addr.udp_sport ^= flip.port;
			assert_true(frame_is_fresh(&hdr, &addr, lens[i]));
			assert_true(frame_is_fresh(&hdr, &addr, lens[(i + 5) % 6]));
		}
	}
}

TEST(checksum_extremes)
{
	/* Addresses that make the sum carry, at every length: 20 + 8 + 12 + 4 and up. */
	struct path_addr addr = path_make(PATH_IPV4);
	static const uint8_t payload[PAYLOAD_MAX];
	uint64_t seed = 0xc5, rand = seed;

	for (uint32_t len = 0; len <= PAYLOAD_MAX; len += 4) {
		struct bth_fields bth = {.opcode = OPCODE_RC_SEND_ONLY};
		struct path_hdr hdr;

		for (unsigned i = 12; i < 16; i++) {
			addr.src_gid[i] =
				rand_below(&rand, 2) ? 0xFF : (uint8_t)rand_next(&rand);
			addr.dst_gid[i] =
				rand_below(&rand, 2) ? 0xFF : (uint8_t)rand_next(&rand);
		}
		path_hdr_init(&hdr, &addr);
		frame_check(&hdr, &addr, &bth, payload, payload, len);
	}
	/* Every sum, also with carries out of carries. */
	memset(addr.src_gid + 12, 0xFF, 4);
	memset(addr.dst_gid + 12, 0xFF, 4);
	for (unsigned low = 0; low < 0x10000; low++) {
		struct bth_fields bth = {.opcode = OPCODE_RC_SEND_ONLY};
		struct path_hdr hdr;

		be16_put(addr.dst_gid + 14, low);
		path_hdr_init(&hdr, &addr);
		frame_check(&hdr, &addr, &bth, payload, payload, 0);
	}
}

TEST(destination_changes)
{
	static const uint8_t mac[6] = {0x02, 1, 2, 3, 4, 5};
	struct path_addr addr = path_make(PATH_IPV4_VLAN);
	struct bth_fields bth = {.opcode = OPCODE_RC_SEND_ONLY};
	struct path_hdr hdr;

	path_hdr_init(&hdr, &addr);
	frame_check(&hdr, &addr, &bth, (const uint8_t *)"", (const uint8_t *)"abcd", 4);
	path_hdr_set_dst(&hdr, mac);
	memcpy(addr.dst_mac, mac, sizeof(mac));
	frame_check(&hdr, &addr, &bth, (const uint8_t *)"", (const uint8_t *)"abcd", 4);
}

TEST(init_clears_everything)
{
	struct path_addr addr = path_make(PATH_IPV6);
	struct path_hdr clean, dirty;

	memset(&clean, 0, sizeof(clean));
	memset(&dirty, 0xFF, sizeof(dirty));
	path_hdr_init(&clean, &addr);
	path_hdr_init(&dirty, &addr);
	assert_memory_equal(&clean, &dirty, sizeof(clean));
	/* A flow label of more than 20 bits stays in its field. */
	addr.flow_label |= 0xFFF00000;
	path_hdr_init(&dirty, &addr);
	assert_memory_equal(&clean, &dirty, sizeof(clean));
}

TEST(source_ports)
{
	/* As Linux: flow labels and QPNs from captures. */
	assert_int_equal(roce_udp_sport(0x54321, 1, 2), 0xC334);
	assert_int_equal(roce_udp_sport(0x12345, 1, 2), 0xE341);
	assert_int_equal(roce_udp_sport(0x95a62, 1, 2), 55879);
	assert_int_equal(roce_udp_sport(0, 0x13, 0x13), 0xC169);
	assert_int_equal(roce_udp_sport(0, 0x29, 0x29), 0xC691);
	/* Only the low 20 bits count. */
	assert_int_equal(roce_udp_sport(0xFFF54321, 1, 2), 0xC334);
	for (uint32_t a = 1; a < 0x1000000; a = a * 5 + 3) {
		for (uint32_t b = 1; b < 0x1000000; b = b * 7 + 1) {
			assert_int_equal(
				roce_udp_sport(0, a, b), roce_udp_sport(0, b, a));
			assert_true(roce_udp_sport(0, a, b) >= 0xC000);
		}
	}
	/* 0xFFFFFF squared is 0xFFFFFE000001; folded 0xFFFFF1FFFF1E, of that the last 20
	 * bits: 0x3F1E ^ 0x3F. */
	assert_int_equal(roce_udp_sport(0, 0xFFFFFF, 0xFFFFFF), 0xC000 | 0x3F21);
}
