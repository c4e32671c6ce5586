/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "port/net_addr.h"
#include "switch/proto.h"
#include "switch/sw_client.h"
#include "switch/sw_group.h"
#include "switch/sw_pair.h"
#include "switch/sw_qp.h"
#include "switch/uplink.h"

/* Returns NULL if the QP is not the client's. */
static struct sw_qp *
client_qp_find(struct sw_client *c, uint32_t qpn)
{
	struct sw_qp *qp = qpns_find(&c->sw->qpns, qpn);

	return qp != NULL && qp->owner == c ? qp : NULL;
}

static int
qpn_give(struct sw_client *c, uint32_t qpn)
{
	struct sw_qp *qp = client_qp_find(c, qpn);

	if (qp == NULL)
		return EINVAL;
	sw_group_forget(c, qpn);
	sw_qp_destroy(qp);
	return 0;
}

/* Tells the client which other client has the QP that is now its QP's peer. */
static void
partner_show(const struct sw_client *c, const struct sw_qp *qp, struct sw_reply *reply)
{
	const struct sw_qp *dest =
		qp->peer_local ? qpns_find(&c->sw->qpns, qp->dest_qpn) : NULL;

	if (dest == NULL || !sw_pair_possible(c, dest->owner))
		return;
	reply->client_id = dest->owner->id;
	reply->qpn = sw_qp_is_connected(qp, dest);
}

static int
peer_set(struct sw_client *c, const struct sw_request *req, struct sw_reply *reply)
{
	struct sw_qp *qp = client_qp_find(c, req->qpn);
	int err;

	if (qp == NULL || !qpn_is_ordinary(req->dest_qpn) ||
		!net_is_ours(&c->sw->conf.net, req->sgid))
		return EINVAL;
	err = -sw_qp_set_peer(qp, req->sgid, req->dgid, req->dest_qpn);
	sw_client_stats(c, c->sw->threads[0])->peer_taken += err == EADDRINUSE;
	if (err == 0)
		partner_show(c, qp, reply);
	/* Resolve the next hop before the first packet. */
	if (err == 0 && c->sw->up != NULL && !qp->peer_local)
		uplink_resolve(c->sw->up, c, qp->dgid);
	return err;
}

static int
peer_clear(struct sw_client *c, uint32_t qpn)
{
	struct sw_qp *qp = client_qp_find(c, qpn);

	if (qp == NULL)
		return EINVAL;
	sw_qp_clear_peer(qp);
	return 0;
}

static int
client_group_change(struct sw_client *c, const struct sw_request *req)
{
	if (client_qp_find(c, req->qpn) == NULL)
		return EINVAL;
	return req->type == SW_GROUP_JOIN ? -sw_group_join(c->sw, req->qpn, req->dgid)
					  : -sw_group_leave(c->sw, req->qpn, req->dgid);
}

/* Requests before which what is in the client's ring is forwarded. */
static bool
ends_a_peer(uint32_t type)
{
	return type == SW_QPN_GIVE || type == SW_PEER_CLEAR;
}

/* Requests that need an attached client. */
static int
client_request_serve(
	struct sw_client *c, const struct sw_request *req, struct sw_reply *reply)
{
	struct sw_stats *stats;
	int err;

	if (c == NULL)
		return ENOTCONN;
	stats = sw_client_stats(c, c->sw->threads[0]);
	stats->requests++;
	/* Not with the locks of all threads, which would wait meanwhile. */
	if (ends_a_peer(req->type) && client_qp_find(c, req->qpn) != NULL)
		sw_client_flush(c);
	sw_lock(c->sw);
	switch (req->type) {
	case SW_QPN_TAKE:
		err = sw_qp_create(c, &reply->qpn) == 0 ? 0 : ENOMEM;
		break;
	case SW_QPN_GIVE:
		err = qpn_give(c, req->qpn);
		break;
	case SW_PEER_SET:
		err = peer_set(c, req, reply);
		break;
	case SW_PEER_CLEAR:
		err = peer_clear(c, req->qpn);
		break;
	case SW_GROUP_JOIN:
	case SW_GROUP_LEAVE:
		err = client_group_change(c, req);
		break;
	case SW_PAIR:
		err = sw_pair_serve(c, req, reply);
		break;
	case SW_DUMP:
		err = 0; /* the caller knows what the client may see */
		break;
	case SW_TAKEN:
		reply->qpn = req->qpn; /* for the caller */
		err = 0;
		break;
	default:
		err = EOPNOTSUPP;
		break;
	}
	sw_unlock(c->sw);
	stats->refused += err != 0;
	return err;
}

/* Requests that need no attached client. */
static bool
needs_no_client(uint32_t type)
{
	return type == SW_STATUS || type == SW_REPORT_REQUEST || type == SW_REPORT ||
	       type == SW_FLIGHT_REQUEST || type == SW_FLIGHT;
}

/* Requests of a connection that is not yet a client. */
static bool
is_attachment(uint32_t type)
{
	return type == SW_ATTACH || type == SW_START;
}

static void
device_show(const struct sw *sw, const struct sw_device *device, struct sw_device *to)
{
	*to = *device;
	to->link_up = sw->up == NULL || sw->up->link_up;
}

bool
sw_serve(struct sw *sw, const struct sw_device *device, struct sw_client *client,
	const void *request, size_t len, struct sw_reply *reply)
{
	struct sw_request req;

	if (len != sizeof(req))
		return false;
	memcpy(&req, request, sizeof(req));
	if (req.magic != SW_PROTO_MAGIC)
		return false;
	memset(reply, 0, sizeof(*reply));
	reply->magic = SW_PROTO_MAGIC;
	reply->version = SW_PROTO_VERSION;
	reply->type = req.type;
	/* A client of another version learns the daemon's version from the reply. */
	if (req.version != SW_PROTO_VERSION)
		reply->error = EPROTONOSUPPORT;
	else if (req.type == SW_DEVICE_INFO || req.type == SW_CM_OPEN ||
		 is_attachment(req.type))
		device_show(sw, device, &reply->device);
	else if (needs_no_client(req.type))
		reply->qpn = req.qpn;
	else
		reply->error = client_request_serve(client, &req, reply);
	if (reply->error == 0 && is_attachment(req.type) && client != NULL)
		reply->error = EALREADY;
	if (reply->error == 0 && req.type == SW_START)
		reply->qpn = req.qpn; /* for the caller */
	return true;
}
