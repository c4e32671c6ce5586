/* SPDX-License-Identifier: BSD-3-Clause */
/* Group memberships: which IGMP and MLD messages count, and how many of them. */
#include "net_group_fixture.h"

/* A frame with the given source, TTL, destination and group. */
struct from {
	const char *src, *dst, *group;
	unsigned ttl, type;
	bool counts;
};

/* A host beyond a router can send IGMP to our address, with a TTL that is 1 here. It neither makes us
 * report, nor changes the version of our reports, nor suppresses them. */
TEST(messages_from_beyond_the_link_are_dropped)
{
	static const struct from all[] = {
		{"192.0.2.254", "224.0.0.1", NULL, 1, 0x11, true},
		{"0.0.0.0", "224.0.0.1", NULL, 1, 0x11,
			true}, /* a switch without an address */
		{"10.9.8.7", "224.0.0.1", NULL, 1, 0x11,
			true}, /* a router's first address */
		{"192.0.2.254", "192.0.2.1", NULL, 1, 0x11, true},
		{"192.0.2.254", "239.1.2.3", "239.1.2.3", 1, 0x11, true},
		{"192.0.2.254", "192.0.2.1", "239.1.2.3", 1, 0x11, true},
		{"192.0.2.254", "224.0.0.1", NULL, 2, 0x11, false},
		{"10.9.8.7", "192.0.2.1", NULL, 1, 0x11, false},
		{"0.0.0.0", "192.0.2.1", NULL, 1, 0x11, false},
		{"192.0.2.254", "239.1.2.3", NULL, 1, 0x11, false},
		{"192.0.2.254", "224.0.0.1", "239.1.2.3", 1, 0x11, false},
		{"192.0.2.254", "239.1.2.9", "239.1.2.3", 1, 0x11, false},
		{"10.9.8.7", "192.0.2.1", "239.1.2.3", 1, 0x11, false},
	};
	uint8_t frame[128];

	net_start();
	assert_int_equal(net_join(net, gid_of("239.1.2.3")), 0);
	for (unsigned i = 0; i < 2; i++)
		expect_igmp(NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 4);
	for (const struct from *f = all; f < all + RTE_DIM(all); f++) {
		size_t len = igmp_frame_from(
			frame, f->src, f->ttl, f->type, 10, f->dst, f->group, 12);

		assert_int_equal(frame_receive(frame, len),
			f->counts ? DROP_none : DROP_membership);
		if (f->counts)
			expect_igmp(NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 2);
		expect_none(20 * NS_PER_SEC);
	}
	/* An older query from beyond the link changes no version. */
	assert_int_equal(frame_receive(frame, igmp_frame_from(frame, "10.9.8.7", 1, 0x11,
						      50, "192.0.2.1", NULL, 8)),
		DROP_membership);
	igmp_query(50, NULL, 12);
	expect_igmp(5 * NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 2);
	/* A report suppresses ours only if it is sent to its group. */
	igmp_query(50, NULL, 8);
	assert_int_equal(frame_receive(frame,
				 igmp_frame(frame, 0x16, 0, "192.0.2.1", "239.1.2.3", 8)),
		DROP_membership);
	expect_igmp(5 * NS_PER_SEC, 0x16, "239.1.2.3", "239.1.2.3", 0);
	assert_int_equal(net_join(net, gid_of("ff15::77")), 0);
	mld_query(1000, "ff15::77", 24);
	for (struct pkt f; (f = next_report(now + NS_PER_SEC)).data != NULL;)
		free(f.data);
	mld_query(1000, "ff15::77", 24);
	assert_int_equal(frame_receive(frame,
				 mld_frame(frame, 131, 0, "ff15::78", "ff15::77", 24)),
		DROP_membership);
	expect_mld(NS_PER_SEC, 131, "ff15::77", "ff15::77", 0);
	net_destroy(net);
}

/* Each query makes the port look at all its groups. So those that come faster than reports may leave are
 * dropped. */
TEST(queries_are_limited)
{
	unsigned taken = 0, dropped = 0;

	net_start();
	for (unsigned i = 0; i < 1000; i++) {
		enum drop_reason why = i % 2 == 0 ? igmp_query(10, NULL, 12)
						  : mld_query(1000, "ff15::77", 28);

		taken += why == DROP_none;
		dropped += why == DROP_membership_rate;
		now += NS_PER_MS / 10;
	}
	assert_int_equal(taken + dropped, 1000);
	assert_in_range(taken, GROUP_RATE_BURST, GROUP_RATE_BURST + 50);
	now += NS_PER_SEC;
	assert_int_equal(igmp_query(10, NULL, 12), DROP_none);
	net_destroy(net);
}
