/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening ports, the device list, queries, protection domains, regions, CQs: what the man
 * pages say, and the errors. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "pair.h"

static struct pair pair;

static int
setup(void **state)
{
	(void)state;
	pair_open(&pair, &(struct pair_conf){.srq_wr = 16});
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	pair_close(&pair);
	return 0;
}

static struct rocade_port_conf
port_conf(const char *addresses)
{
	return (struct rocade_port_conf){
		.size = sizeof(struct rocade_port_conf), .addresses = addresses};
}

/* Refused, with a sentence that names the option, and nothing is open afterwards. */
static void
refused(const struct rocade_port_conf *a, int err, const char *word)
{
	struct rocade_port_conf conf[2] = {*a, port_conf("192.0.2.2/24")};
	struct rocade_port *ports[2] = {NULL, NULL};
	struct ibv_device **list;
	int n;

	assert_int_equal(rocade_open_loop(conf, ports), err);
	if (strstr(rocade_error(), word) == NULL)
		fail_msg("\"%s\" does not name %s", rocade_error(), word);
	assert_null(ports[0]);
	list = ibv_get_device_list(&n);
	for (int i = 0; i < n; i++)
		assert_null(strstr(ibv_get_device_name(list[i]), "rocade"));
	if (list != NULL)
		ibv_free_device_list(list);
}

static void
test_open_refuses(void **state)
{
	struct rocade_port_conf c;

	(void)state;
	c = port_conf("192.0.2.1/24");
	c.size = 4;
	refused(&c, EINVAL, "size");
	c = port_conf(NULL);
	refused(&c, EINVAL, "addresses");
	c = port_conf("192.0.2.1/24,nonsense");
	refused(&c, EINVAL, "nonsense");
	c = port_conf("192.0.2.1/33");
	refused(&c, EINVAL, "192.0.2.1/33");
	c = port_conf("224.0.0.1/24");
	refused(&c, EINVAL, "address");
	c = port_conf("192.0.2.1/24");
	c.gateway4 = "2001:db8::1";
	refused(&c, EINVAL, "gateway4");
	c = port_conf("192.0.2.1/24");
	c.mtu = 575;
	refused(&c, EINVAL, "mtu");
	c.mtu = 9001;
	refused(&c, EINVAL, "mtu");
	c = port_conf("192.0.2.1/24");
	c.vlan = 4095;
	refused(&c, EINVAL, "vlan");
	c = port_conf("192.0.2.1/24");
	c.engines = 17;
	refused(&c, EINVAL, "engines");
	c.engines = 2; /* the other end has one */
	refused(&c, EINVAL, "engines");
	c = port_conf("192.0.2.1/24");
	c.qpn_base = 1;
	refused(&c, EINVAL, "qpn_base");
	c.qpn_base = 0xFFFFFF;
	refused(&c, EINVAL, "qpn_base");
	c.qpn_base = 0xFFFFF0; /* 65536 of them do not fit behind it */
	refused(&c, EINVAL, "qpn_base");
	c = port_conf("192.0.2.1/24");
	c.max_qp = 131073;
	refused(&c, EINVAL, "max_qp");
	c = port_conf("192.0.2.1/24");
	c.name = "";
	refused(&c, EINVAL, "name");
}

static void
test_open_names(void **state)
{
	struct rocade_port_conf conf[2] = {
		port_conf("192.0.2.1/24"), port_conf("192.0.2.2/24")};
	struct rocade_port *ports[2];
	struct rocade_port *more[2] = {NULL, NULL};

	(void)state;
	conf[0].name = "left";
	conf[1].name = "left";
	assert_int_equal(rocade_open_loop(conf, ports), EEXIST);
	assert_non_null(strstr(rocade_error(), "left"));
	conf[1].name = "right";
	assert_int_equal(rocade_open_loop(conf, ports), 0);
	assert_string_equal(ibv_get_device_name(rocade_port_device(ports[1])), "right");
	conf[0].name = NULL;
	assert_int_equal(rocade_open_loop(conf, more), EEXIST); /* "right" again */
	conf[1].name = NULL;
	assert_int_equal(rocade_open_loop(conf, more), 0);
	assert_string_equal(ibv_get_device_name(rocade_port_device(more[0])), "rocade0");
	assert_string_equal(ibv_get_device_name(rocade_port_device(more[1])), "rocade1");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rocade_close_port(ports[i]), 0);
		assert_int_equal(rocade_close_port(more[i]), 0);
	}
}

static void
test_version(void **state)
{
	(void)state;
	assert_string_equal(rocade_version(), "0.1.0");
}

static void
test_device_list(void **state)
{
	struct ibv_device **list, **again;
	int n;

	(void)state;
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_true(n >= 2);
	/* Ours stand first; the pointers are the same in every list. */
	assert_ptr_equal(list[0], rocade_port_device(pair.a.port));
	assert_ptr_equal(list[1], rocade_port_device(pair.b.port));
	assert_null(list[n]);
	again = ibv_get_device_list(NULL);
	assert_ptr_equal(again[0], list[0]);
	assert_string_equal(ibv_get_device_name(list[0]), "rocade0");
	assert_int_equal(list[0]->node_type, IBV_NODE_CA);
	assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_IB);
	assert_true(ibv_get_device_guid(list[0]) != 0);
	assert_true(ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]));
	assert_true(ibv_get_device_index(list[0]) >= 0);
	assert_int_not_equal(
		ibv_get_device_index(list[0]), ibv_get_device_index(list[1]));
	/* Programs look at private members behind it. */
	for (size_t i = 0; i < 1024; i++)
		assert_int_equal(((uint8_t *)list[0])[sizeof(struct ibv_device) + i], 0);
	ibv_free_device_list(again);
	free(list); /* as qperf does: plain memory */
}

/* A device of a list that is closed meanwhile stays an object that can be asked. */
static void
test_device_closed(void **state)
{
	struct rocade_port_conf conf[2] = {
		port_conf("192.0.2.1/24"), port_conf("192.0.2.2/24")};
	struct rocade_port *ports[2];
	struct ibv_device **list;
	int n;

	(void)state;
	assert_int_equal(rocade_open_loop(conf, ports), 0);
	list = ibv_get_device_list(&n);
	assert_int_equal(rocade_close_port(ports[0]), 0);
	assert_int_equal(rocade_close_port(ports[1]), 0);
	assert_string_equal(ibv_get_device_name(list[0]), "rocade0");
	errno = 0;
	assert_null(ibv_open_device(list[0]));
	assert_int_equal(errno, ENODEV);
	ibv_free_device_list(list);
}

static void
test_close_busy(void **state)
{
	(void)state;
	assert_int_equal(rocade_close_port(pair.a.port), EBUSY);
	assert_non_null(strstr(rocade_error(), "rocade0"));
	errno = 0;
	assert_int_equal(ibv_close_device(pair.a.context), -1);
	assert_int_equal(errno, EBUSY);
}

static void
test_context(void **state)
{
	struct ibv_context *c = ibv_open_device(rocade_port_device(pair.a.port));

	(void)state;
	assert_non_null(c);
	assert_ptr_not_equal(c, pair.a.context);
	assert_ptr_equal(c->device, rocade_port_device(pair.a.port));
	assert_ptr_equal(c->abi_compat, __VERBS_ABI_IS_EXTENDED);
	assert_int_equal(verbs_get_ctx(c)->sz, sizeof(struct verbs_context));
	assert_null(verbs_get_ctx(c)->priv);
	assert_true(c->async_fd >= 0 && c->cmd_fd >= 0);
	assert_int_equal(c->num_comp_vectors, 1);
	assert_int_equal(rocade_context_set_engine(c, 1), EINVAL);
	assert_int_equal(rocade_context_set_engine(c, -2), EINVAL);
	assert_int_equal(rocade_context_set_engine(c, 0), 0);
	assert_int_equal(ibv_close_device(c), 0);
}

static void
test_query_device(void **state)
{
	struct ibv_device_attr attr;
	struct ibv_device_attr_ex ex;
	struct ibv_query_device_ex_input input = {.comp_mask = 1};

	(void)state;
	memset(&attr, 0xFF, sizeof(attr));
	assert_int_equal(ibv_query_device(pair.a.context, &attr), 0);
	assert_string_equal(attr.fw_ver, rocade_version());
	assert_true(attr.vendor_id != 0 && attr.vendor_id < 0xFFFFFF);
	assert_true(
		attr.node_guid == ibv_get_device_guid(rocade_port_device(pair.a.port)));
	assert_true(attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	assert_true(attr.device_cap_flags & IBV_DEVICE_RC_RNR_NAK_GEN);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(attr.max_qp_rd_atom, 16);
	assert_int_equal(attr.max_qp_init_rd_atom, 16);
	assert_int_equal(attr.max_qp, 1024);
	assert_true(attr.max_cqe >= 4000000);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(attr.max_pkeys, 1);

	memset(&ex, 0xFF, sizeof(ex));
	assert_int_equal(ibv_query_device_ex(pair.a.context, NULL, &ex), 0);
	assert_memory_equal(&ex.orig_attr, &attr, sizeof(attr));
	assert_int_equal(ex.phys_port_cnt_ex, 1);
	assert_int_equal(ex.odp_caps.general_caps, 0);
	assert_int_equal(ibv_query_device_ex(pair.a.context, &input, &ex), EINVAL);
}

static void
test_query_port(void **state)
{
	struct ibv_port_attr attr, compat;

	(void)state;
	memset(&attr, 0xFF, sizeof(attr));
	assert_int_equal(ibv_query_port(pair.a.context, 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.phys_state, 5);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.max_mtu, IBV_MTU_4096);
	assert_int_equal(attr.active_mtu, IBV_MTU_4096);
	assert_int_equal(attr.gid_tbl_len, 16);
	assert_int_equal(attr.pkey_tbl_len, 1);
	assert_true(attr.max_msg_sz == 1u << 31);
	assert_int_equal(attr.flags, IBV_QPF_GRH_REQUIRED);
	assert_int_equal(ibv_query_port(pair.a.context, 0, &attr), EINVAL);
	assert_int_equal(ibv_query_port(pair.a.context, 2, &attr), EINVAL);

	/* The exported function knows the first 48 bytes and writes no more. */
	assert_int_equal(ibv_query_port(pair.a.context, 1, &attr), 0);
	memset(&compat, 0xA5, sizeof(compat));
	assert_int_equal((ibv_query_port)(pair.a.context, 1,
				 (struct _compat_ibv_port_attr *)&compat),
		0);
	assert_memory_equal(&compat, &attr, 48);
	assert_int_equal(compat.port_cap_flags2, 0xA5A5);
}

static void
test_gids(void **state)
{
	static const uint8_t ipv4[16] = {[10] = 0xFF, [11] = 0xFF, 192, 0, 2, 1};
	static const uint8_t zero[16];
	struct ibv_gid_entry entry, table[16];
	union ibv_gid gid;
	uint8_t small[24];
	ssize_t n;

	(void)state;
	assert_int_equal(ibv_query_gid(pair.a.context, 1, 0, &gid), 0);
	assert_memory_equal(gid.raw, ipv4, 16);
	assert_int_equal(
		ibv_query_gid(pair.a.context, 1, 15, &gid), 0); /* empty: zeros */
	assert_memory_equal(gid.raw, zero, 16);
	errno = 0;
	assert_int_equal(ibv_query_gid(pair.a.context, 1, 16, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(pair.a.context, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(pair.a.context, 2, 0, &gid), -1);

	assert_int_equal(ibv_query_gid_ex(pair.a.context, 1, 0, &entry, 0), 0);
	assert_memory_equal(entry.gid.raw, ipv4, 16);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(entry.gid_index, 0);
	assert_int_equal(entry.port_num, 1);
	assert_int_equal(ibv_query_gid_ex(pair.a.context, 1, 15, &entry, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(pair.a.context, 1, 16, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(pair.a.context, 2, 0, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(pair.a.context, 1, 0, &entry, 1), EOPNOTSUPP);

	/* A caller whose structure is shorter. */
	memset(small, 0xA5, sizeof(small));
	assert_int_equal(_ibv_query_gid_ex(pair.a.context, 1, 0,
				 (struct ibv_gid_entry *)small, 0, 20),
		0);
	assert_memory_equal(small, ipv4, 16);
	assert_int_equal(small[20], 0xA5);

	n = ibv_query_gid_table(pair.a.context, table, 16, 0);
	assert_true(n >= 2); /* the address and the link-local one */
	assert_memory_equal(table[0].gid.raw, ipv4, 16);
	for (ssize_t i = 0; i < n; i++)
		assert_memory_not_equal(table[i].gid.raw, zero, 16);
	assert_int_equal(ibv_query_gid_table(pair.a.context, table, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(pair.a.context, table, 0, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(pair.a.context, table, 16, 1), -EOPNOTSUPP);
}

/* Private to rdma-core, and called by ibv_devinfo. */
int
ibv_query_gid_type(
	struct ibv_context *context, uint8_t port_num, unsigned int index, int *type);

static void
test_gid_type_and_pkeys(void **state)
{
	__be16 pkey = 0;
	int type = -1;

	(void)state;
	assert_int_equal(ibv_query_gid_type(pair.a.context, 1, 0, &type), 0);
	assert_int_equal(type, 1);
	assert_int_equal(ibv_query_gid_type(pair.a.context, 1, 16, &type), -1);
	assert_int_equal(ibv_query_pkey(pair.a.context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xFFFF);
	assert_int_equal(ibv_query_pkey(pair.a.context, 1, 1, &pkey), -1);
	assert_int_equal(ibv_query_pkey(pair.a.context, 2, 0, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(pair.a.context, 1, 0xFFFF), 0);
	assert_int_equal(ibv_get_pkey_index(pair.a.context, 1, htobe16(0x8001)), -1);
}

static void
test_pd(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(pair.a.context);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq;

	(void)state;
	assert_non_null(pd);
	srq = ibv_create_srq(pd, &attr);
	assert_non_null(srq);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Past the device's number, ENOMEM; all of them usable again afterwards. */
static void
test_pd_many(void **state)
{
	struct ibv_device_attr attr;
	struct ibv_pd **pds;
	int n = 0;

	(void)state;
	assert_int_equal(ibv_query_device(pair.a.context, &attr), 0);
	pds = calloc((size_t)attr.max_pd, sizeof(pds[0]));
	assert_non_null(pds);
	for (;;) {
		struct ibv_pd *pd = ibv_alloc_pd(pair.a.context);

		if (pd == NULL)
			break;
		assert_true(n < attr.max_pd);
		pds[n++] = pd;
	}
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(n, attr.max_pd - 1); /* one is the pair's */
	for (int i = 0; i < n; i++)
		assert_int_equal(ibv_dealloc_pd(pds[i]), 0);
	free(pds);
}

static struct ibv_mr *
reg(void *addr, size_t len, int access)
{
	errno = 0;
	return ibv_reg_mr(pair.a.pd, addr, len, access);
}

static void
test_mr(void **state)
{
	static uint8_t mem[8192];
	struct ibv_mr *mr, *other;

	(void)state;
	mr = reg(mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, mem);
	assert_int_equal(mr->length, sizeof(mem));
	assert_ptr_equal(mr->pd, pair.a.pd);
	assert_ptr_equal(mr->context, pair.a.context);
	assert_true(mr->lkey != 0);
	/* Overlapping is fine, and has a key of its own. */
	other = reg(mem + 1, 1, 0);
	assert_non_null(other);
	assert_int_not_equal(mr->lkey, other->lkey);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = reg(mem, sizeof(mem), 0);
	assert_int_not_equal(mr->lkey, other->lkey);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(other), 0);
	mr = reg(mem, 0, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	/* Hints do not matter. */
	mr = reg(mem, 16, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr_iova(pair.a.pd, mem, 16, 0x1000, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void
test_mr_refused(void **state)
{
	static uint8_t mem[16];

	(void)state;
	assert_null(reg(mem, sizeof(mem), IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(reg(mem, sizeof(mem), IBV_ACCESS_REMOTE_ATOMIC));
	assert_int_equal(errno, EINVAL);
	assert_null(reg(mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE | 1 << 10));
	assert_int_equal(errno, EINVAL);
	assert_null(reg(mem, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(reg(mem, sizeof(mem), IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* Memory that is not there, or may not be written, is EFAULT and no signal. */
static void
test_mr_fault(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *mem = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char present[4];
	struct ibv_mr *mr;

	(void)state;
	assert_true(mem != MAP_FAILED);
	/* Registration makes pages present. */
	mr = reg(mem + page - 1, page + 2, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(mincore(mem, 4 * page, present), 0);
	assert_true(present[0] & present[1] & present[2] & 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	assert_int_equal(mprotect(mem + 2 * page, page, PROT_READ), 0);
	assert_null(reg(mem, 4 * page, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	mr = reg(mem, 4 * page, 0); /* reading is allowed */
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(mprotect(mem + 2 * page, page, PROT_NONE), 0);
	assert_null(reg(mem, 4 * page, 0));
	assert_int_equal(errno, EFAULT);
	assert_int_equal(munmap(mem + 2 * page, page), 0);
	assert_null(reg(mem, 4 * page, 0));
	assert_int_equal(errno, EFAULT);
	assert_null(reg(mem, 4 * page, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	munmap(mem, 2 * page);
	munmap(mem + 3 * page, page);
}

static void
test_cq(void **state)
{
	struct ibv_cq *cq;

	(void)state;
	errno = 0;
	assert_null(ibv_create_cq(pair.a.context, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(pair.a.context, -1, NULL, NULL, 0));
	assert_null(ibv_create_cq(pair.a.context, 1 << 22, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(pair.a.context, 10, NULL, NULL, 1));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(pair.a.context, 10, NULL, NULL, -1));
	cq = ibv_create_cq(pair.a.context, 100, &pair, NULL, 0);
	assert_non_null(cq);
	assert_true(cq->cqe >= 100);
	assert_ptr_equal(cq->cq_context, &pair);
	assert_ptr_equal(cq->context, pair.a.context);
	assert_int_equal(ibv_resize_cq(cq, 200), 0);
	assert_int_equal(cq->cqe, 256);
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, -1), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 1 << 22), EINVAL);
	assert_int_equal(cq->cqe, 256);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_cq(pair.a.send_cq), EBUSY); /* QPs use it */
	cq = ibv_create_cq(pair.a.context, (1 << 22) - 1, NULL, NULL, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void
test_absent(void **state)
{
	struct ibv_ece ece;
	struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE};

	(void)state;
	assert_null(ibv_reg_dmabuf_mr(pair.a.pd, 0, 1, 0, 0, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_set_ece(pair.a.qp[0], &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(pair.a.qp[0], &ece), EOPNOTSUPP);
	assert_null(ibv_qp_to_qp_ex(pair.a.qp[0]));
	assert_int_equal(ibv_query_qp_data_in_order(pair.a.qp[0], IBV_WR_SEND, 0), 0);
	assert_null(ibv_import_pd(pair.a.context, 0));
	assert_null(ibv_import_mr(pair.a.pd, 0));
	assert_null(ibv_import_dm(pair.a.context, 0));
	assert_int_equal(ibv_modify_cq(pair.a.send_cq, &moderate), EOPNOTSUPP);
}

static void
test_addresses(void **state)
{
	union ibv_gid gid, other;
	char text[46];

	(void)state;
	assert_int_equal(rocade_gid_parse("192.0.2.9", &gid), 0);
	assert_string_equal(rocade_gid_format(&gid, text, sizeof(text)), "192.0.2.9");
	assert_int_equal(rocade_gid_parse("192.0.2.9/24", &other), EINVAL);
	assert_int_equal(rocade_gid_parse("2001:db8::9", &other), 0);
	assert_string_equal(rocade_gid_format(&other, text, sizeof(text)), "2001:db8::9");
	assert_int_equal(rocade_gid_parse("", &other), EINVAL);
	assert_int_equal(rocade_gid_parse(NULL, &other), EINVAL);

	/* The neighbour answers once engines run. */
	assert_int_equal(rocade_port_resolve(pair.a.port, &pair.b.gid), EAGAIN);
	pair_settle(&pair);
	assert_int_equal(rocade_port_resolve(pair.a.port, &pair.b.gid), 0);
	assert_int_equal(rocade_gid_parse("198.51.100.1", &other), 0);
	assert_int_equal(rocade_port_resolve(pair.a.port, &other), ENETUNREACH);
	assert_int_equal(rocade_gid_parse("224.0.0.1", &other), 0);
	assert_int_equal(rocade_port_resolve(pair.a.port, &other), EINVAL);
	assert_true(rocade_port_link_up(pair.a.port));
}

static void
test_neighbours(void **state)
{
	struct rocade_neigh rows[8];
	unsigned n;
	bool seen = false;

	(void)state;
	rocade_port_resolve(pair.a.port, &pair.b.gid);
	pair_settle(&pair);
	n = rocade_port_neighs(pair.a.port, rows, 8);
	assert_true(n >= 1 && n <= 8);
	for (unsigned i = 0; i < n; i++) {
		if (memcmp(&rows[i].gid, &pair.b.gid, 16) == 0) {
			assert_string_equal(rows[i].state, "reachable");
			seen = true;
		}
	}
	assert_true(seen);
	assert_int_equal(rocade_port_neighs(pair.a.port, NULL, 0), n);
}

static void
test_set_addresses(void **state)
{
	union ibv_gid gid;
	char text[46];

	(void)state;
	assert_int_equal(
		rocade_port_set_addresses(pair.a.port, "bad", NULL, NULL), EINVAL);
	assert_int_equal(rocade_port_set_addresses(
				 pair.a.port, "192.0.2.7/24", "192.0.2.254", NULL),
		0);
	assert_int_equal(ibv_query_gid(pair.a.context, 1, 0, &gid), 0);
	assert_string_equal(rocade_gid_format(&gid, text, sizeof(text)), "192.0.2.7");
	/* There is a way out now. */
	assert_int_equal(rocade_gid_parse("198.51.100.1", &gid), 0);
	assert_int_equal(rocade_port_resolve(pair.a.port, &gid), EAGAIN);
}

static void
test_stats(void **state)
{
	struct rocade_stat rows[128];
	unsigned n = rocade_port_stats(pair.a.port, -1, rows, 128);

	(void)state;
	assert_true(n > 20 && n <= 128);
	for (unsigned i = 0; i < n; i++)
		assert_true(rows[i].name[0] != '\0' && rows[i].text[0] != '\0');
	assert_int_equal(rocade_port_stats(pair.a.port, 0, NULL, 0), n);
	rocade_port_resolve(pair.a.port, &pair.b.gid);
	pair_settle(&pair);
	assert_true(pair_stat(&pair.b, "rx_other") > 0);
}

#define with_pair(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_open_refuses),
		cmocka_unit_test(test_open_names),
		cmocka_unit_test(test_device_closed),
		with_pair(test_device_list),
		with_pair(test_close_busy),
		with_pair(test_context),
		with_pair(test_query_device),
		with_pair(test_query_port),
		with_pair(test_gids),
		with_pair(test_gid_type_and_pkeys),
		with_pair(test_pd),
		with_pair(test_pd_many),
		with_pair(test_mr),
		with_pair(test_mr_refused),
		with_pair(test_mr_fault),
		with_pair(test_cq),
		with_pair(test_absent),
		with_pair(test_addresses),
		with_pair(test_neighbours),
		with_pair(test_set_addresses),
		with_pair(test_stats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
