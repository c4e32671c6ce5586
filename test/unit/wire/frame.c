/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"

/* clang-format off */
#define ETHERNET(type) \
	0x52, 0x54, 0x00, 0x12, 0x34, 0x02, 0x52, 0x54, 0x00, 0x12, 0x34, 0x01, (type) >> 8, (type) & 0xFF

const uint8_t frame_vector4[VECTOR4_LEN] = {
	ETHERNET(0x0800),
	0x45, 0x00, 0x00, 0x2c, 0xfb, 0xb7, 0x40, 0x00, 0x40, 0x11, 0xb2, 0xcd,
	0xc6, 0x12, 0x00, 0x0b, 0xc6, 0x12, 0x00, 0x0c,
	0xc1, 0x69, 0x12, 0xb7, 0x00, 0x18, 0x00, 0x00,
	0x04, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x13, 0x80, 0x00, 0x10, 0x00,
	0xf3, 0x73, 0xd1, 0xfc,
};

const uint8_t frame_vector6[VECTOR6_LEN] = {
	ETHERNET(0x86DD),
	0x60, 0x00, 0x00, 0x00, 0x00, 0x20, 0x11, 0x40,
	0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x01,
	0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x02,
	0xc6, 0x91, 0x12, 0xb7, 0x00, 0x20, 0x00, 0x00,
	0x04, 0x30, 0xff, 0xff, 0x00, 0x00, 0x00, 0x29, 0x80, 0x00, 0x10, 0x00,
	0x00, 0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x00,
	0x96, 0xaf, 0xa3, 0xc3,
};
/* clang-format on */

void
be16_put(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

unsigned
be16_at(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

uint64_t
be_get(const void *at, size_t len)
{
	const uint8_t *bytes = at;
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++)
		value = value << 8 | bytes[i];
	return value;
}

uint32_t
ref_crc(uint32_t crc, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		crc ^= data[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
	}
	return crc;
}

uint32_t
ref_icrc(const uint8_t *ip, size_t *icrc_off)
{
	static const uint8_t ones[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
	bool v4 = ip[0] >> 4 == 4;
	size_t udp = v4 ? 20 : 40;
	size_t hdrs = udp + 8 + 12;
	size_t end = udp + be16_at(ip + udp + 4) - 4;
	uint8_t masked[40 + 8 + 12];
	uint32_t crc;

	memcpy(masked, ip, hdrs);
	if (v4) {
		masked[1] = masked[8] = masked[10] = masked[11] = 0xFF;
	} else {
		masked[0] |= 0x0F;
		masked[1] = masked[2] = masked[3] = masked[7] = 0xFF;
	}
	masked[udp + 6] = masked[udp + 7] = masked[udp + 12] = 0xFF;
	crc = ref_crc(0xFFFFFFFF, ones, sizeof(ones));
	crc = ref_crc(crc, masked, hdrs);
	crc = ref_crc(crc, ip + hdrs, end - hdrs);
	if (icrc_off != NULL)
		*icrc_off = end;
	return ~crc;
}

void
frame_seal(uint8_t *frame, size_t ip_off)
{
	uint8_t *ip = frame + ip_off;
	uint32_t sum = 0, crc;
	size_t off;

	if (ip[0] >> 4 == 4) {
		be16_put(ip + 10, 0);
		for (unsigned i = 0; i < 20; i += 2)
			sum += be16_at(ip + i);
		while (sum >> 16 != 0)
			sum = (sum & 0xFFFF) + (sum >> 16);
		be16_put(ip + 10, ~sum & 0xFFFF);
	}
	crc = ref_icrc(ip, &off);
	for (unsigned i = 0; i < 4; i++)
		ip[off + i] = (uint8_t)(crc >> 8 * i);
}

unsigned
parse_exact(const uint8_t *frame, size_t len, uint32_t flags, uint16_t vlan,
	struct pkt_view *view, uint8_t **copy)
{
	/* At least one byte, so that malloc() returns a block of its own. */
	uint8_t *data = malloc(len != 0 ? len : 1);
	struct pkt pkt = {.data = data,
		.len = (uint16_t)len,
		.room = (uint16_t)len,
		.flags = flags};
	struct pkt_view own;
	unsigned reason;

	if (data == NULL)
		abort();
	memcpy(data, frame, len);
	reason = pkt_parse(&pkt, vlan, view != NULL ? view : &own);
	if (memcmp(data, frame, len) != 0)
		abort(); /* pkt_parse() restores what it changes in the frame */
	if (copy != NULL)
		*copy = data;
	else
		free(data);
	return reason;
}

struct raw_frame
raw_frame4(void)
{
	struct raw_frame c = {.len = VECTOR4_LEN, .ip_off = IP_OFF};

	memcpy(c.data, frame_vector4, VECTOR4_LEN);
	return c;
}

struct raw_frame
raw_frame6(void)
{
	struct raw_frame c = {.len = VECTOR6_LEN, .ip_off = IP_OFF};

	memcpy(c.data, frame_vector6, VECTOR6_LEN);
	return c;
}

void
raw_frame_tag(struct raw_frame *c, unsigned tci)
{
	memmove(c->data + 12 + 4, c->data + 12, c->len - 12);
	be16_put(c->data + 12, 0x8100);
	be16_put(c->data + 14, tci);
	c->len += 4;
	c->ip_off += 4;
}

void
raw_frame_udp_len(struct raw_frame *c, unsigned udp_len)
{
	be16_put(c->data + c->ip_off + 2, 20 + udp_len);
	be16_put(c->data + c->ip_off + 24, udp_len);
	c->len = c->ip_off + 20 + udp_len;
	if (udp_len >= 24)
		frame_seal(c->data, c->ip_off);
}

unsigned
raw_frame_parse(const struct raw_frame *c, uint16_t vlan)
{
	return parse_exact(c->data, c->len, PKT_RX_IPV4_CKSUM_OK, vlan, NULL, NULL);
}
