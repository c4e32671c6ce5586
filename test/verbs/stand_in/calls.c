/* SPDX-License-Identifier: BSD-3-Clause */
/* A call of each verb that is Rocade's (FORWARD in lib/verbs/symbols.def). The result is not looked at: other
 * tests do that. A row without a call here does not compile. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "objects.h"

/* private to rdma-core, but exported */
int ibv_query_gid_type(
	struct ibv_context *context, uint8_t port_num, unsigned int index, int *type);

#define CALL(name, ...)                                                                  \
	static void call_##name(void *function)                                          \
	{                                                                                \
		(void)((__typeof__(name) *)function)(__VA_ARGS__);                       \
	}

static struct ibv_cq *
spare_cq(void)
{
	return ibv_create_cq(our.context, 1, NULL, NULL, 0);
}

static struct ibv_qp_init_attr *
qp_attr(void)
{
	static struct ibv_qp_init_attr attr;

	attr = (struct ibv_qp_init_attr){.send_cq = our.cq,
		.recv_cq = our.cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_UD};
	return &attr;
}

static struct ibv_srq_init_attr *
srq_attr(void)
{
	static struct ibv_srq_init_attr attr;

	attr = (struct ibv_srq_init_attr){.attr = {.max_wr = 1, .max_sge = 1}};
	return &attr;
}

static struct ibv_ah_attr *
ah_attr(void)
{
	static struct ibv_ah_attr attr;

	attr = (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1, .grh = {.dgid = our.gid}};
	return &attr;
}

static struct ibv_mr *
spare_mr(void)
{
	return ibv_reg_mr(our.pd, our_bytes, 1, 0);
}

static struct ibv_dm *
imported_dm(void)
{
	return ibv_import_dm(our.context, our.dm->handle);
}

static struct ibv_comp_cntr *
spare_counter(void)
{
	struct comp_cntr_init_attr attr = {.type = COMP_CNTR_WRS};

	return FOUND(ibv_create_comp_cntr)(
		our.context, (struct ibv_comp_cntr_init_attr *)&attr);
}

static struct ibv_buf *
spare_buf(void)
{
	struct ibv_buf *buf = NULL;

	(void)FOUND(ibv_alloc_buf)(our.pd, OBJECT_BYTES, &buf);
	return buf;
}

/* Where a call stores what it returns. */
static union {
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	struct ibv_gid_entry gid_entry;
	struct ibv_srq_attr srq;
	struct ibv_ece ece;
	union ibv_gid gid;
	struct ibv_async_event event;
	struct comp_cntr_caps caps;
	struct ibv_buf *buf;
	uint64_t number;
	__be16 pkey;
	int word;
	uint16_t vlan;
} out;
static struct ibv_qp_attr attr;
static struct ibv_qp_init_attr init_attr;
static struct ibv_ah_attr ah;
static uint8_t mac[6];
static struct ibv_wc wc;
static struct ibv_grh grh;
static struct ibv_cq *event_cq;
static void *event_context;
static struct mr_init_attr mr_attr = {
	.length = 1, .comp_mask = MR_INIT_ADDR, .addr = our_bytes};
static struct comp_cntr_init_attr counter_attr = {.type = COMP_CNTR_BYTES};
static struct comp_cntr_attach_attr attach_attr = {.op_mask = 1};
static const union ibv_gid group = {.raw = {[10] = 0xFF, 0xFF, 224, 0, 0, 100}};

CALL(ibv_create_comp_channel, our.context)
CALL(ibv_destroy_comp_channel, ibv_create_comp_channel(our.context))
CALL(ibv_ack_cq_events, our.cq, 0)
CALL(ibv_alloc_pd, our.context)
CALL(ibv_attach_mcast, our.qp, &group, 0)
CALL(ibv_close_device, ibv_open_device(our.device))
CALL(ibv_create_ah, our.pd, ah_attr())
CALL(ibv_create_ah_from_wc, our.pd, &wc, &grh, 1)
CALL(ibv_create_cq, our.context, 1, NULL, our.channel, 0)
CALL(ibv_create_qp, our.pd, qp_attr())
CALL(ibv_create_srq, our.pd, srq_attr())
CALL(ibv_dealloc_pd, ibv_alloc_pd(our.context))
CALL(ibv_dereg_mr, spare_mr())
CALL(ibv_destroy_ah, ibv_create_ah(our.pd, ah_attr()))
CALL(ibv_destroy_cq, spare_cq())
CALL(ibv_destroy_qp, ibv_create_qp(our.pd, qp_attr()))
CALL(ibv_destroy_srq, ibv_create_srq(our.pd, srq_attr()))
CALL(ibv_detach_mcast, our.qp, &group, 0)
CALL(ibv_free_device_list, ibv_get_device_list(NULL))
CALL(ibv_get_async_event, our.context, &out.event)
CALL(ibv_get_cq_event, our.channel, &event_cq, &event_context)
CALL(ibv_get_device_guid, our.device)
CALL(ibv_get_device_list, &out.word)
CALL(ibv_get_device_name, our.device)
CALL(ibv_init_ah_from_wc, our.context, 1, &wc, &grh, &ah)
CALL(ibv_modify_qp, our.qp, &attr, 0)
CALL(ibv_modify_srq, our.srq, &out.srq, 0)
CALL(ibv_open_device, our.device)
CALL(ibv_query_device, our.context, &out.device)
CALL(ibv_query_gid, our.context, 1, 0, &out.gid)
CALL(ibv_query_pkey, our.context, 1, 0, &out.pkey)
CALL(ibv_query_port, our.context, 1, (struct _compat_ibv_port_attr *)&out.port)
CALL(ibv_query_qp, our.qp, &attr, IBV_QP_STATE, &init_attr)
CALL(ibv_query_srq, our.srq, &out.srq)
CALL(ibv_reg_mr, our.pd, our_bytes, 1, 0)
CALL(ibv_rereg_mr, our.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0)
CALL(ibv_resize_cq, our.cq, 2)
CALL(ibv_resolve_eth_l2_from_gid, our.context, ah_attr(), mac, &out.vlan)
CALL(ibv_get_pkey_index, our.context, 1, 0xFFFF)
CALL(ibv_qp_to_qp_ex, our.qp)
CALL(ibv_reg_mr_iova, our.pd, our_bytes, 1, 0, 0)
CALL(ibv_reg_mr_iova2, our.pd, our_bytes, 1, 0, 0)
CALL(ibv_get_device_index, our.device)
CALL(ibv_import_device, dup(our.context->cmd_fd))
CALL(ibv_import_mr, our.pd, our.mr->handle)
CALL(ibv_import_pd, our.context, our.pd->handle)
CALL(ibv_query_ece, our.qp, &out.ece)
CALL(ibv_set_ece, our.qp, &out.ece)
CALL(ibv_unimport_mr, ibv_import_mr(our.pd, our.mr->handle))
CALL(ibv_unimport_pd, ibv_import_pd(our.context, our.pd->handle))
CALL(_ibv_query_gid_ex, our.context, 1, 0, &out.gid_entry, 0, sizeof(out.gid_entry))
CALL(_ibv_query_gid_table, our.context, &out.gid_entry, 1, 0, sizeof(out.gid_entry))
CALL(ibv_reg_dmabuf_mr, our.pd, 0, 1, 0, -1, 0)
CALL(ibv_import_dm, our.context, our.dm->handle)
CALL(ibv_unimport_dm, imported_dm())
CALL(ibv_query_qp_data_in_order, our.qp, IBV_WR_RDMA_WRITE, 0)
CALL(ibv_alloc_dmah, our.context, NULL)
CALL(ibv_dealloc_dmah, NULL) /* none can be allocated */
CALL(ibv_reg_mr_ex, our.pd, (struct ibv_mr_init_attr *)&mr_attr)
CALL(ibv_dm_export_dmabuf_fd, our.dm)
CALL(ibv_query_port_speed, our.context, 1, &out.number)
CALL(ibv_alloc_buf, our.pd, OBJECT_BYTES, &out.buf)

static void
call_ibv_free_buf(void *function)
{
	((__typeof__(ibv_free_buf) *)function)(spare_buf());
}

CALL(ibv_reg_buf_mr, our.pd, our.buf, our.buf_bytes, 1, 0)
CALL(_ibv_query_comp_cntr_caps, our.context, (struct ibv_comp_cntr_caps *)&out.caps,
	sizeof(out.caps))
CALL(ibv_create_comp_cntr, our.context, (struct ibv_comp_cntr_init_attr *)&counter_attr)
CALL(ibv_destroy_comp_cntr, spare_counter())
CALL(ibv_export_buf_dmabuf_fd, our.buf)
CALL(ibv_inc_comp_cntr, our.counter, 1)
CALL(ibv_inc_err_comp_cntr, our.counter, 1)
CALL(ibv_qp_attach_comp_cntr, our.qp, our.counter,
	(struct ibv_qp_attach_comp_cntr_attr *)&attach_attr)
CALL(ibv_read_comp_cntr, our.counter, &out.number)
CALL(ibv_read_err_comp_cntr, our.counter, &out.number)
CALL(ibv_set_comp_cntr, our.counter, 1)
CALL(ibv_set_err_comp_cntr, our.counter, 1)
CALL(ibv_query_gid_type, our.context, 1, 0, &out.word)

const struct verb verbs[] = {
#define FORWARD(name, node) {#name, node, call_##name},
#include "verbs/symbols.def"
};
const size_t verb_count = sizeof(verbs) / sizeof(verbs[0]);
