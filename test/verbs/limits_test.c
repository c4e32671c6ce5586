/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits that ibv_query_device() reports are limits: a program can make that number of objects, and not
 * one more. A table has each member of struct ibv_device_attr. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/rocade.h>

#include "case.h"

#define QPS 300

static struct rocade_port *ports[2];
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_device_attr attr;
static uint8_t byte;

/* ---- Objects ---- */

static void *
pd_make(void)
{
	return ibv_alloc_pd(context);
}

static int
pd_end(void *object)
{
	return ibv_dealloc_pd(object);
}

static void *
cq_make(void)
{
	return ibv_create_cq(context, 1, NULL, NULL, 0);
}

static int
cq_end(void *object)
{
	return ibv_destroy_cq(object);
}

static void *
srq_make(void)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};

	return ibv_create_srq(pd, &srq);
}

static int
srq_end(void *object)
{
	return ibv_destroy_srq(object);
}

static void *
qp_make(void)
{
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {1, 1, 1, 1, 0}};

	return ibv_create_qp(pd, &qp);
}

static int
qp_end(void *object)
{
	return ibv_destroy_qp(object);
}

static void *
mr_make(void)
{
	return ibv_reg_mr(pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE);
}

static int
mr_end(void *object)
{
	return ibv_dereg_mr(object);
}

static void *
mw_make(void)
{
	return ibv_alloc_mw(pd, IBV_MW_TYPE_1);
}

static int
mw_end(void *object)
{
	return ibv_dealloc_mw(object);
}

/* ---- Sizes ---- */

static void *
qp_of(struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = cap};

	return ibv_create_qp(pd, &qp);
}

static void *
qp_wr(int n)
{
	return qp_of((struct ibv_qp_cap){(uint32_t)n, (uint32_t)n, 1, 1, 0});
}

static void *
qp_sge(int n)
{
	return qp_of((struct ibv_qp_cap){1, 1, (uint32_t)n, (uint32_t)n, 0});
}

static void *
qp_read_sge(int n)
{
	return qp_of((struct ibv_qp_cap){1, 1, (uint32_t)n, 1, 0});
}

static void *
cqe(int n)
{
	return ibv_create_cq(context, n, NULL, NULL, 0);
}

static void *
srq_of(int wr, int sge)
{
	struct ibv_srq_init_attr srq = {
		.attr = {.max_wr = (uint32_t)wr, .max_sge = (uint32_t)sge}};

	return ibv_create_srq(pd, &srq);
}

static void *
srq_wr(int n)
{
	return srq_of(n, 1);
}

static void *
srq_sge(int n)
{
	return srq_of(1, n);
}

/* ---- The table ---- */

static const struct row {
	const char *name;
	size_t at, size;
	void *(*make)(void); /* makes one of the objects whose number is limited */
	void *(*make_of)(int size);
	int (*end)(void *object);
	int64_t least; /* -1: another test checks it, or it is no limit */
} rows[] = {
#define MEMBER(name) #name, offsetof(struct ibv_device_attr, name), sizeof(attr.name)
	{MEMBER(fw_ver), .least = -1},
	{MEMBER(node_guid), .least = -1},
	{MEMBER(sys_image_guid), .least = -1},
	{MEMBER(max_mr_size), .least = -1}, /* all of the address space */
	{MEMBER(page_size_cap), .least = -1},
	{MEMBER(vendor_id), .least = -1},
	{MEMBER(vendor_part_id), .least = -1},
	{MEMBER(hw_ver), .least = -1},
	{MEMBER(max_qp), qp_make, NULL, qp_end, QPS},
	{MEMBER(max_qp_wr), NULL, qp_wr, qp_end, 1024},
	{MEMBER(device_cap_flags), .least = -1},
	{MEMBER(max_sge), NULL, qp_sge, qp_end, 4},
	{MEMBER(max_sge_rd), NULL, qp_read_sge, qp_end, 4},
	{MEMBER(max_cq), cq_make, NULL, cq_end, 1024},
	{MEMBER(max_cqe), NULL, cqe, cq_end, 65536},
	{MEMBER(max_mr), mr_make, NULL, mr_end, 65536},
	{MEMBER(max_pd), pd_make, NULL, pd_end, 1024},
	{MEMBER(max_qp_rd_atom), .least = -1}, /* qp_test.c */
	{MEMBER(max_ee_rd_atom), .least = 0},
	{MEMBER(max_res_rd_atom), .least = -1}, /* the product of two others */
	{MEMBER(max_qp_init_rd_atom), .least = -1},
	{MEMBER(max_ee_init_rd_atom), .least = 0},
	{MEMBER(atomic_cap), .least = -1},
	{MEMBER(max_ee), .least = 0},
	{MEMBER(max_rdd), .least = 0},
	{MEMBER(max_mw), mw_make, NULL, mw_end, 65536},
	{MEMBER(max_raw_ipv6_qp), .least = 0},
	{MEMBER(max_raw_ethy_qp), .least = 0},
	{MEMBER(max_mcast_grp), .least = -1}, /* mcast_test.c, with the next two */
	{MEMBER(max_mcast_qp_attach), .least = -1},
	{MEMBER(max_total_mcast_qp_attach), .least = -1},
	{MEMBER(max_ah), .least = -1}, /* memory alone limits them */
	{MEMBER(max_fmr), .least = 0},
	{MEMBER(max_map_per_fmr), .least = 0},
	{MEMBER(max_srq), srq_make, NULL, srq_end, 1024},
	{MEMBER(max_srq_wr), NULL, srq_wr, srq_end, 65536},
	{MEMBER(max_srq_sge), NULL, srq_sge, srq_end, 4},
	{MEMBER(max_pkeys), .least = -1},
	{MEMBER(local_ca_ack_delay), .least = -1},
	{MEMBER(phys_port_cnt), .least = -1},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int
limit_of(const struct row *row)
{
	int limit;

	assert_int_equal(row->size, sizeof(limit));
	memcpy(&limit, (const uint8_t *)&attr + row->at, sizeof(limit));
	return limit;
}

TEST(each_member_is_in_the_table)
{
	size_t end = 0;

	for (unsigned i = 0; i < ROWS; i++) {
		if (rows[i].at < end || rows[i].at - end >= sizeof(uint64_t))
			fail_msg("a member before %s is missing", rows[i].name);
		end = rows[i].at + rows[i].size;
	}
	assert_true(sizeof(attr) - end < sizeof(uint64_t));
}

/* The objects of the fixture count. */
static int
objects_before(const struct row *row)
{
	return row->make == pd_make || row->make == cq_make;
}

static void
objects_run(const struct row *row)
{
	int limit = limit_of(row), n = 0;
	void **objects = calloc((size_t)limit + 1, sizeof(*objects));

	assert_non_null(objects);
	while (n <= limit && (objects[n] = row->make()) != NULL)
		n++;
	if (n != limit - objects_before(row))
		fail_msg("%s is %d, and %d could be made", row->name, limit,
			n + objects_before(row));
	assert_int_equal(errno, ENOMEM);
	/* One that ends makes room for another. */
	assert_int_equal(row->end(objects[n - 1]), 0);
	objects[n - 1] = row->make();
	assert_non_null(objects[n - 1]);
	while (n-- != 0)
		assert_int_equal(row->end(objects[n]), 0);
	free(objects);
}

static void
size_run(const struct row *row)
{
	int limit = limit_of(row);
	void *object = row->make_of(limit);

	if (object == NULL)
		fail_msg("%s is %d, and cannot be had: %s", row->name, limit,
			strerror(errno));
	assert_int_equal(row->end(object), 0);
	if (row->make_of(limit + 1) != NULL || errno != EINVAL)
		fail_msg("%s is %d, and more can be had: %s", row->name, limit,
			strerror(errno));
}

TEST(limits_are_limits)
{
	for (unsigned i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];

		if (row->least < 0)
			continue;
		if (row->least == 0)
			assert_int_equal(limit_of(row), 0); /* absent */
		else if (limit_of(row) < row->least)
			fail_msg("%s is %d", row->name, limit_of(row));
		if (row->make != NULL)
			objects_run(row);
		else if (row->make_of != NULL)
			size_run(row);
	}
}

static int
setup(void **state)
{
	struct rocade_port_conf conf[2];

	memset(conf, 0, sizeof(conf));
	for (unsigned i = 0; i < 2; i++) {
		conf[i].size = sizeof(conf[i]);
		conf[i].engines = 1;
		conf[i].max_qp = QPS;
		conf[i].addresses = i == 0 ? "192.0.2.1/24" : "192.0.2.2/24";
	}
	assert_int_equal(rocade_open_loop(conf, ports), 0);
	context = ibv_open_device(rocade_port_device(ports[0]));
	assert_non_null(context);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	assert_int_equal(ibv_query_device(context, &attr), 0);
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(rocade_close_port(ports[0]), 0);
	assert_int_equal(rocade_close_port(ports[1]), 0);
	return 0;
}

TEST_GROUP(setup, teardown)
