/* SPDX-License-Identifier: BSD-3-Clause */
/* Every captured frame of another implementation is parsed, rebuilt byte for byte,
 * truncated at every length, and corrupted at random. capture_tshark_test.c compares it
 * with what tshark reads. */

#include "captures.h"
#include "case.h"
#include "frame.h"
#include "wire/build.h"

#include "../rand.h"

#define SEED 0xca97

/* Frames that are invalid on purpose. */
static const struct {
	const char *capture;
	unsigned number;
	unsigned reason;
} dropped[] = {
	{"c0-silent-drops", 1, DROP_icrc},
	{"c0-silent-drops", 2, DROP_tver},
	{"c0-silent-drops", 11, DROP_opcode},
	{"c0-silent-drops", 12, DROP_opcode},
	{"c0-silent-drops", 18, DROP_length},
};

static unsigned
expected_reason(const struct captured *f)
{
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		if (strcmp(dropped[i].capture, f->capture) == 0 &&
			dropped[i].number == f->number)
			return dropped[i].reason;
	return DROP_none;
}

TEST(all_frames_parse)
{
	assert_int_equal(captured_count, CAPTURED_FRAMES);
	for (size_t i = 0; i < captured_count; i++) {
		const struct captured *f = &captured[i];
		unsigned want = expected_reason(f);
		unsigned have = parse_exact(f->data, f->len, 0, f->vlan, NULL, NULL);

		if (have != want)
			fail_msg("%s frame %u: reason %u, expected %u", f->capture,
				f->number, have, want);
		if (f->vlan != 0)
			assert_int_equal(parse_exact(f->data, f->len, 0, 0, NULL, NULL),
				DROP_vlan);
		else
			assert_int_equal(parse_exact(f->data, f->len, 0, 100, NULL, NULL),
				DROP_vlan);
	}
}

/* The path of a frame; fields that Rocade keeps constant are copied from the frame. */
static void
path_of(const struct captured *f, const struct pkt_view *v, struct path_hdr *hdr)
{
	struct path_addr addr = {.tclass = v->tclass, .vlan = f->tci};
	const uint8_t *udp = (const uint8_t *)v->bth - 8;

	memcpy(addr.dst_mac, f->data, 6);
	memcpy(addr.src_mac, f->data + 6, 6);
	addr.udp_sport = (uint16_t)be16_at(udp);
	if (v->ip_version == 6) {
		memcpy(addr.src_gid, v->ip + 8, 16);
		memcpy(addr.dst_gid, v->ip + 24, 16);
		addr.flow_label = (uint32_t)be_get(v->ip, 4) & 0xFFFFF;
		addr.hop_limit = v->ip[7];
		path_hdr_init(hdr, &addr);
		return;
	}
	addr.src_gid[10] = addr.src_gid[11] = addr.dst_gid[10] = addr.dst_gid[11] = 0xFF;
	memcpy(addr.src_gid + 12, v->ip + 12, 4);
	memcpy(addr.dst_gid + 12, v->ip + 16, 4);
	addr.hop_limit = v->ip[8];
	path_hdr_init(hdr, &addr);
	/* Identification and DF. */
	memcpy(hdr->bytes + hdr->l3_off + 4, v->ip + 4, 4);
}

/* Builds a packet in a buffer of exactly its length from the parsed view of another. BTH
 * bits that Rocade sets otherwise (MigReq, reserved) are copied; the ICRC must match. */
static void
rebuild(struct path_hdr *hdr, const struct pkt_view *v, struct pkt *pkt)
{
	struct bth_fields fields = {
		.dest_qpn = v->dest_qpn,
		.psn = v->psn,
		.pkey = v->pkey,
		.opcode = v->opcode,
		.solicited = v->solicited,
		.ack_req = v->ack_req,
	};
	uint32_t room = frame_len(hdr, v->opcode, v->payload_len);
	struct bth *bth;
	uint8_t *ext;

	*pkt = (struct pkt){.data = malloc(room), .room = (uint16_t)room};
	assert_non_null(pkt->data);
	ext = frame_begin(hdr, pkt, &fields, v->payload_len);
	bth = (struct bth *)ext - 1;
	assert_int_equal(bth->flags & BTH_MIGREQ, BTH_MIGREQ);
	bth->flags = (bth->flags & ~BTH_MIGREQ) | (v->bth->flags & BTH_MIGREQ);
	bth->ack |= v->bth->ack & ~BTH_ACKREQ;
	memcpy(ext, v->ext, v->op->ext_len);
	memcpy(frame_payload(hdr, pkt, v->opcode), v->payload, v->payload_len);
	frame_end(hdr, pkt, v->payload_len);
	bth->ecn = v->bth->ecn; /* not covered by the ICRC */
}

TEST(rebuilt_frames_are_identical)
{
	unsigned rebuilt = 0;

	for (size_t i = 0; i < captured_count; i++) {
		const struct captured *f = &captured[i];
		struct path_hdr hdr;
		struct pkt_view v;
		struct pkt pkt;
		uint8_t *copy;
		size_t udp;

		if (parse_exact(f->data, f->len, 0, f->vlan, &v, &copy) == DROP_none) {
			path_of(f, &v, &hdr);
			rebuild(&hdr, &v, &pkt);
			/* Rocade sends UDP checksum 0; one frame that a script built has
			 * another. */
			udp = f->ip_off + (v.ip_version == 4 ? 20 : 40);
			memcpy(pkt.data + udp + 6, f->data + udp + 6, 2);
			assert_true(pkt.len <= f->len);
			if (memcmp(pkt.data, f->data, pkt.len) != 0)
				fail_msg("%s frame %u", f->capture, f->number);
			free(pkt.data);
			rebuilt++;
		}
		free(copy);
	}
	assert_int_equal(rebuilt, CAPTURED_FRAMES - sizeof(dropped) / sizeof(dropped[0]));
}

/* The ICRC of each frame, computed without the code of lib/wire. */
TEST(icrc_matches_reference)
{
	for (size_t i = 0; i < captured_count; i++) {
		const struct captured *f = &captured[i];
		size_t off;
		uint32_t crc = ref_icrc(f->data + f->ip_off, &off);
		const uint8_t *at = f->data + f->ip_off + off;
		uint32_t stored = (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 |
				  (uint32_t)at[1] << 8 | at[0];

		if ((crc == stored) != (expected_reason(f) != DROP_icrc))
			fail_msg("%s frame %u: 0x%08x, computed 0x%08x", f->capture,
				f->number, stored, crc);
	}
}

/* Opcodes that are in no capture, as no available driver sends them. A script built five
 * XRC frames; the other XRC opcodes differ from RC's by the XRCETH alone. */
static const uint8_t never_seen[] = {
	0xa0, 0xa1, 0xa2, 0xa3, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xab, 0xad, 0xae, 0xaf,
	0xb0, 0xb2, 0xb3, 0xb6, 0xb7, OPCODE_SACK, /* of Rocade alone */
};

TEST(captures_have_all_available_opcodes)
{
	bool seen[256] = {false}, absent[256] = {false};

	for (size_t i = 0; i < captured_count; i++) {
		struct pkt_view v;
		uint8_t *copy;

		if (parse_exact(captured[i].data, captured[i].len, 0, captured[i].vlan,
			    &v, &copy) == DROP_none)
			seen[v.opcode] = true;
		free(copy);
	}
	for (size_t i = 0; i < sizeof(never_seen); i++)
		absent[never_seen[i]] = true;
	for (unsigned op = 0; op < 256; op++) {
		bool known = op_rows[op].kind != OP_UNKNOWN;

		if (seen[op] != (known && !absent[op]))
			fail_msg("opcode 0x%02x: %s", op, seen[op] ? "seen" : "not seen");
	}
}

/* A truncated frame is dropped until the last byte that the IP header counts is there. */
TEST(truncated_frames_are_runts)
{
	for (size_t i = 0; i < captured_count; i++) {
		const struct captured *f = &captured[i];
		const uint8_t *ip = f->data + f->ip_off;
		size_t ip_len = ip[0] >> 4 == 4 ? be16_at(ip + 2) : 40u + be16_at(ip + 4);
		unsigned whole = expected_reason(f);

		for (size_t len = 0; len <= f->len; len++) {
			unsigned want = len < f->ip_off + ip_len ? DROP_runt : whole;
			unsigned have = parse_exact(f->data, len, 0, f->vlan, NULL, NULL);

			if (have != want)
				fail_msg("%s frame %u cut to %zu: reason %u", f->capture,
					f->number, len, have);
		}
	}
}

/* Truncated frames with matching lengths, checksum and ICRC: what is left is a valid
 * packet or too short for its opcode, and no byte beyond the end is read. */
TEST(truncated_frames_with_matching_lengths)
{
	for (size_t i = 0; i < captured_count; i++) {
		const struct captured *f = &captured[i];
		bool v4 = f->data[f->ip_off] >> 4 == 4;
		size_t udp = f->ip_off + (v4 ? 20 : 40);
		size_t most = be16_at(f->data + udp + 4);
		uint8_t frame[8192];

		if (expected_reason(f) != DROP_none)
			continue;
		if (most > 200)
			most = 200;
		memcpy(frame, f->data, udp + most);
		for (size_t len = 24; len <= most; len++) {
			const struct op_row *op = &op_rows[frame[udp + 8]];
			unsigned pad = frame[udp + 9] >> 4 & 3;
			bool fits = len % 4 == 0 && len >= 24u + op->ext_len + pad;

			be16_put(frame + udp + 4, (unsigned)len);
			if (v4)
				be16_put(frame + f->ip_off + 2, (unsigned)len + 20);
			else
				be16_put(frame + f->ip_off + 4, (unsigned)len);
			frame_seal(frame, f->ip_off);
			if (parse_exact(frame, udp + len, 0, f->vlan, NULL, NULL) !=
				(fits ? DROP_none : DROP_length))
				fail_msg("%s frame %u truncated to %zu", f->capture,
					f->number, len);
			/* The ICRC overwrote bytes of the next round's frame. */
			memcpy(frame + udp + 20, f->data + udp + 20, most - 20);
		}
	}
}

/* Random bytes in the headers: no read outside the frame (checked by the sanitizer), and
 * no view that exceeds the frame. */
TEST(frames_corrupted_at_random)
{
	uint64_t rand = SEED;

	for (unsigned round = 0; round < 200000; round++) {
		const struct captured *f = &captured[rand_below(&rand, captured_count)];
		size_t len =
			rand_below(&rand, 4) ? f->len : 1 + rand_below(&rand, f->len);
		uint8_t frame[8192], *copy;
		struct pkt_view v;

		memcpy(frame, f->data, len);
		for (unsigned n = 1 + rand_below(&rand, 3); n > 0; n--)
			frame[rand_below(&rand, len < 70 ? len : 70)] =
				(uint8_t)rand_next(&rand);
		if (rand_below(&rand, 2) && len == f->len &&
			frame[f->ip_off] == f->data[f->ip_off])
			be16_put(frame + f->ip_off + 10, 0);
		if (parse_exact(frame, len, PKT_RX_IPV4_CKSUM_OK, f->vlan, &v, &copy) ==
			DROP_none) {
			const uint8_t *end = v.payload + v.payload_len + v.pad + ICRC_LEN;

			if (v.ip < copy + 14 || v.payload < v.ext || end > copy + len)
				fail_msg("seed 0x%x round %u", SEED, round);
		}
		free(copy);
	}
}

TEST_GROUP(captures_setup, captures_teardown)
