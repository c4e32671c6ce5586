/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_query_device(3), ibv_query_port(3), ibv_query_pkey(3). */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "verbs/context_ops.h"
#include "verbs/device_caps.h"
#include "verbs/forward.h"
#include "verbs/newer.h"
#include "verbs/objects.h"

/* A locally administered OUI ("RO"), assigned to no vendor. */
#define VENDOR_ID 0x02524F
#define VENDOR_PART_ID 1

/* Size of the structure that the exported ibv_query_port() fills: the application may
 * have been compiled with the first version of it. */
#define PORT_ATTR_COMPAT_SIZE 48
static_assert(PORT_ATTR_COMPAT_SIZE == offsetof(struct ibv_port_attr, port_cap_flags2),
	"the first version of struct ibv_port_attr");

#define PORT_SPEED 250    /* in 100 Mb/s */
#define CLOCK_KHZ 1000000 /* completions are stamped in nanoseconds */

#define PKEY_DEFAULT 0xFFFF /* full member of the default partition: the only one */

/* max: without a limit of the port's owner. */
static int
granted_of(uint32_t granted, uint32_t max)
{
	return (int)(granted != 0 ? RTE_MIN(granted, max) : max);
}

static void
device_attr_fill(const struct dev *dev, struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", rocade_version());
	attr->node_guid = htobe64(dev->guid);
	attr->sys_image_guid = htobe64(dev->guid);
	attr->max_mr_size = UINT64_MAX;
	attr->page_size_cap =
		0xFFFFF000; /* any page size: memory is reached by the CPU */
	attr->vendor_id = VENDOR_ID;
	attr->vendor_part_id = VENDOR_PART_ID;
	attr->max_qp = (int)(dev->conf.qps_granted != 0 ? dev->conf.qps_granted
							: dev->conf.max_qp);
	attr->max_qp_wr = SQ_MAX_WR;
	attr->device_cap_flags = DEVICE_CAPS;
	attr->max_sge = RTE_MIN(SEND_MAX_SGE, RECV_MAX_SGE);
	attr->max_sge_rd = SEND_MAX_SGE;
	attr->max_cq = VERBS_MAX_CQ;
	attr->max_cqe = CQ_MAX_CQE;
	attr->max_mr = (int)dev->keys.regions_max;
	attr->max_mw = KEY_MAX - 1; /* that no region has taken */
	attr->max_pd = VERBS_MAX_PD;
	attr->max_srq = VERBS_MAX_SRQ;
	attr->max_srq_wr = SRQ_MAX_WR;
	attr->max_srq_sge = RECV_MAX_SGE;
	attr->max_qp_rd_atom = QP_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = QP_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = (int)RTE_MIN(
		(uint64_t)QP_MAX_RD_ATOMIC * dev->conf.max_qp, (uint64_t)INT32_MAX);
	attr->atomic_cap = IBV_ATOMIC_HCA;
	attr->max_ah = INT32_MAX;
	attr->max_mcast_grp = granted_of(dev->conf.groups_granted, DEV_MAX_GROUPS);
	attr->max_mcast_qp_attach =
		granted_of(dev->conf.group_members_granted, DEV_MAX_MEMBERS);
	attr->max_total_mcast_qp_attach =
		granted_of(dev->conf.memberships_granted, DEV_MAX_ATTACHED);
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay =
		15; /* 134 ms (4.096 us * 2^15): an engine's thread may be preempted */
	attr->phys_port_cnt = 1;
}

EXPORT int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (!context_is_ours(context))
		return forward(ENOSYS, ibv_query_device, context, attr);
	if (to_ctx(context)->dev == NULL)
		return errno_set(ENODEV);
	device_attr_fill(to_ctx(context)->dev, attr);
	return 0;
}

static void
odp_caps_fill(const struct dev *dev, struct ibv_device_attr_ex *attr)
{
	const uint32_t datagrams =
		IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t rdma =
		IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

	if (!on_demand_supported(dev))
		return;
	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps =
		datagrams | rdma | ODP_SUPPORT_FLUSH | ODP_SUPPORT_ATOMIC_WRITE;
	attr->odp_caps.per_transport_caps.uc_odp_caps = datagrams | IBV_ODP_SUPPORT_WRITE;
	attr->odp_caps.per_transport_caps.ud_odp_caps = datagrams;
	/* XRC receives from SRQs only. */
	attr->xrc_odp_caps = IBV_ODP_SUPPORT_SEND | rdma | IBV_ODP_SUPPORT_SRQ_RECV;
}

int
verbs_query_device_ex(struct ibv_context *context,
	const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
	size_t size)
{
	struct ibv_device_attr_ex full;

	if (to_ctx(context)->dev == NULL)
		return errno_set(ENODEV);
	if (input != NULL && input->comp_mask != 0)
		return errno_set(EINVAL);
	if (size < sizeof(attr->orig_attr))
		return errno_set(EINVAL);
	memset(&full, 0, sizeof(full));
	device_attr_fill(to_ctx(context)->dev, &full.orig_attr);
	full.device_cap_flags_ex = DEVICE_CAPS_EX;
	full.phys_port_cnt_ex = full.orig_attr.phys_port_cnt;
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = CLOCK_KHZ;
	full.cq_mod_caps.max_cq_count = UINT16_MAX;
	full.cq_mod_caps.max_cq_period = UINT16_MAX;
	full.max_dm_size = DM_SIZE_MAX;
	odp_caps_fill(to_ctx(context)->dev, &full);
	memset(attr, 0, size);
	memcpy(attr, &full, RTE_MIN(size, sizeof(full)));
	return 0;
}

/* Returns the clock that completions are stamped with. As in drivers of hardware, tv_nsec
 * has the whole value, in the unit of hca_core_clock: nanoseconds. */
int
verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	(void)context;
	if ((values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK) != 0)
		return errno_set(EOPNOTSUPP);
	if (values->comp_mask != 0)
		values->raw_clock = (struct timespec){.tv_nsec = (int64_t)engine_clock()};
	return 0;
}

int
verbs_query_port(struct ibv_context *context, uint8_t port_num,
	struct ibv_port_attr *attr, size_t size)
{
	struct dev *dev = to_ctx(context)->dev;
	bool up;
	struct port_stats stats;
	struct ibv_port_attr full;

	if (dev == NULL)
		return errno_set(ENODEV);
	if (port_num != 1)
		return errno_set(EINVAL);
	up = dev_link_up(dev); /* also detects a change and raises its event */
	memset(&full, 0, sizeof(full));
	full.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	full.phys_state = up ? 5 : 2; /* LinkUp, Polling */
	full.max_mtu = IBV_MTU_4096;
	full.active_mtu = dev->active_mtu;
	full.gid_tbl_len = DEV_GIDS;
	full.port_cap_flags = IBV_PORT_IP_BASED_GIDS;
	full.max_msg_sz = UINT32_C(1) << 31;
	full.pkey_tbl_len = 1;
	dev_stats(dev, &stats);
	full.bad_pkey_cntr = (uint32_t)stats.drop[DROP_pkey];
	full.qkey_viol_cntr = (uint32_t)stats.drop[DROP_qkey];
	full.max_vl_num = 1;
	/* 1X of 25 Gb/s: a software port has no width. PORT_SPEED says the same. */
	full.active_width = 1;
	full.active_speed = 32;
	full.link_layer = IBV_LINK_LAYER_ETHERNET;
	full.flags = IBV_QPF_GRH_REQUIRED;
	memset(attr, 0, size);
	memcpy(attr, &full, RTE_MIN(size, sizeof(full)));
	return 0;
}

EXPORT int
ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed)
{
	if (!context_is_ours(context))
		return forward(
			ENOSYS, ibv_query_port_speed, context, port_num, port_speed);
	if (to_ctx(context)->dev == NULL)
		return errno_set(ENODEV);
	if (port_num != 1)
		return errno_set(EINVAL);
	*port_speed = PORT_SPEED;
	return 0;
}

EXPORT int(ibv_query_port)(
	struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	if (!context_is_ours(context))
		return forward(ENOSYS, ibv_query_port, context, port_num, attr);
	return verbs_query_port(
		context, port_num, (struct ibv_port_attr *)attr, PORT_ATTR_COMPAT_SIZE);
}

EXPORT int
ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	if (!context_is_ours(context))
		return forward(-1, ibv_query_pkey, context, port_num, index, pkey);
	if (port_num != 1 || index != 0)
		return minus_errno(EINVAL);
	*pkey = htobe16(PKEY_DEFAULT);
	return 0;
}

EXPORT int
ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	if (!context_is_ours(context))
		return forward(-1, ibv_get_pkey_index, context, port_num, pkey);
	if (port_num != 1 || pkey != htobe16(PKEY_DEFAULT))
		return minus_errno(EINVAL);
	return 0;
}
