/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "port_fixture.h"

/* fe80::ff:fe00:2 (02:00:00:00:00:02) asks the solicited-node group of 2001:db8::1 for
 * its MAC, written by hand from RFC 4861 4.3. The checksum was computed with another
 * program. */
static const uint8_t solicit[86] = {0x33, 0x33, 0xff, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86,
	0xdd,
	/* IPv6 */
	0x60, 0, 0, 0, 0, 32, 58, 255, /* from */ 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0xff, 0xfe, 0, 0, 2, /* to */ 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0,
	1,
	/* solicitation */
	135, 0, 0x4c, 0x5f, 0, 0, 0, 0, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 1,
	/* source link-layer address */
	1, 1, 2, 0, 0, 0, 0, 2};

#define HOP_LIMIT 21
#define SRC 22
#define DST 38
#define MSG 54
#define CODE 55
#define SUM 56
#define FLAGS 58
#define TARGET 62
#define OPT 78

/* Checksum byte by byte, without the code under test. */
static uint16_t
checksum(const uint8_t *data, uint32_t len)
{
	uint32_t sum = len - MSG + 58;

	for (uint32_t i = SRC; i < len; i++)
		if (i < MSG || i - MSG < len - MSG)
			sum += i % 2 == 0 ? (uint32_t)data[i] << 8 : data[i];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void
checksum_set(struct pkt *pkt)
{
	uint16_t sum;

	pkt->data[SUM] = pkt->data[SUM + 1] = 0;
	sum = checksum(pkt->data, pkt->len);
	pkt->data[SUM] = (uint8_t)(sum >> 8);
	pkt->data[SUM + 1] = (uint8_t)sum;
}

/* The solicitation with changed bytes, its length and checksum set again. */
static struct pkt
solicit_with(unsigned off, const void *bytes, size_t len)
{
	struct pkt pkt = frame_exact(solicit, sizeof(solicit));

	memcpy(pkt.data + off, bytes, len);
	checksum_set(&pkt);
	return pkt;
}

static struct pkt
solicit_with_byte(unsigned off, uint8_t byte)
{
	return solicit_with(off, &byte, 1);
}

static struct pkt
cut(struct pkt pkt, uint16_t len)
{
	struct pkt out = frame_exact(pkt.data, len);

	free(pkt.data);
	out.data[19] = (uint8_t)(len - MSG);
	checksum_set(&out);
	return out;
}

TEST(solicit_with_recomputes_the_checksum)
{
	struct pkt pkt = solicit_with(0, solicit, 1);

	assert_memory_equal(pkt.data, solicit, sizeof(solicit));
	free(pkt.data);
}

TEST(solicitation_is_answered_and_teaches)
{
	struct net *net = net_of(1, 0);
	struct pkt in = frame_exact(solicit, sizeof(solicit)), out;

	out = net_ask(net, &in, T0);
	assert_int_equal(out.len, 86);
	assert_memory_equal(out.data, solicit + 6, 6);
	assert_true(mac_is(out.data + 6, 1));
	assert_int_equal(out.data[HOP_LIMIT], 255);
	assert_memory_equal(out.data + SRC, gid_of("2001:db8::1"), 16);
	assert_memory_equal(out.data + DST, gid_of("fe80::ff:fe00:2"), 16);
	assert_int_equal(out.data[MSG], 136);
	assert_int_equal(out.data[FLAGS], 0x60); /* solicited, override, no router */
	assert_memory_equal(out.data + TARGET, gid_of("2001:db8::1"), 16);
	assert_int_equal(out.data[OPT], 2);
	assert_int_equal(out.data[OPT + 1], 1);
	assert_true(mac_is(out.data + OPT + 2, 1));
	assert_int_equal(checksum(out.data, out.len), 0);
	assert_true(net_knows(net, "fe80::ff:fe00:2"));
	free(out.data);
	free(in.data);
	net_destroy(net);
}

TEST(unicast_solicitation_without_option)
{
	struct net *net = net_of(1, 0);
	struct pkt in = solicit_with(DST, gid_of("2001:db8::1"), 16);

	in = cut(in, OPT);
	memcpy(in.data, (uint8_t[]){2, 0, 0, 0, 0, 1}, 6);
	assert_true(answered(net, in));
	assert_int_equal(neigh_count(net, T0).all, 0);
	net_destroy(net);
}

/* Duplicate address detection: the reply goes to all nodes (RFC 4861 7.2.4). */
TEST(duplicate_address_detection_is_answered)
{
	struct net *net = net_of(1, 0);
	uint8_t unspecified[16] = {0};
	struct pkt in = solicit_with(SRC, unspecified, 16), out;

	/* with an option: invalid */
	assert_false(answered(net, solicit_with(SRC, unspecified, 16)));
	in = cut(in, OPT);
	out = net_ask(net, &in, T0);
	assert_int_equal(out.len, 86);
	assert_memory_equal(out.data, ((uint8_t[]){0x33, 0x33, 0, 0, 0, 1}), 6);
	assert_memory_equal(out.data + DST, gid_of("ff02::1"), 16);
	assert_int_equal(out.data[FLAGS], 0x20);
	assert_int_equal(checksum(out.data, out.len), 0);
	assert_int_equal(neigh_count(net, T0).all, 0);
	free(out.data);
	free(in.data);
	/* Sent to the address itself it is no such solicitation. */
	in = cut(solicit_with(SRC, unspecified, 16), OPT);
	memcpy(in.data + DST, gid_of("2001:db8::1"), 16);
	checksum_set(&in);
	assert_false(answered(net, in));
	net_destroy(net);
}

TEST(invalid_solicitations_are_ignored)
{
	struct net *net = net_of(1, 0);
	struct pkt pkt;

	assert_false(answered(net, solicit_with_byte(HOP_LIMIT, 254)));
	assert_false(answered(net, solicit_with_byte(CODE, 1)));
	assert_false(answered(net, solicit_with_byte(TARGET + 15, 9)));
	assert_false(answered(net, solicit_with_byte(DST + 15, 9)));
	assert_false(answered(net, solicit_with(DST, gid_of("ff02::1"), 16)));
	assert_false(answered(net, solicit_with(TARGET, gid_of("ff02::1"), 16)));
	assert_false(answered(net, solicit_with(SRC, gid_of("ff02::2"), 16)));
	assert_false(answered(net, solicit_with(SRC, gid_of("2001:db8::1"), 16)));
	assert_false(answered(net, solicit_with_byte(OPT + 1, 0)));
	assert_false(answered(net, solicit_with_byte(OPT + 1, 2)));
	assert_false(answered(net, solicit_with_byte(OPT + 2, 0x03))); /* a group's MAC */
	assert_false(answered(net, solicit_with_byte(OPT + 7, 1)));    /* ours */
	assert_false(answered(net, solicit_with_byte(20, 17)));        /* UDP */
	assert_false(answered(net, solicit_with_byte(14, 0x40)));
	for (uint16_t len = OPT + 1; len < sizeof(solicit); len++)
		assert_false(answered(net, cut(solicit_with_byte(OPT, 1), len)));
	for (uint16_t len = MSG + 4; len < OPT; len++)
		assert_false(answered(net, cut(solicit_with_byte(OPT, 1), len)));
	for (size_t len = 0; len < sizeof(solicit); len++)
		assert_false(answered(net, frame_exact(solicit, len)));
	for (unsigned bit = 0; bit < 16; bit++) {
		pkt = frame_exact(solicit, sizeof(solicit));
		pkt.data[SUM + bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(answered(net, pkt));
	}
	assert_int_equal(neigh_count(net, T0).all, 0);
	net_destroy(net);
}

TEST(unknown_options_are_passed_over)
{
	struct net *net = net_of(1, 0);
	struct pkt pkt = frame_empty(sizeof(solicit) + 24);

	memcpy(pkt.data, solicit, OPT);
	memset(pkt.data + OPT, 0, 24);
	pkt.data[OPT] = 14; /* nonce, 3 * 8 bytes */
	pkt.data[OPT + 1] = 3;
	memcpy(pkt.data + OPT + 24, solicit + OPT, 8);
	pkt.len = sizeof(solicit) + 24;
	pkt.data[19] = 56;
	checksum_set(&pkt);
	assert_true(answered(net, pkt));
	assert_true(net_knows(net, "fe80::ff:fe00:2"));
	net_destroy(net);
}

TEST(solicitations_are_built_as_the_rfc_says)
{
	struct net *net = net_of(2, 0);
	struct pkt out;
	uint8_t mac[6];

	(void)net_resolve(net, gid_of("fe80::ff:fe00:9"), mac, T0);
	out = net_send(net, T0);
	assert_int_equal(out.len, 86);
	assert_memory_equal(out.data, ((uint8_t[]){0x33, 0x33, 0xff, 0, 0, 9}), 6);
	assert_memory_equal(out.data + SRC, gid_of("fe80::ff:fe00:2"), 16);
	assert_memory_equal(out.data + DST, gid_of("ff02::1:ff00:9"), 16);
	assert_memory_equal(out.data + TARGET, gid_of("fe80::ff:fe00:9"), 16);
	assert_int_equal(out.data[HOP_LIMIT], 255);
	assert_int_equal(out.data[MSG], 135);
	assert_int_equal(out.data[OPT], 1);
	assert_true(mac_is(out.data + OPT + 2, 2));
	assert_int_equal(checksum(out.data, out.len), 0);
	free(out.data);
	net_destroy(net);
}

/* 2001:db8::2 at this MAC advertises itself to 2001:db8::1, or to all nodes. */
static struct pkt
advert(uint8_t flags, uint8_t mac, const char *to)
{
	struct pkt pkt = frame_exact(solicit, sizeof(solicit));

	memcpy(pkt.data, (uint8_t[]){2, 0, 0, 0, 0, 1}, 6);
	memcpy(pkt.data + SRC, gid_of("2001:db8::2"), 16);
	memcpy(pkt.data + DST, gid_of(to), 16);
	pkt.data[MSG] = 136;
	pkt.data[FLAGS] = flags;
	memcpy(pkt.data + TARGET, gid_of("2001:db8::2"), 16);
	pkt.data[OPT] = 2;
	pkt.data[OPT + 7] = mac;
	checksum_set(&pkt);
	return pkt;
}

static int
resolve(struct net *net, uint8_t *last, uint64_t now)
{
	uint8_t mac[6] = {0};
	int ret = net_resolve(net, gid_of("2001:db8::2"), mac, now);

	*last = ret == 0 ? mac[5] : 0;
	return ret;
}

TEST(advertisements_are_learned_when_solicited)
{
	struct net *net = net_of(1, 0);
	uint8_t last;

	assert_false(answered(net, advert(0x60, 2, "2001:db8::1")));
	assert_int_equal(neigh_count(net, T0).all, 0); /* not solicited: not added */
	assert_int_equal(resolve(net, &last, T0), -EAGAIN);
	/* Without the link-layer address, to another host, solicited but to all nodes. */
	assert_false(answered(net, cut(advert(0x60, 2, "2001:db8::1"), OPT)));
	assert_false(answered(net, advert(0x60, 2, "2001:db8::7")));
	assert_false(answered(net, advert(0x60, 2, "ff02::1")));
	assert_false(answered(net, advert(0x60, 1, "2001:db8::1"))); /* with our MAC */
	assert_int_equal(resolve(net, &last, T0), -EAGAIN);
	assert_false(answered(net, advert(0x40, 2, "2001:db8::1")));
	assert_int_equal(resolve(net, &last, T0), 0);
	assert_int_equal(last, 2);
	/* Without override the known address stays (RFC 4861 7.2.5). */
	assert_false(answered(net, advert(0x40, 3, "2001:db8::1")));
	assert_int_equal(resolve(net, &last, T0), 0);
	assert_int_equal(last, 2);
	/* With override too, unless the known address is silent. */
	assert_false(answered(net, advert(0x20, 3, "ff02::1")));
	assert_int_equal(resolve(net, &last, T0), 0);
	assert_int_equal(last, 2);
	net_destroy(net);
}

/* A host advertises the address of another one, or solicits in its name (RFC 4861 7.2.3,
 * 7.2.5): the known link-layer address is asked first. */
TEST(spoofed_nd_redirects_nothing)
{
	struct net *net = net_of(1, 0);
	uint64_t step = NEIGH_CLAIM_NS + WHEEL_TICK_NS, now = T0;
	struct pkt pkt;
	uint8_t last;

	(void)resolve(net, &last, T0);
	assert_false(answered(net, advert(0x60, 2, "2001:db8::1")));
	for (unsigned i = 0; i < 2; i++, now += 2 * NEIGH_CLAIM_LOCK_NS) {
		pkt = i == 0 ? advert(0x60, 3, "2001:db8::1")
			     : solicit_with(SRC, gid_of("2001:db8::2"), 16);
		pkt.data[OPT + 7] = 3;
		checksum_set(&pkt);
		free(net_ask(net, &pkt, now).data);
		free(pkt.data);
		pkt = net_send(net, now);
		assert_memory_equal(pkt.data, ((uint8_t[]){2, 0, 0, 0, 0, 2}), 6);
		assert_int_equal(pkt.data[MSG], 135);
		free(pkt.data);
		/* The first time the neighbour answers. */
		pkt = advert(0x60, 2, "2001:db8::1");
		if (i == 0)
			assert_null(net_ask(net, &pkt, now).data);
		free(pkt.data);
		for (unsigned k = 0; k < 3; k++)
			free(net_send(net, now + k * step).data);
		assert_int_equal(resolve(net, &last, now + 3 * step), 0);
		assert_int_equal(last, i == 0 ? 2 : 3);
	}
	net_destroy(net);
}

/* IPv4 neighbours, and this host's IPv4 addresses, belong to ARP. */
TEST(ipv4_addresses_are_not_for_nd)
{
	struct net *net = net_of(1, 0);
	struct pkt pkt;
	uint8_t mac[6];

	pkt = solicit_with(TARGET, gid_of("192.0.2.1"), 16);
	memcpy(pkt.data + DST, gid_of("ff02::1:ff00:201"), 16);
	checksum_set(&pkt);
	assert_false(answered(net, pkt));
	neigh_seen(net, gid_of("192.0.2.2"), (uint8_t[]){2, 0, 0, 0, 0, 2}, true, T0);
	assert_int_equal(net_resolve(net, gid_of("192.0.2.2"), mac, T0), 0);
	pkt = advert(0x20, 9, "2001:db8::1");
	memcpy(pkt.data + TARGET, gid_of("192.0.2.2"), 16);
	checksum_set(&pkt);
	assert_false(answered(net, pkt));
	assert_true(net_deadline(net) > T0);
	assert_int_equal(net_resolve(net, gid_of("192.0.2.2"), mac, T0), 0);
	assert_true(mac_is(mac, 2));
	net_destroy(net);
}

/* A confirmation may lack the link-layer address. */
TEST(short_advertisement_confirms)
{
	struct net *net = net_of(1, 0);
	uint64_t late = T0 + NEIGH_REFRESH_NS - NS_PER_SEC;
	struct pkt pkt;
	uint8_t last;

	(void)resolve(net, &last, T0);
	assert_false(answered(net, advert(0x60, 2, "2001:db8::1")));
	pkt = cut(advert(0x40, 0, "2001:db8::1"), OPT);
	assert_null(net_ask(net, &pkt, late).data);
	free(pkt.data);
	pkt = net_send(net, T0 + NEIGH_REFRESH_NS + NS_PER_SEC);
	assert_null(pkt.data); /* not due yet */
	assert_int_equal(resolve(net, &last, late), 0);
	assert_int_equal(last, 2);
	net_destroy(net);
}
