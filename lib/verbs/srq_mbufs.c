/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_srq_set_mbufs(). */
#include <rocade/mbuf.h>

#include "mem/mbuf_ops.h"
#include "verbs/forward.h"
#include "verbs/objects.h"
#include "verbs/verbs_port.h"

static int
mbufs_conf_read(const struct dev *dev, const struct rocade_srq_mbufs *given,
	struct rocade_srq_mbufs *conf)
{
	uint32_t least = 128u << dev->active_mtu, room;
	int err;

	if (given == NULL)
		return rocade_fail(EINVAL, "no configuration of the mbufs given");
	err = conf_take(CONF_KIND(struct rocade_srq_mbufs, max_message), conf, given,
		given->size);
	if (err != 0)
		return err;
	if (conf->pool == NULL)
		return rocade_fail(EINVAL, "pool: no mempool given");
	room = dev->port.mbufs->room(conf->pool);
	if (room == 0)
		return rocade_fail(
			EINVAL, "pool: it is not one of rte_pktmbuf_pool_create()");
	if (room < least)
		return rocade_fail(EINVAL,
			"pool: its buffers have room for %u bytes behind the headroom, a "
			"packet needs %u",
			room, least);
	if (conf->max_message == 0 || conf->max_message > SRQ_MBUFS_MAX_MESSAGE)
		return rocade_fail(EINVAL, "max_message: %u is not in 1..%u",
			conf->max_message, SRQ_MBUFS_MAX_MESSAGE);
	return 0;
}

static int
mbufs_allowed(const struct ibv_srq *ibv)
{
	if (ibv == NULL || !context_is_ours(ibv->context))
		return rocade_fail(EINVAL, "the SRQ is not of a Rocade device");
	if (((const struct verbs_srq *)ibv)->xrcd != NULL)
		return rocade_fail(EOPNOTSUPP, "an XRC SRQ hands over no mbufs");
	if (to_ctx(ibv->context)->dev->port.mbufs == NULL)
		return rocade_fail(EOPNOTSUPP,
			"the frames of the SRQ's port are no mbufs: it is not one of "
			"rocade_open_port() or rocade_open_shared()");
	return 0;
}

EXPORT int
rocade_srq_set_mbufs(struct ibv_srq *ibv, const struct rocade_srq_mbufs *given)
{
	struct rocade_srq_mbufs conf;
	struct srq_mbufs mbufs;
	struct dev *dev;
	int err = mbufs_allowed(ibv);

	if (err != 0)
		return err;
	dev = to_ctx(ibv->context)->dev;
	err = mbufs_conf_read(dev, given, &conf);
	if (err != 0)
		return err;
	mbufs = (struct srq_mbufs){conf.pool, conf.max_message};
	err = -dev_srq_set_mbufs(dev, &to_srq(ibv)->srq, &mbufs);
	return err == 0
		       ? 0
		       : rocade_fail(err,
				 "the SRQ has QPs or posted receives: set its mbufs before");
}
