/* SPDX-License-Identifier: BSD-3-Clause */
/* Valid frames, and the drop reason of each kind of invalid frame. IP headers are in
 * pkt_parse_ip_test.c. */

#include "case.h"
#include "frame.h"

#include "headers.h"

#define TAG_LEN 4

TEST(vectors_parse)
{
	struct pkt_view view;
	uint8_t *copy;

	assert_int_equal(
		parse_exact(frame_vector4, VECTOR4_LEN, 0, 0, &view, &copy), DROP_none);
	assert_int_equal(view.opcode, 0x04);
	assert_ptr_equal(view.op, &op_rows[0x04]);
	assert_int_equal(view.dest_qpn, 0x13);
	assert_int_equal(view.psn, 0x1000);
	assert_int_equal(view.pkey, 0xFFFF);
	assert_true(view.ack_req);
	assert_false(view.solicited);
	assert_int_equal(view.pad, 0);
	assert_int_equal(view.payload_len, 0);
	assert_int_equal(view.ip_version, 4);
	assert_ptr_equal(view.ip, copy + IP_OFF);
	assert_ptr_equal(view.bth, copy + BTH4_OFF);
	assert_ptr_equal(view.ext, copy + BTH4_OFF + 12);
	assert_ptr_equal(view.payload, copy + BTH4_OFF + 12);
	free(copy);

	assert_int_equal(
		parse_exact(frame_vector6, VECTOR6_LEN, 0, 0, &view, &copy), DROP_none);
	assert_int_equal(view.dest_qpn, 0x29);
	assert_int_equal(view.pad, 3);
	assert_int_equal(view.payload_len, 5);
	assert_int_equal(view.ip_version, 6);
	assert_ptr_equal(view.ip, copy + IP_OFF);
	assert_ptr_equal(view.bth, copy + BTH6_OFF);
	assert_ptr_equal(view.payload, copy + BTH6_OFF + 12);
	free(copy);
}

/* The sender may still write the frame: a change of its headers there has no effect, a change of its
 * payload has. */
TEST(headers_are_those_of_the_copy)
{
	static const uint8_t *const vectors[] = {frame_vector4, frame_vector6};
	static const size_t lens[] = {VECTOR4_LEN, VECTOR6_LEN};

	for (unsigned i = 0; i < RTE_DIM(vectors); i++) {
		size_t payload = (i == 0 ? BTH4_OFF : BTH6_OFF) + 12;
		uint8_t frame[PARSE_HEADERS];
		struct pkt_headers *headers;
		struct pkt_view view;
		struct pkt pkt = {.len = (uint16_t)lens[i], .room = (uint16_t)lens[i]};

		memset(frame, 0, sizeof(frame));
		memcpy(frame, vectors[i], lens[i]);
		headers = headers_make(frame);
		headers_use(&pkt, headers);
		memset(frame, 0xFF, payload);
		assert_int_equal(pkt_parse(&pkt, 0, &view), DROP_none);
		assert_int_equal(view.psn, 0x1000);
		assert_ptr_equal(view.ip, headers->bytes + IP_OFF);
		assert_ptr_equal(view.ext, headers->bytes + payload);
		assert_ptr_equal(view.payload, frame + payload);
		frame[payload]++;
		assert_int_equal(pkt_parse(&pkt, 0, &view), DROP_icrc);
		assert_int_equal(pkt_parse_headers(&pkt, 0, &view), DROP_none);
		headers->bytes[12]++;
		assert_int_equal(pkt_parse_headers(&pkt, 0, &view), DROP_ethertype);
		free(headers);
	}
}

TEST(header_bits)
{
	struct raw_frame c = raw_frame4();
	uint8_t *bth = c.data + BTH4_OFF;
	struct pkt_view view;
	uint8_t *copy;

	/* Reserved and MigReq bits are ignored; 24-bit fields exclude the byte beside
	 * them. */
	c.data[IP_OFF + 1] = 0x6a;
	bth[1] = 0x80 | 0x40;
	be16_put(bth + 2, 0x7FFE);
	memset(bth + 4, 0xFF, 4);
	bth[8] = 0x7F;
	memset(bth + 9, 0xFF, 3);
	frame_seal(c.data, IP_OFF);
	assert_int_equal(parse_exact(c.data, c.len, 0, 0, &view, &copy), DROP_none);
	assert_true(view.solicited);
	assert_false(view.ack_req);
	assert_int_equal(view.pkey, 0x7FFE);
	assert_int_equal(view.dest_qpn, 0xFFFFFF);
	assert_int_equal(view.psn, 0xFFFFFF);
	assert_int_equal(view.tclass, 0x6a);
	assert_int_equal(view.bth->ecn, 0xFF);
	free(copy);

	c = raw_frame6();
	c.data[IP_OFF] = 0x68;
	c.data[IP_OFF + 1] = 0x85;
	assert_int_equal(parse_exact(c.data, c.len, 0, 0, &view, NULL), DROP_none);
	assert_int_equal(view.tclass, 0x88);
}

TEST(drop_runt)
{
	struct raw_frame c = raw_frame4();

	for (c.len = 0; c.len < VECTOR4_LEN; c.len++)
		assert_int_equal(raw_frame_parse(&c, 0), DROP_runt);
	c = raw_frame6();
	for (c.len = 0; c.len < VECTOR6_LEN; c.len++)
		assert_int_equal(raw_frame_parse(&c, 0), DROP_runt);
	c = raw_frame4();
	raw_frame_tag(&c, 7);
	for (c.len = 14; c.len < VECTOR4_LEN + TAG_LEN; c.len++)
		assert_int_equal(raw_frame_parse(&c, 7), DROP_runt);
	/* The IP length counts, not the frame's. */
	c = raw_frame4();
	be16_put(c.data + IP_OFF + 2, 45);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_runt);
	c = raw_frame6();
	be16_put(c.data + IP_OFF + 4, 33);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_runt);
}

TEST(drop_ethertype)
{
	static const uint16_t types[] = {
		0, 46, 0x05DC, 0x0801, 0x88CC, 0x88A8, 0x8915, 0xFFFF};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct raw_frame c = raw_frame4();

		be16_put(c.data + 12, types[i]);
		assert_int_equal(raw_frame_parse(&c, 0), DROP_ethertype);
		c = raw_frame4();
		raw_frame_tag(&c, 0);
		be16_put(c.data + 16, types[i]);
		assert_int_equal(raw_frame_parse(&c, 0), DROP_ethertype);
	}
	/* A tag inside a tag. */
	struct raw_frame c = raw_frame4();

	raw_frame_tag(&c, 0);
	raw_frame_tag(&c, 0);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_ethertype);
}

TEST(vlan_rules)
{
	/* tag (-1: none), port's VLAN, result */
	static const struct {
		int tci;
		uint16_t vlan;
		unsigned want;
	} rows[] = {
		{-1, 0, DROP_none},
		{-1, 5, DROP_vlan},
		{0, 0, DROP_none},
		{0, 5, DROP_vlan},      /* as untagged */
		{0xE000, 0, DROP_none}, /* priority 7 */
		{0xF000, 5, DROP_vlan}, /* drop eligible, too */
		{5, 5, DROP_none},
		{0x7005, 5, DROP_none},
		{5, 0, DROP_vlan},
		{5, 6, DROP_vlan},
		{0xFFF, 0, DROP_vlan},
		{0xFFF, 0xFFF, DROP_none},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct raw_frame c4 = raw_frame4(), c6 = raw_frame6();

		if (rows[i].tci >= 0) {
			raw_frame_tag(&c4, (unsigned)rows[i].tci);
			raw_frame_tag(&c6, (unsigned)rows[i].tci);
		}
		assert_int_equal(raw_frame_parse(&c4, rows[i].vlan), rows[i].want);
		assert_int_equal(raw_frame_parse(&c6, rows[i].vlan), rows[i].want);
	}
}

TEST(drop_udp)
{
	struct raw_frame c = raw_frame4();

	be16_put(c.data + UDP4_OFF + 2, 4790);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_udp_port);
	c = raw_frame6();
	be16_put(c.data + UDP6_OFF + 2, 4791 ^ 0x8000);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_udp_port);

	/* Longer than the IP packet, although the frame has the room; shorter than the
	 * UDP header. */
	c = raw_frame4();
	c.len += 16;
	be16_put(c.data + UDP4_OFF + 4, 25);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_udp_length);
	be16_put(c.data + UDP4_OFF + 4, 0xFFFF);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_udp_length);
	for (unsigned len = 0; len < 8; len++) {
		be16_put(c.data + UDP4_OFF + 4, len);
		assert_int_equal(raw_frame_parse(&c, 0), DROP_udp_length);
	}
	c = raw_frame6();
	be16_put(c.data + UDP6_OFF + 4, 33);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_udp_length);
	/* The IP packet is too short for a UDP header, and so is the frame. */
	for (unsigned total = 20; total < 28; total++) {
		c = raw_frame4();
		be16_put(c.data + IP_OFF + 2, total);
		assert_int_equal(raw_frame_parse(&c, 0), DROP_udp_length);
		c.len = IP_OFF + total;
		assert_int_equal(raw_frame_parse(&c, 0), DROP_udp_length);
		c = raw_frame6();
		be16_put(c.data + IP_OFF + 4, total - 20);
		assert_int_equal(raw_frame_parse(&c, 0), DROP_udp_length);
		c.len = IP_OFF + 20 + total;
		assert_int_equal(raw_frame_parse(&c, 0), DROP_udp_length);
	}
}

TEST(udp_length_rules)
{
	struct raw_frame c = raw_frame4();

	/* The UDP length ends the packet, also if the IP packet is longer. */
	be16_put(c.data + IP_OFF + 2, 44 + 6);
	c.len += 6;
	frame_seal(c.data, IP_OFF);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_none);
	/* The UDP checksum and the source port are not checked. */
	c = raw_frame4();
	be16_put(c.data + UDP4_OFF + 6, 0xBEEF);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_none);
	be16_put(c.data + UDP4_OFF, 1);
	frame_seal(c.data, IP_OFF);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_none);
}

TEST(drop_tver_and_opcode)
{
	for (unsigned tver = 1; tver < 16; tver++) {
		struct raw_frame c = raw_frame4();

		c.data[BTH4_OFF + 1] |= tver;
		frame_seal(c.data, IP_OFF);
		assert_int_equal(raw_frame_parse(&c, 0), DROP_tver);
	}
	for (unsigned op = 0; op < 256; op++) {
		struct raw_frame c = raw_frame4();

		c.data[BTH4_OFF] = (uint8_t)op;
		raw_frame_udp_len(&c, 8 + 12 + 64 + 4);
		assert_int_equal(raw_frame_parse(&c, 0),
			op_rows[op].kind == OP_UNKNOWN ? DROP_opcode : DROP_none);
	}
}

TEST(drop_length)
{
	/* Too short for BTH and ICRC. */
	for (unsigned len = 8; len < 24; len++) {
		struct raw_frame c = raw_frame4();

		raw_frame_udp_len(&c, len);
		assert_int_equal(raw_frame_parse(&c, 0), DROP_length);
	}
	/* For each opcode the minimum length without payload and pad is valid. A shorter
	 * length and a pad without payload are not. */
	for (unsigned op = 0; op < 256; op++) {
		unsigned least = 8 + 12 + op_rows[op].ext_len + 4;

		if (op_rows[op].kind == OP_UNKNOWN)
			continue;
		for (unsigned len = 24; len < least + 12; len++) {
			for (unsigned pad = 0; pad < 4; pad++) {
				struct raw_frame c = raw_frame4();
				bool fits = len % 4 == 0 && len >= least + pad;

				c.data[BTH4_OFF] = (uint8_t)op;
				c.data[BTH4_OFF + 1] = (uint8_t)(pad << 4);
				raw_frame_udp_len(&c, len);
				if (raw_frame_parse(&c, 0) !=
					(fits ? DROP_none : DROP_length))
					fail_msg("opcode 0x%02x len %u pad %u", op, len,
						pad);
			}
		}
	}
}

TEST(drop_icrc)
{
	struct raw_frame c = raw_frame4();

	c.data[VECTOR4_LEN - 4] ^= 1;
	assert_int_equal(raw_frame_parse(&c, 0), DROP_icrc);
	c = raw_frame6();
	c.data[BTH6_OFF + 12] ^= 1;
	assert_int_equal(raw_frame_parse(&c, 0), DROP_icrc);
	/* A big-endian ICRC is wrong. */
	c = raw_frame4();
	memcpy(c.data + VECTOR4_LEN - 4, "\xfc\xd1\x73\xf3", 4);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_icrc);
}

TEST(arp_and_icmp_are_left_to_the_port)
{
	static const int tags[] = {-1, 0, 5, 6};
	static const unsigned want[] = {PARSE_OTHER, PARSE_OTHER, DROP_vlan, DROP_vlan};

	for (size_t i = 0; i < 4; i++) {
		struct raw_frame arp = raw_frame4(), icmp = raw_frame4(),
				 icmp6 = raw_frame6();
		uint16_t vlan = 0;

		be16_put(arp.data + 12, 0x0806);
		icmp.data[IP_OFF + 9] = 1;
		icmp6.data[IP_OFF + 6] = 58;
		if (tags[i] >= 0) {
			raw_frame_tag(&arp, (unsigned)tags[i]);
			raw_frame_tag(&icmp, (unsigned)tags[i]);
			raw_frame_tag(&icmp6, (unsigned)tags[i]);
		}
		assert_int_equal(raw_frame_parse(&arp, vlan), want[i]);
		assert_int_equal(raw_frame_parse(&icmp, vlan), want[i]);
		assert_int_equal(raw_frame_parse(&icmp6, vlan), want[i]);
		vlan = 5;
		if (i == 2)
			assert_int_equal(raw_frame_parse(&arp, vlan), PARSE_OTHER);
		if (i == 0 || i == 3)
			assert_int_equal(raw_frame_parse(&arp, vlan), DROP_vlan);
	}
	/* The IP header of such a packet is checked, too. */
	struct raw_frame c = raw_frame4();

	c.data[IP_OFF + 9] = 1;
	assert_int_equal(parse_exact(c.data, c.len, 0, 0, NULL, NULL), DROP_ip_checksum);
	be16_put(c.data + IP_OFF + 6, 0x2000);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_fragment);
}

TEST(ethernet_padding)
{
	struct raw_frame c = raw_frame4();
	struct pkt_view view;

	memset(c.data + c.len, 0xEE, 64);
	for (; c.len < VECTOR4_LEN + 64; c.len++) {
		assert_int_equal(
			parse_exact(c.data, c.len, 0, 0, &view, NULL), DROP_none);
		assert_int_equal(view.payload_len, 0);
	}
}
