/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "port_fixture.h"

/* An ARP request for 192.0.2.1 from 192.0.2.2 (02:00:00:00:00:02), after RFC 826. */
static const uint8_t request[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 2,
	0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 192, 0, 2, 2, 0, 0, 0, 0, 0,
	0, 192, 0, 2, 1};
static const uint8_t answer[42] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1,
	8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 2, 0, 0, 0, 0, 2, 192, 0, 2, 2};

#define OP 21
#define SENDER_MAC 22
#define SENDER_IP 28
#define TARGET_IP 38

static struct pkt
request_with(unsigned off, const void *bytes, size_t len)
{
	struct pkt pkt = frame_exact(request, sizeof(request));

	memcpy(pkt.data + off, bytes, len);
	return pkt;
}

TEST(request_is_answered_and_teaches)
{
	struct net *net = net_of(1, 0);
	struct pkt in = frame_exact(request, sizeof(request));
	struct pkt out = net_ask(net, &in, T0);

	assert_int_equal(out.len, 60);
	assert_memory_equal(out.data, answer, sizeof(answer));
	for (unsigned i = sizeof(answer); i < out.len; i++)
		assert_int_equal(out.data[i], 0);
	assert_true(net_knows(net, "192.0.2.2"));
	free(out.data);
	free(in.data);
	net_destroy(net);
}

TEST(tagged_requests_get_tagged_answers)
{
	static const uint8_t tag[4] = {0x81, 0x00, 0xe0, 100}; /* priority 7 */
	struct net *net = net_of(1, 100);
	uint8_t bytes[46];
	struct pkt in, out;

	memcpy(bytes, request, 12);
	memcpy(bytes + 12, tag, 4);
	memcpy(bytes + 16, request + 12, 30);
	in = frame_exact(bytes, sizeof(bytes));
	out = net_ask(net, &in, T0);
	assert_non_null(out.data);
	assert_int_equal(out.data[12] << 8 | out.data[13], 0x8100);
	assert_int_equal(out.data[14] << 8 | out.data[15], 100);
	assert_memory_equal(out.data + 16, answer + 12, 30);
	free(out.data);
	in.data[15] = 101;
	assert_false(answered(net, in));
	assert_false(answered(net, frame_exact(request, sizeof(request)))); /* untagged */
	bytes[14] = bytes[15] = 0; /* a priority, no VLAN: as untagged */
	assert_false(answered(net, frame_exact(bytes, sizeof(bytes))));
	assert_int_equal(neigh_count(net, T0).all, 1);
	net_destroy(net);
	net = net_of(1, 0);
	bytes[15] = 100;
	assert_false(answered(net, frame_exact(bytes, sizeof(bytes))));
	bytes[15] = 0;
	assert_true(answered(net, frame_exact(bytes, sizeof(bytes))));
	net_destroy(net);
}

/* An ARP probe (RFC 5227): answered, but nothing is learned from it. */
TEST(probe_is_answered_and_teaches_nothing)
{
	static const uint8_t zero[4];
	struct net *net = net_of(1, 0);

	assert_true(answered(net, request_with(SENDER_IP, zero, 4)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	net_destroy(net);
}

TEST(requests_for_others_are_ignored)
{
	static const uint8_t other_ip[4] = {192, 0, 2, 3}, ours[4] = {192, 0, 2, 1},
			     far[4] = {10, 0, 0, 1}, group[6] = {1, 0, 0, 0, 0, 2},
			     our_mac[6] = {2, 0, 0, 0, 0, 1},
			     other_mac[6] = {2, 0, 0, 0, 0, 9};
	struct net *net = net_of(1, 0);

	assert_false(answered(net, request_with(TARGET_IP, other_ip, 4)));
	assert_false(answered(net, request_with(0, other_mac, 6)));
	/* our own frame, looped back */
	assert_false(answered(net, request_with(6, our_mac, 6)));
	assert_false(answered(net, request_with(6, group, 6)));
	assert_false(answered(net, request_with(SENDER_MAC, group, 6)));
	assert_false(answered(net, request_with(SENDER_MAC, our_mac, 6)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	/* Answered, but not learned: our own address as the sender, an address of another
	 * network. */
	assert_true(answered(net, request_with(SENDER_IP, ours, 4)));
	assert_true(answered(net, request_with(SENDER_IP, far, 4)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	net_destroy(net);
}

TEST(other_hardware_and_protocols_are_ignored)
{
	struct net *net = net_of(1, 0);

	for (unsigned off = 14; off < 22; off++) {
		uint8_t wrong = request[off] ^ 0x04;

		assert_false(answered(net, request_with(off, &wrong, 1)));
	}
	for (size_t len = 0; len < sizeof(request); len++)
		assert_false(answered(net, frame_exact(request, len)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	net_destroy(net);
}

/* Gratuitous requests, requests for other addresses and unsolicited replies add no
 * neighbour. */
TEST(unsolicited_arp_adds_no_neighbour)
{
	static const uint8_t self[4] = {192, 0, 2, 2}, reply = 2;
	struct net *net = net_of(1, 0);

	assert_false(answered(net, request_with(TARGET_IP, self, 4)));
	assert_false(answered(net, request_with(OP, &reply, 1)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	net_destroy(net);
}

/* ---- Another MAC for a known neighbour ---- */

#define STEP (NEIGH_CLAIM_NS + WHEEL_TICK_NS)

/* A gratuitous request: 192.0.2.2 is at 02:00:00:00:00:n. */
static struct pkt
claim_of(uint8_t n)
{
	static const uint8_t self[4] = {192, 0, 2, 2};
	struct pkt pkt = request_with(TARGET_IP, self, 4);

	pkt.data[11] = pkt.data[SENDER_MAC + 5] = n;
	return pkt;
}

/* The MAC that packets to 192.0.2.2 go to. */
static uint8_t
user_mac(struct net *net, uint64_t now)
{
	uint8_t mac[6] = {0};

	assert_int_equal(net_resolve(net, gid_of("192.0.2.2"), mac, now), 0);
	return mac[5];
}

/* A port that uses 192.0.2.2 at 02:00:00:00:00:02. */
static struct net *
net_with_peer(void)
{
	struct net *net = net_of(1, 0);

	assert_true(answered(net, frame_exact(request, sizeof(request))));
	assert_int_equal(user_mac(net, T0), 2);
	return net;
}

/* Returns the last byte of the destination MAC of the one frame that is sent now; 0:
 * none is. */
static uint8_t
asked_mac(struct net *net, uint64_t now)
{
	struct pkt out = net_send(net, now), more = net_send(net, now);
	uint8_t n = out.data != NULL ? out.data[5] : 0;

	assert_null(more.data);
	free(out.data);
	return n;
}

/* A host that spoofs ARP does not redirect packets while the neighbour is there, and does
 * not make its users resolve again. It causes a request a second at most. */
TEST(spoofed_arp_redirects_nothing)
{
	struct net *net = net_with_peer();
	uint32_t generation = net_generation(net);
	unsigned asked = 0;
	struct pkt reply = frame_exact(request, sizeof(request));

	reply.data[OP] = 2;
	for (uint64_t now = T0; now < T0 + 20 * NS_PER_SEC; now += 10 * NS_PER_MS) {
		struct pkt claim = claim_of(7);
		uint8_t to;

		assert_null(net_ask(net, &claim, now).data);
		free(claim.data);
		to = asked_mac(net, now);
		if (to == 0)
			continue;
		assert_int_equal(to, 2);
		asked++;
		assert_null(net_ask(net, &reply, now).data);
		assert_int_equal(user_mac(net, now), 2);
	}
	assert_in_range(asked, 19, 20);
	assert_int_equal(net_generation(net), generation);
	free(reply.data);
	net_destroy(net);
}

/* The address has moved: the old MAC is asked twice, and remains silent. */
TEST(moved_address_is_followed)
{
	struct net *net = net_with_peer();
	uint32_t generation = net_generation(net);

	assert_false(answered(net, claim_of(7)));
	for (unsigned i = 0; i < NEIGH_CLAIM_TRIES; i++) {
		assert_int_equal(asked_mac(net, T0 + i * STEP), 2);
		assert_int_equal(user_mac(net, T0 + i * STEP), 2);
		assert_int_equal(net_generation(net), generation);
	}
	assert_int_equal(asked_mac(net, T0 + 2 * STEP), 0);
	assert_int_not_equal(net_generation(net), generation);
	/* The first user has the new MAC confirmed. */
	assert_int_equal(user_mac(net, T0 + 2 * STEP), 7);
	assert_int_equal(asked_mac(net, T0 + 2 * STEP), 7);
	assert_int_equal(neigh_count(net, T0).reachable, 0);
	assert_false(answered(net, claim_of(7)));
	assert_int_equal(neigh_count(net, T0).reachable, 1);
	net_destroy(net);
}

/* This host itself does not run for a time after each request: answers may be lost. The old
 * MAC is asked again, but not for ever, as a program may always poll this seldom. */
TEST(claim_waits_for_a_host_that_does_not_run)
{
	struct net *net = net_with_peer();
	uint64_t now = T0;
	unsigned asked = 0;

	assert_false(answered(net, claim_of(7)));
	for (;; now += NEIGH_CLAIM_NS + 2 * NEIGH_CLAIM_LATE_NS) {
		uint8_t to = asked_mac(net, now);

		if (to == 0)
			break;
		assert_int_equal(to, 2);
		assert_int_equal(user_mac(net, now), 2);
		assert_true(++asked < 100);
	}
	assert_int_equal(asked, NEIGH_CLAIM_TRIES + NEIGH_CLAIM_LATE_TRIES);
	assert_int_equal(user_mac(net, now), 7);
	net_destroy(net);
}

/* A host whose frames do not come from the MAC that it claims: its own entry or another
 * host's does not change. The answer to a request of ours may be such a frame. */
TEST(sender_must_be_the_frames_source)
{
	static const uint8_t third[6] = {2, 0, 0, 0, 0, 9};
	struct net *net = net_of(1, 0);
	struct pkt pkt;
	uint8_t mac[6];

	/* It is answered, but teaches nothing. */
	assert_true(answered(net, request_with(SENDER_MAC, third, 6)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	assert_int_equal(net_resolve(net, gid_of("192.0.2.2"), mac, T0), -EAGAIN);
	pkt = request_with(SENDER_MAC, third, 6);
	pkt.data[OP] = 2;
	assert_null(net_ask(net, &pkt, T0).data);
	assert_false(net_knows(net, "192.0.2.2"));
	assert_int_equal(asked_mac(net, T0), 0xff);
	assert_null(net_ask(net, &pkt, T0).data);
	assert_int_equal(user_mac(net, T0), 9);
	/* From now on it is no answer. */
	pkt.data[SENDER_MAC + 5] = 2;
	pkt.data[11] = 8;
	assert_null(net_ask(net, &pkt, T0 + 10 * NS_PER_SEC).data);
	assert_int_equal(asked_mac(net, T0 + 10 * NS_PER_SEC), 0);
	free(pkt.data);
	net_destroy(net);
}

TEST(requests_are_built_as_the_rfc_says)
{
	struct net *net = net_of(2, 0);
	struct pkt out;
	uint8_t mac[6];

	(void)net_resolve(net, gid_of("192.0.2.1"), mac, T0);
	out = net_send(net, T0);
	assert_int_equal(out.len, 60);
	assert_memory_equal(out.data, request, sizeof(request));
	free(out.data);
	net_destroy(net);
}

TEST(no_reply_without_room)
{
	struct net *net = net_of(1, 0);
	struct pkt in = frame_exact(request, sizeof(request));

	for (unsigned room = 0; room <= 60; room++) {
		struct pkt out = frame_empty(room);
		enum drop_reason why;

		assert_int_equal(net_rx(net, &in, &out, &why, T0), room == 60);
		free(out.data);
	}
	free(in.data);
	net_destroy(net);
}
