/* SPDX-License-Identifier: BSD-3-Clause */
/* Group memberships: which reports are sent when and in which version, and how queries
 * are answered. */
#include <errno.h>

#include "net_group_fixture.h"

/* A membership change is reported twice, the second time within a second. */
TEST(membership_changes_are_reported_twice)
{
	net_start();
	assert_int_equal(net_join(net, gid_of("239.1.2.3")), 0);
	assert_true(net_deadline(net) <= now);
	expect_igmp(0, 0x22, "224.0.0.22", "239.1.2.3", 4);
	expect_igmp(NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 4);
	expect_none(1000 * NS_PER_SEC);
	/* Joins are counted: the second leave ends the membership. */
	assert_int_equal(net_join(net, gid_of("239.1.2.3")), 0);
	assert_int_equal(net_leave(net, gid_of("239.1.2.3")), 0);
	expect_none(NS_PER_SEC);
	assert_int_equal(net_leave(net, gid_of("239.1.2.3")), 0);
	expect_igmp(0, 0x22, "224.0.0.22", "239.1.2.3", 3);
	expect_igmp(NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 3);
	assert_int_equal(net_leave(net, gid_of("239.1.2.3")), -EINVAL);

	assert_int_equal(net_join(net, gid_of("ff15::77")), 0);
	expect_mld(0, 143, "ff02::16", "ff15::77", 4);
	expect_mld(NS_PER_SEC, 143, "ff02::16", "ff15::77", 4);
	assert_int_equal(net_leave(net, gid_of("ff15::77")), 0);
	expect_mld(0, 143, "ff02::16", "ff15::77", 3);
	/* A join before the second report of the leave: both further reports are of the
	 * join. */
	assert_int_equal(net_join(net, gid_of("ff15::77")), 0);
	expect_mld(0, 143, "ff02::16", "ff15::77", 4);
	expect_mld(NS_PER_SEC, 143, "ff02::16", "ff15::77", 4);
	expect_none(1000 * NS_PER_SEC);
	assert_int_equal(net_join(net, gid_of("192.0.2.9")), -EINVAL);
	net_destroy(net);
}

/* The report comes within the query's maximum response time, at random. */
TEST(reports_come_within_response_time)
{
	uint64_t first, last;

	net_start();
	assert_int_equal(net_join(net, gid_of("239.1.2.3")), 0);
	for (unsigned i = 0; i < 2; i++)
		expect_igmp(NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 4);
	expect_none(2 * NS_PER_SEC);
	first = UINT64_MAX;
	last = 0;
	for (unsigned i = 0; i < 50; i++) {
		uint64_t asked = now;

		igmp_query(100, NULL, 12); /* 10 s */
		expect_igmp(10 * NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 2);
		first = RTE_MIN(first, now - asked);
		last = RTE_MAX(last, now - asked);
		expect_none(20 * NS_PER_SEC);
	}
	assert_true(first < 2 * NS_PER_SEC && last > 8 * NS_PER_SEC &&
		    last <= 10 * NS_PER_SEC);
	igmp_query(10, "239.1.2.3", 12);
	expect_igmp(NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 2);
	igmp_query(10, "239.1.2.9", 12); /* a group that is not joined */
	expect_none(20 * NS_PER_SEC);
	/* Two queries, one report. */
	igmp_query(100, NULL, 12);
	igmp_query(10, "239.1.2.3", 12);
	expect_igmp(NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 2);
	expect_none(20 * NS_PER_SEC);

	assert_int_equal(net_join(net, gid_of("ff15::77")), 0);
	for (unsigned i = 0; i < 2; i++)
		expect_mld(NS_PER_SEC, 143, "ff02::16", "ff15::77", 4);
	mld_query(5000, "ff15::77", 28);
	expect_mld(5 * NS_PER_SEC, 143, "ff02::16", "ff15::77", 2);
	expect_none(20 * NS_PER_SEC);
	net_destroy(net);
}

/* All-hosts and interface-local groups are not reported; the solicited-node group is. */
TEST(all_hosts_groups_are_not_reported)
{
	struct pkt frame;
	unsigned n = 0;

	net_start();
	assert_int_equal(net_join(net, gid_of("224.0.0.1")), 0);
	assert_int_equal(net_join(net, gid_of("ff02::1")), 0);
	assert_int_equal(net_join(net, gid_of("ff01::99")), 0);
	expect_none(20 * NS_PER_SEC);
	assert_int_equal(net_leave(net, gid_of("224.0.0.1")), 0);
	expect_none(20 * NS_PER_SEC);
	mld_query(1000, NULL, 28);
	/* 2001:db8::1 and the link-local address have the same solicited-node group. */
	expect_mld(NS_PER_SEC, 143, "ff02::16", "ff02::1:ff00:1", 2);
	expect_none(20 * NS_PER_SEC);
	/* As after a link that was down. */
	net_announce(net);
	while ((frame = next_report(now + 5 * NS_PER_SEC)).data != NULL) {
		n++;
		free(frame.data);
	}
	assert_int_equal(n, 2);
	net_destroy(net);
}

/* An older querier is answered in its version for as long as it is heard. */
TEST(older_querier_is_answered_in_its_version)
{
	uint8_t frame[128];

	net_start();
	assert_int_equal(net_join(net, gid_of("239.1.2.3")), 0);
	for (unsigned i = 0; i < 2; i++)
		expect_igmp(NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 4);
	igmp_query(50, NULL, 8);
	expect_igmp(5 * NS_PER_SEC, 0x16, "239.1.2.3", "239.1.2.3", 0);
	/* Another member's report suppresses ours. */
	igmp_query(50, NULL, 8);
	frame_receive(frame, igmp_frame(frame, 0x16, 0, "239.1.2.3", "239.1.2.3", 8));
	expect_none(20 * NS_PER_SEC);
	assert_int_equal(net_leave(net, gid_of("239.1.2.3")), 0);
	expect_igmp(0, 0x17, "224.0.0.2", "239.1.2.3", 0);
	expect_none(20 * NS_PER_SEC);
	assert_int_equal(net_join(net, gid_of("239.1.2.3")), 0);
	for (unsigned i = 0; i < 2; i++)
		expect_igmp(NS_PER_SEC, 0x16, "239.1.2.3", "239.1.2.3", 0);
	igmp_query(0, NULL, 8); /* version 1: 10 s */
	expect_igmp(10 * NS_PER_SEC, 0x12, "239.1.2.3", "239.1.2.3", 0);
	now += GROUP_OLDER_QUERIER_NS;
	igmp_query(10, NULL, 12);
	expect_igmp(NS_PER_SEC, 0x22, "224.0.0.22", "239.1.2.3", 2);

	assert_int_equal(net_join(net, gid_of("ff15::77")), 0);
	for (unsigned i = 0; i < 2; i++)
		expect_mld(NS_PER_SEC, 143, "ff02::16", "ff15::77", 4);
	mld_query(1000, "ff15::77", 24);
	expect_mld(NS_PER_SEC, 131, "ff15::77", "ff15::77", 0);
	mld_query(1000, "ff15::77", 24);
	frame_receive(frame, mld_frame(frame, 131, 0, "ff15::77", "ff15::77", 24));
	expect_none(20 * NS_PER_SEC);
	assert_int_equal(net_leave(net, gid_of("ff15::77")), 0);
	expect_mld(0, 132, "ff02::2", "ff15::77", 0);
	expect_none(20 * NS_PER_SEC);
	net_destroy(net);
}

/* Response times with a mantissa and an exponent. */
TEST(response_times_with_exponent)
{
	uint64_t latest = 0;

	net_start();
	assert_int_equal(net_join(net, gid_of("239.1.2.3")), 0);
	assert_int_equal(net_join(net, gid_of("ff15::77")), 0);
	for (struct pkt f; (f = next_report(now + 2 * NS_PER_SEC)).data != NULL;)
		free(f.data);
	for (unsigned i = 0; i < 40; i++) {
		uint64_t asked = now;

		igmp_query(0x8F, NULL, 12); /* 31 << 3, 24.8 s */
		expect_igmp(24800 * NS_PER_MS, 0x22, "224.0.0.22", "239.1.2.3", 2);
		latest = RTE_MAX(latest, now - asked);
	}
	assert_true(latest > 18 * NS_PER_SEC);
	latest = 0;
	for (unsigned i = 0; i < 40; i++) {
		uint64_t asked = now;

		mld_query(0x8FFF, "ff15::77", 28); /* 8191 << 3 ms, 65.5 s */
		expect_mld(65528 * NS_PER_MS, 143, "ff02::16", "ff15::77", 2);
		latest = RTE_MAX(latest, now - asked);
	}
	assert_true(latest > 45 * NS_PER_SEC);
	net_destroy(net);
}

/* Truncated, with a wrong checksum, from beyond a router: no query is answered, and no
 * byte beyond the end is read. */
TEST(invalid_queries_are_ignored)
{
	uint8_t frame[128];
	size_t len;

	net_start();
	assert_int_equal(net_join(net, gid_of("239.1.2.3")), 0);
	assert_int_equal(net_join(net, gid_of("ff15::77")), 0);
	for (struct pkt f; (f = next_report(now + 2 * NS_PER_SEC)).data != NULL;)
		free(f.data);
	len = igmp_frame(frame, 0x11, 10, "224.0.0.1", NULL, 12);
	for (size_t cut = ETH; cut < len; cut++)
		frame_receive(frame, cut);
	for (size_t at = ETH; at < len; at++) {
		frame[at] ^= 0x11;
		frame_receive(frame, len);
		frame[at] ^= 0x11;
	}
	len = mld_frame(frame, 130, 10, "ff02::1", NULL, 28);
	for (size_t cut = ETH; cut < len; cut++)
		frame_receive(frame, cut);
	for (unsigned more = 1; more < 256; more++) { /* missing options */
		frame[ETH + 41] = (uint8_t)more;
		frame_receive(frame, len);
	}
	frame[ETH + 41] = 0;
	frame[ETH + 7] = 2; /* hop limit 2: forwarded by a router */
	frame_receive(frame, len);
	expect_none(100 * NS_PER_SEC);
	net_destroy(net);
}

/* A host on the link sends a query to be answered at once. The reports leave at a limited
 * rate; those for a group that is asked for alone, and changes, do not wait behind the
 * others. */
TEST(reports_are_paced)
{
	uint8_t gid[16];
	unsigned n = 0;
	struct pkt f;

	net_start();
	memcpy(gid, gid_of("239.1.0.0"), 16);
	for (unsigned i = 0; i < NET_MAX_GROUPS; i++) {
		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
		assert_int_equal(net_join(net, gid), 0);
	}
	while ((f = next_report(now + 60 * NS_PER_SEC)).data != NULL)
		free(f.data);
	igmp_query(1, NULL, 12); /* 100 ms */
	now += 100 * NS_PER_MS + WHEEL_TICK_NS;
	while ((f = net_send(net, now)).data != NULL) {
		n++;
		free(f.data);
	}
	assert_int_equal(n, GROUP_RATE_BURST);
	/* There is nothing to do before the next one may leave. */
	assert_in_range(net_deadline(net), now + 1, now + GROUP_RATE_NS);
	igmp_query(1, "239.1.3.255", 12);
	expect_igmp(GROUP_RATE_NS, 0x22, "224.0.0.22", "239.1.3.255", 2);
	assert_int_equal(net_leave(net, gid_of("239.1.2.7")), 0);
	expect_igmp(GROUP_RATE_NS, 0x22, "224.0.0.22", "239.1.2.7", 3);
	/* More queries do not bring more reports. */
	for (n = 0; n < 500; n++) {
		igmp_query(1, NULL, 12);
		f = next_report(now + GROUP_RATE_NS);
		assert_non_null(f.data);
		free(f.data);
		assert_null(net_send(net, now).data);
	}
	for (n = 0; (f = next_report(now + 10 * NS_PER_SEC)).data != NULL; n++)
		free(f.data);
	assert_in_range(n, 1, NET_MAX_GROUPS);
	net_destroy(net);
}

/* Each MAC is listed once, and the promised number of groups can be joined. */
TEST(group_macs_and_limits)
{
	static uint8_t macs[NET_MAX_MACS][6];
	uint8_t gid[16];

	net_start();
	assert_int_equal(net_group_macs(net, macs, NET_MAX_MACS), 3);
	assert_memory_equal(macs[2], ((uint8_t[]){0x33, 0x33, 0xff, 0, 0, 1}), 6);
	assert_int_equal(net_join(net, gid_of("239.1.2.3")), 0);
	assert_int_equal(net_join(net, gid_of("238.129.2.3")), 0); /* the same MAC */
	assert_int_equal(net_group_macs(net, macs, NET_MAX_MACS), 4);
	assert_memory_equal(
		macs[3], ((uint8_t[]){0x01, 0x00, 0x5e, 0x01, 0x02, 0x03}), 6);
	assert_int_equal(net_group_macs(net, macs, 2), 2);
	memcpy(gid, gid_of("ff15::"), 16);
	for (unsigned i = 2; i < NET_MAX_GROUPS; i++) {
		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
		assert_int_equal(net_join(net, gid), 0);
	}
	for (unsigned i = 0; i < NET_MAX_ADDRS + 1; i++) {
		gid[13] = (uint8_t)(i + 1);
		if (net_join(net, gid) == -ENOSPC)
			break;
		assert_true(i < NET_MAX_ADDRS);
	}
	assert_true(net_group_macs(net, macs, NET_MAX_MACS) <= NET_MAX_MACS);
	net_destroy(net);
}

/* Returns a group by number. */
static const uint8_t *
group_no(unsigned n)
{
	static uint8_t gid[16];

	memcpy(gid, gid_of("239.1.0.0"), 16);
	gid[14] = (uint8_t)(n >> 8);
	gid[15] = (uint8_t)n;
	return gid;
}

/* Joins as many groups as there is room for. Returns their number. */
static unsigned
groups_fill(void)
{
	struct pkt f;
	unsigned n = 0;

	while (n < 2 * NET_GROUPS && net_join(net, group_no(n)) == 0)
		n++;
	assert_in_range(n, NET_MAX_GROUPS, NET_GROUPS);
	while ((f = next_report(now + 60 * NS_PER_SEC)).data != NULL)
		free(f.data);
	return n;
}

struct seen_report {
	uint8_t record;
	uint8_t group[4];
};

/* Returns how many of the reports have this record of the group. */
static unsigned
reports_of(const struct seen_report *seen, unsigned n, unsigned record, unsigned group)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++)
		count += seen[i].record == record &&
			 memcmp(seen[i].group, group_no(group) + 12, 4) == 0;
	return count;
}

/* Takes the reports that come until there have been none for 60 s. Returns their number. */
static unsigned
reports_take(struct seen_report *seen, unsigned max)
{
	unsigned n = 0;
	struct pkt f;

	while ((f = next_report(now + 60 * NS_PER_SEC)).data != NULL) {
		const uint8_t *msg = f.data + ETH + IP4;

		assert_true(n < max);
		seen[n].record = msg[8];
		memcpy(seen[n++].group, msg + 12, 4);
		free(f.data);
	}
	return n;
}

/* A group that was left keeps its place until that was reported, unless another group
 * needs it: then that with the fewest reports to come gives way. */
TEST(left_group_makes_room)
{
	struct seen_report seen[8];
	unsigned all, n;

	net_start();
	all = groups_fill();
	assert_int_equal(net_join(net, group_no(all)), -ENOSPC);
	assert_int_equal(net_leave(net, group_no(2)), 0);
	expect_igmp(0, 0x22, "224.0.0.22", "239.1.0.2", 3);
	assert_int_equal(net_leave(net, group_no(1)), 0);
	assert_int_equal(net_leave(net, group_no(3)), 0);
	assert_int_equal(net_join(net, group_no(all)), 0);
	n = reports_take(seen, RTE_DIM(seen));
	assert_int_equal(n, 6);
	assert_int_equal(reports_of(seen, n, 3, 1), 2);
	assert_int_equal(reports_of(seen, n, 3, 3), 2);
	assert_int_equal(reports_of(seen, n, 4, all), 2);
	/* All of it is as for any other group. */
	igmp_query(10, "239.1.0.2", 12);
	expect_none(20 * NS_PER_SEC);
	assert_int_equal(net_leave(net, group_no(all)), 0);
	assert_int_equal(net_leave(net, group_no(all)), -EINVAL);
	assert_int_equal(reports_take(seen, RTE_DIM(seen)), 2);
	net_destroy(net);
}

/* A program changes its groups faster than changes are reported. */
TEST(groups_are_swapped_without_a_pass)
{
	static struct seen_report seen[4 * NET_GROUPS];
	unsigned all, n;

	net_start();
	all = groups_fill();
	for (unsigned i = 0; i < 3 * all; i++) {
		assert_int_equal(net_leave(net, group_no(i)), 0);
		assert_int_equal(net_join(net, group_no(i + all)), 0);
	}
	assert_int_equal(net_join(net, group_no(0)), -ENOSPC);
	n = reports_take(seen, RTE_DIM(seen));
	assert_int_equal(n, 2 * all);
	for (unsigned i = 3 * all; i < 4 * all; i += 100)
		assert_int_equal(reports_of(seen, n, 4, i), 2);
	net_destroy(net);
}
