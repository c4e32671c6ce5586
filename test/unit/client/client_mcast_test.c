/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's multicast groups from the program's side: the limits that its user has at the
 * daemon. */
#include "client_fixture.h"

#include "../../e2e/flow_end.h"

/* Returns a group by number. */
static union ibv_gid
group_no(int n)
{
	return (union ibv_gid){
		.raw = {[10] = 0xff, 0xff, 239, 1, (uint8_t)(n >> 8), (uint8_t)n}};
}

static int
group_attach_no(struct ibv_qp *qp, int n)
{
	union ibv_gid gid = group_no(n);

	return ibv_attach_mcast(qp, &gid, 0);
}

static int
group_detach_no(struct ibv_qp *qp, int n)
{
	union ibv_gid gid = group_no(n);

	return ibv_detach_mcast(qp, &gid, 0);
}

/* A QP joins as many groups as there may be. */
static void
groups_to_the_limit(const struct end *e, int limit)
{
	struct ibv_qp *qp = qp_make(e, IBV_QPT_UD, NULL);

	for (int i = 0; i < limit; i++)
		assert_int_equal(group_attach_no(qp, i), 0);
	assert_int_equal(group_attach_no(qp, limit), ENOMEM);
	assert_int_equal(group_attach_no(qp, 0), 0); /* it is attached already */
	for (int i = 0; i < limit; i++)
		assert_int_equal(group_detach_no(qp, i), 0);
	assert_int_equal(group_attach_no(qp, limit), 0);
	assert_int_equal(group_detach_no(qp, limit), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* As many QPs as may be join one group. */
static void
members_to_the_limit(const struct end *e, int limit)
{
	struct ibv_qp **qps = calloc((size_t)limit + 1, sizeof(struct ibv_qp *));

	assert_non_null(qps);
	for (int i = 0; i <= limit; i++) {
		qps[i] = qp_make(e, IBV_QPT_UD, NULL);
		assert_non_null(qps[i]);
		assert_int_equal(group_attach_no(qps[i], 0), i < limit ? 0 : ENOMEM);
	}
	for (int i = 0; i <= limit; i++) {
		if (i < limit)
			assert_int_equal(group_detach_no(qps[i], 0), 0);
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	}
	free(qps);
}

TEST(limits_of_groups_are_the_reported_ones)
{
	static const struct {
		unsigned mode;
		int groups, members, all;
	} rows[] = {
		{0700, 256, 256, 65536}, /* there are no other users */
		{0666, 144, 144, 36864}, /* a sixteenth is kept for each of 8 others */
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rocade_daemon_conf conf = {.socket_mode = rows[i].mode};
		struct ibv_device_attr attr;
		struct client_fixture f;
		struct end e;

		fixture_open(&f);
		daemon_begin(&f, &conf);
		end_open(&e);
		assert_int_equal(ibv_query_device(e.ctx, &attr), 0);
		assert_int_equal(attr.max_mcast_grp, rows[i].groups);
		assert_int_equal(attr.max_mcast_qp_attach, rows[i].members);
		assert_int_equal(attr.max_total_mcast_qp_attach, rows[i].all);
		groups_to_the_limit(&e, attr.max_mcast_grp);
		members_to_the_limit(&e, attr.max_mcast_qp_attach);
		assert_int_equal(end_close(&e), 0);
		fixture_close(&f);
	}
}
