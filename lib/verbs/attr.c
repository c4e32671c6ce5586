/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "verbs/verbs_qp.h"

#define BITS_20 0xFFFFFu
#define HOP_LIMIT_DEFAULT 64

/* The source address comes from the GID index. RoCE has no path without a GRH, and none between
 * addresses of two IP versions. */
int
qp_path_read(struct dev *dev, const struct ibv_ah_attr *ah, struct qp_path *out)
{
	struct qp_path path = {
		.flow_label = ah->grh.flow_label & BITS_20,
		.sgid_index = ah->grh.sgid_index,
		/* A packet with hop limit 0 would not arrive: kernel drivers replace 0
		 * too. */
		.hop_limit =
			ah->grh.hop_limit != 0 ? ah->grh.hop_limit : HOP_LIMIT_DEFAULT,
		.tclass = ah->grh.traffic_class,
		.sl = ah->sl,
		.static_rate = ah->static_rate,
		.port_num = ah->port_num,
	};

	if (!ah->is_global || ah->grh.sgid_index >= DEV_GIDS)
		return EINVAL;
	pthread_mutex_lock(&dev->lock);
	memcpy(path.sgid, dev->gids[ah->grh.sgid_index], sizeof(path.sgid));
	pthread_mutex_unlock(&dev->lock);
	memcpy(path.dgid, ah->grh.dgid.raw, sizeof(path.dgid));
	if (!gid_reaches(path.sgid, path.dgid))
		return EINVAL;
	*out = path;
	return 0;
}

int
qp_attr_read(
	struct dev *dev, const struct ibv_qp_attr *attr, int mask, struct qp_attr *out)
{
	/* lib/qp reads only the members that mask names. */
	struct qp_attr core = {
		.state = attr->qp_state,
		.cur_state = attr->cur_qp_state,
		.path_mtu = attr->path_mtu,
		.rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn,
		.dest_qpn = attr->dest_qp_num,
		.qkey = attr->qkey,
		.access = attr->qp_access_flags,
		.pkey_index = attr->pkey_index,
		.port_num = attr->port_num,
		.timeout = attr->timeout,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.min_rnr_timer = attr->min_rnr_timer,
		.max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.en_sqd_async_notify = attr->en_sqd_async_notify != 0,
	};

	if (mask & IBV_QP_AV) {
		int err = qp_path_read(dev, &attr->ah_attr, &core.path);

		if (err != 0)
			return err;
	}
	*out = core;
	return 0;
}

static void
path_write(const struct qp_path *path, struct ibv_ah_attr *ah)
{
	static const uint8_t empty[16];

	memcpy(ah->grh.dgid.raw, path->dgid, sizeof(ah->grh.dgid.raw));
	ah->grh.flow_label = path->flow_label;
	ah->grh.sgid_index = path->sgid_index;
	ah->grh.hop_limit = path->hop_limit;
	ah->grh.traffic_class = path->tclass;
	ah->sl = path->sl;
	ah->static_rate = path->static_rate;
	ah->port_num = path->port_num;
	ah->is_global = memcmp(path->dgid, empty, sizeof(empty)) != 0;
}

void
qp_attr_write(const struct qp_attr *core, struct ibv_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = core->state;
	attr->cur_qp_state = core->cur_state;
	attr->path_mtu = core->path_mtu;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->rq_psn = core->rq_psn;
	attr->sq_psn = core->sq_psn;
	attr->dest_qp_num = core->dest_qpn;
	attr->qkey = core->qkey;
	attr->qp_access_flags = core->access;
	attr->pkey_index = core->pkey_index;
	attr->en_sqd_async_notify = core->en_sqd_async_notify;
	attr->sq_draining = core->sq_draining;
	attr->max_rd_atomic = core->max_rd_atomic;
	attr->max_dest_rd_atomic = core->max_dest_rd_atomic;
	attr->min_rnr_timer = core->min_rnr_timer;
	attr->port_num = core->port_num;
	attr->timeout = core->timeout;
	attr->retry_cnt = core->retry_cnt;
	attr->rnr_retry = core->rnr_retry;
	path_write(&core->path, &attr->ah_attr);
}
