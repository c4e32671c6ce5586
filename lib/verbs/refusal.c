/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/base_log.h"
#include "base/in_vain.h"
#include "verbs/refusal.h"

static struct refusal kept;

static void
refusal_keep(const char *call, const char *err, const char *reason)
{
	__atomic_store_n(&kept.err, err, __ATOMIC_RELAXED);
	__atomic_store_n(&kept.reason, reason, __ATOMIC_RELAXED);
	__atomic_store_n(&kept.call, call, __ATOMIC_RELAXED);
}

void
refusal_note_full(const char *call)
{
	if (__atomic_load_n(&kept.call, __ATOMIC_RELAXED) == NULL)
		refusal_keep(call, "ENOMEM",
			"no request in the send queue is signaled, so that no completion makes room: "
			"set IBV_SEND_SIGNALED once in max_send_wr requests, and poll the CQ");
}

int
refusal_note(int err, const char *call, const char *reason)
{
	const char *was = __atomic_load_n(&kept.call, __ATOMIC_RELAXED);

	if (err == EOPNOTSUPP) {
		in_vain_note(IN_VAIN_CALL, call);
		log_info("%s: this device does not have what it asks for (EOPNOTSUPP)",
			call);
	}
	if (err == EINVAL && was == NULL) {
		refusal_keep(call, "EINVAL", reason);
	} else if (err == 0 && was != NULL && strcmp(was, call) == 0) {
		__atomic_store_n(&kept.call, NULL, __ATOMIC_RELAXED);
	}
	if (err != 0)
		errno = err; /* the log may have changed it */
	return err;
}

const char *
refusal_of_path(struct dev *dev, const struct ibv_ah_attr *ah)
{
	uint8_t sgid[16];

	if (!ah->is_global)
		return "the path has no GRH: RoCE needs a GID index (-g 0, perftest -x 0)";
	if (ah->grh.sgid_index >= DEV_GIDS)
		return "the GID index is out of range: GID 0 is the first address";
	pthread_mutex_lock(&dev->lock);
	memcpy(sgid, dev->gids[ah->grh.sgid_index], sizeof(sgid));
	pthread_mutex_unlock(&dev->lock);
	if (gid_is_zero(sgid))
		return "the GID index names an empty entry: GID 0 is the first address";
	if (gid_is_zero(ah->grh.dgid.raw))
		return "the destination GID is all zero: expected the peer's GID";
	return !gid_reaches(sgid, ah->grh.dgid.raw)
		       ? "the GID index and the destination GID are of different IP "
			 "versions: expected two of IPv4 or two of IPv6"
		       : NULL;
}

const char *
refusal_of_modify(struct dev *dev, const struct ibv_qp_attr *attr, int mask)
{
	const char *reason =
		mask & IBV_QP_AV ? refusal_of_path(dev, &attr->ah_attr) : NULL;

	if (reason == NULL && mask & IBV_QP_PATH_MTU && attr->path_mtu > dev->active_mtu)
		reason = "the path MTU is above the port's active_mtu (ibv_devinfo)";
	return reason;
}

void
refusal_get(struct refusal *out)
{
	out->call = __atomic_load_n(&kept.call, __ATOMIC_RELAXED);
	out->err = __atomic_load_n(&kept.err, __ATOMIC_RELAXED);
	out->reason = __atomic_load_n(&kept.reason, __ATOMIC_RELAXED);
}

void
refusal_reset(void)
{
	__atomic_store_n(&kept.call, NULL, __ATOMIC_RELAXED);
}
