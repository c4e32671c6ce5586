/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_fixture.h"
#include "../rand.h"

#define IP 14
#define ECHO_ROOM 9018

/* The checksum as RFC 1071 words it, big-endian, byte by byte, without the code under
 * test. */
static uint32_t
sum_bytes(uint32_t sum, const uint8_t *data, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)data[i] << 8 : data[i];
	return sum;
}

static uint16_t
fold(uint32_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void
put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint32_t
header_len(bool ipv6)
{
	return IP + (ipv6 ? 40 : 20);
}

static uint16_t
message_sum(const uint8_t *frame, uint32_t len, bool ipv6)
{
	uint32_t at = header_len(ipv6), sum = 0;

	if (ipv6)
		sum = sum_bytes(len - at + 58, frame + IP + 8, 32);
	return fold(sum_bytes(sum, frame + at, len - at));
}

/* Sets lengths and checksums for pkt->len. */
static void
lengths_and_sums_set(struct pkt *pkt, bool ipv6)
{
	uint32_t at = header_len(ipv6);

	if (ipv6) {
		put16(pkt->data + IP + 4, (uint16_t)(pkt->len - at));
	} else {
		put16(pkt->data + IP + 2, (uint16_t)(pkt->len - IP));
		put16(pkt->data + IP + 10, 0);
		put16(pkt->data + IP + 10, fold(sum_bytes(0, pkt->data + IP, 20)));
	}
	put16(pkt->data + at + 2, 0);
	put16(pkt->data + at + 2, message_sum(pkt->data, pkt->len, ipv6));
}

/* Host 2 pings host 1; payload: bytes behind the 8 of the ICMP header. */
static struct pkt
echo(bool ipv6, uint32_t payload)
{
	uint32_t at = header_len(ipv6);
	struct pkt pkt = frame_empty(at + 8 + payload);
	static const uint8_t macs[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};

	pkt.len = pkt.room;
	memset(pkt.data, 0, pkt.len);
	memcpy(pkt.data, macs, sizeof(macs));
	put16(pkt.data + 12, ipv6 ? 0x86dd : 0x0800);
	if (ipv6) {
		pkt.data[IP] = 0x60;
		pkt.data[IP + 6] = 58;
		pkt.data[IP + 7] = 64;
		memcpy(pkt.data + IP + 8, gid_of("2001:db8::2"), 16);
		memcpy(pkt.data + IP + 24, gid_of("2001:db8::1"), 16);
		pkt.data[at] = 128;
	} else {
		pkt.data[IP] = 0x45;
		pkt.data[IP + 1] = 0xb8; /* TOS, copied to the reply */
		put16(pkt.data + IP + 4, 0x1234);
		pkt.data[IP + 8] = 3;
		pkt.data[IP + 9] = 1;
		memcpy(pkt.data + IP + 12, gid_of("192.0.2.2") + 12, 4);
		memcpy(pkt.data + IP + 16, gid_of("192.0.2.1") + 12, 4);
		pkt.data[at] = 8;
	}
	for (uint32_t i = at + 4; i < pkt.len; i++)
		pkt.data[i] = (uint8_t)(i * 31 + 7);
	lengths_and_sums_set(&pkt, ipv6);
	return pkt;
}

static void
check_answer(const struct pkt *in, const struct pkt *out, bool ipv6)
{
	uint32_t at = header_len(ipv6), addr = ipv6 ? 16 : 4, src = IP + (ipv6 ? 8 : 12);

	assert_int_equal(out->len, in->len);
	assert_memory_equal(out->data, in->data + 6, 6);
	assert_memory_equal(out->data + 6, in->data, 6);
	assert_memory_equal(out->data + src, in->data + src + addr, addr);
	assert_memory_equal(out->data + src + addr, in->data + src, addr);
	assert_int_equal(out->data[at], ipv6 ? 129 : 0);
	assert_int_equal(out->data[at + 1], 0);
	assert_memory_equal(out->data + at + 4, in->data + at + 4, in->len - at - 4);
	assert_int_equal(message_sum(out->data, out->len, ipv6), 0);
	assert_int_equal(out->data[IP + (ipv6 ? 7 : 8)], 64);
	if (!ipv6) {
		assert_int_equal(fold(sum_bytes(0, out->data + IP, 20)), 0);
		assert_int_equal(out->data[IP + 1], 0xb8);
		assert_int_equal(out->data[IP + 4] << 8 | out->data[IP + 5], 0);
		assert_int_equal(out->data[IP + 6], 0x40); /* do not fragment */
	}
}

/* Echo requests of every size up to the maximum. */
TEST(echoes_come_back)
{
	struct net *net = net_of(1, 0);

	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++)
		for (uint32_t payload = 0; payload <= 8900;
			payload += payload < 100 ? 1 : 97) {
			struct pkt in = echo(ipv6, payload), out = frame_empty(ECHO_ROOM);
			enum drop_reason why;

			assert_true(net_rx(net, &in, &out, &why, T0));
			check_answer(&in, &out, ipv6);
			free(in.data);
			free(out.data);
		}
	net_destroy(net);
}

/* A reply is as long as its request: without room for it none is built, and nothing is
 * written beyond the room. */
TEST(no_reply_without_room)
{
	struct net *net = net_of(1, 0);

	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
		struct pkt in = echo(ipv6, 40);

		for (uint32_t room = 0; room <= in.len; room++) {
			struct pkt out = frame_empty(room);
			enum drop_reason why;

			assert_int_equal(
				net_rx(net, &in, &out, &why, T0), room == in.len);
			free(out.data);
		}
		free(in.data);
	}
	net_destroy(net);
}

/* The sender may have padded the frame: the reply has no padding. */
TEST(padding_does_not_come_back)
{
	struct net *net = net_of(1, 0);

	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
		struct pkt in = echo(ipv6, 1), wide = frame_empty(in.len + 17), out;

		memset(wide.data, 0xee, wide.room);
		memcpy(wide.data, in.data, in.len);
		wide.len = wide.room;
		out = net_ask(net, &wide, T0);
		assert_non_null(out.data);
		check_answer(&in, &out, ipv6);
		free(out.data);
		free(wide.data);
		free(in.data);
	}
	net_destroy(net);
}

static struct pkt
echo_with(bool ipv6, unsigned off, const void *bytes, size_t len)
{
	struct pkt pkt = echo(ipv6, 32);

	memcpy(pkt.data + off, bytes, len);
	lengths_and_sums_set(&pkt, ipv6);
	return pkt;
}

static struct pkt
echo_byte(bool ipv6, unsigned off, uint8_t byte)
{
	return echo_with(ipv6, off, &byte, 1);
}

TEST(only_local_echo_requests_are_answered)
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct net *net = net_of(1, 0);

	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
		uint32_t at = header_len(ipv6), addr = ipv6 ? 16 : 4,
			 src = IP + (ipv6 ? 8 : 12);

		assert_true(answered(net, echo(ipv6, 32)));
		assert_false(answered(net, echo_byte(ipv6, at, ipv6 ? 129 : 0)));
		assert_false(answered(net, echo_byte(ipv6, at, 3)));
		assert_false(answered(net, echo_byte(ipv6, at + 1, 1)));
		assert_false(answered(net, echo_byte(ipv6, IP + (ipv6 ? 6 : 9), 17)));
		assert_false(answered(net, echo_byte(ipv6, src + 2 * addr - 1, 3)));
		assert_false(answered(net, echo_with(ipv6, 0, all, 6)));
		assert_false(answered(net, echo_byte(ipv6, 5, 9)));
		assert_false(answered(net, echo_byte(ipv6, 12, 0x99)));
		/* From a group, from our own address. */
		assert_false(answered(net, echo_byte(ipv6, src, ipv6 ? 0xff : 0xe0)));
		assert_false(answered(net, echo_byte(ipv6, src + addr - 1, 1)));
	}
	assert_false(
		answered(net, echo_byte(false, IP + 15, 255))); /* from a broadcast */
	assert_false(
		answered(net, echo_with(false, IP + 16, gid_of("192.0.2.255") + 12, 4)));
	assert_false(answered(net, echo_byte(false, IP, 0x46))); /* options */
	assert_false(answered(net, echo_byte(false, IP, 0x65)));
	assert_false(answered(net, echo_byte(false, IP + 6, 0x20))); /* a fragment */
	assert_false(answered(net, echo_byte(false, IP + 7, 0x01)));
	assert_true(answered(net, echo_byte(false, IP + 6, 0x40)));
	assert_false(answered(net, echo_byte(true, IP, 0x40)));
	assert_int_equal(neigh_count(net, T0).all, 0); /* pings teach no neighbours */
	net_destroy(net);
}

TEST(wrong_checksums_are_ignored)
{
	struct net *net = net_of(1, 0);

	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
		struct pkt ref = echo(ipv6, 5);

		/* Any bit of header or message. For IPv6 the addresses are in the sum as
		 * well, or are not ours. */
		for (unsigned bit = 8 * (IP + (ipv6 ? 4 : 0)); bit < 8u * ref.len;
			bit++) {
			struct pkt in;

			ref.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			in = frame_exact(ref.data, ref.len);
			ref.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			/* the hop limit is not in the sum */
			if (ipv6 && bit / 8 == IP + 7) {
				free(in.data);
				continue;
			}
			if (answered(net, in))
				fail_msg("IPv%d bit %u", ipv6 ? 6 : 4, bit);
		}
		free(ref.data);
	}
	net_destroy(net);
}

TEST(the_port_may_have_checked_the_header)
{
	struct net *net = net_of(1, 0);
	struct pkt in = echo(false, 5), out;

	in.flags = PKT_RX_IPV4_CKSUM_BAD;
	assert_null(net_ask(net, &in, T0).data);
	in.data[IP + 10] ^= 1;
	in.flags = 0;
	assert_null(net_ask(net, &in, T0).data);
	in.flags = PKT_RX_IPV4_CKSUM_OK;
	out = net_ask(net, &in, T0);
	assert_non_null(out.data);
	free(out.data);
	free(in.data);
	net_destroy(net);
}

TEST(cut_frames_are_ignored)
{
	struct net *net = net_of(1, 0);

	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
		struct pkt ref = echo(ipv6, 20);

		for (uint16_t len = 0; len < ref.len; len++) {
			struct pkt in = frame_exact(ref.data, len);

			assert_false(answered(net, in));
			/* Also with matching length fields. */
			if (len >= header_len(ipv6) + 4 && len < header_len(ipv6) + 8) {
				in = frame_exact(ref.data, len);
				lengths_and_sums_set(&in, ipv6);
				assert_false(answered(net, in));
			}
		}
		free(ref.data);
	}
	net_destroy(net);
}
