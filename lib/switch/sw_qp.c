/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "port/net_addr.h"
#include "switch/sw_pair.h"
#include "switch/sw_qp.h"
#include "switch/sw_wait.h"

int
sw_qp_create(struct sw_client *client, uint32_t *qpn)
{
	struct sw *sw = client->sw;
	int rc;

	if (client->qps >= sw->conf.limits.qps ||
		!account_take(client->account, ACCOUNT_qps, 1))
		return -ENOMEM;
	rc = qpns_take(&sw->qpns, client, &client->qp_list, sw->now, qpn);
	if (rc != 0)
		account_give(client->account, ACCOUNT_qps, 1);
	client->qps += rc == 0;
	return rc;
}

void
sw_qp_clear_peer(struct sw_qp *qp)
{
	struct sw *sw = qp->owner->sw;

	sw_wait_sender_ended(qp);
	if (qp->peer_local)
		sw_pair_disconnected(qp);
	else if (qp->remote != NULL)
		sw_remote_put(&sw->users.remotes, qp->remote, sw->now);
	qp->remote = NULL;
	qp->dest_serial = 0;
	qp->peer = false;
}

int
sw_qp_set_peer(struct sw_qp *qp, const uint8_t sgid[16], const uint8_t dgid[16],
	uint32_t dest_qpn)
{
	struct sw *sw = qp->owner->sw;
	bool local = net_is_ours(&sw->conf.net, dgid);
	struct sw_qp *dest = local ? qpns_find(&sw->qpns, dest_qpn) : NULL;
	struct sw_remote *remote = NULL;

	if (!local) {
		const struct sw_client *c = qp->owner;
		int rc = sw_remote_get(&sw->users.remotes, &c->user->remotes,
			c->shares_uid ? c->id : 0, dgid, dest_qpn, sw->now, &remote);

		if (rc != 0)
			return rc;
	}
	sw_qp_clear_peer(qp);
	memcpy(qp->sgid, sgid, 16);
	memcpy(qp->dgid, dgid, 16);
	qp->dest_qpn = dest_qpn;
	qp->dest_serial = dest != NULL ? dest->serial : 0;
	qp->remote = remote;
	qp->peer_local = local;
	qp->peer = true;
	sw_wait_connected(qp);
	if (dest != NULL && sw_qp_is_connected(qp, dest))
		sw_pair_connected(qp, dest);
	return 0;
}

void
sw_qp_destroy(struct sw_qp *qp)
{
	struct sw_client *client = qp->owner;

	sw_qp_clear_peer(qp);
	sw_wait_dest_ended(qp);
	qpns_give(&client->sw->qpns, qp, client->sw->now);
	client->qps--;
	account_give(client->account, ACCOUNT_qps, 1);
}
