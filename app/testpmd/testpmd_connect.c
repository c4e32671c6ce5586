/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting without a connection manager. QP i of one end is connected to QP i of the
 * other, QPN --qpn-base + i on both, and every PSN starts at --psn. With several peers i counts
 * the QPs for each, and the place of this end among the peers of the other one says which QPs
 * these are there. Nothing is exchanged.
 * An end that starts or restarts therefore always begins at --psn, and the other end
 * reconnects when it notices (restart.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rocade/flush.h>

#include "testpmd_rx.h"

#define FLUSH_NS NS_PER_SECOND

#define INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define PATH (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RESPONDER (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define REQUESTER                                                                        \
	(IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |          \
		IBV_QP_MAX_QP_RD_ATOMIC)

static unsigned
common_bits(const union ibv_gid *a, const union ibv_gid *b)
{
	unsigned bits = 0;

	while (bits < 128 &&
		((a->raw[bits / 8] ^ b->raw[bits / 8]) & (0x80 >> (bits % 8))) == 0)
		bits++;
	return bits;
}

static bool
is_v4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

static bool
is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* Picks the GID of this port that has the longest prefix in common with the peer's, of
 * those of the peer's family and scope (link-local or not). */
static int
host_source_choose(struct host *host, const struct ibv_port_attr *port, char err[ERR_MAX])
{
	int best = -1;

	for (int i = 0; i < port->gid_tbl_len; i++) {
		static const union ibv_gid none;
		union ibv_gid gid;

		if (ibv_query_gid(host->verbs.ctx, 1, i, &gid) != 0 ||
			memcmp(&gid, &none, sizeof(gid)) == 0)
			continue;
		if (is_v4(&gid) != is_v4(&host->path.peer) ||
			is_link_local(&gid) != is_link_local(&host->path.peer))
			continue;
		if (best >= 0 && common_bits(&gid, &host->path.peer) <=
					 common_bits(&host->path.own, &host->path.peer))
			continue;
		best = i;
		host->path.own = gid;
	}
	if (best < 0)
		return error_set(err,
			"invalid value '%s' for --peer: the port has no address of its "
			"family; expected the family of --addr %s, and a link-local "
			"address on both ends or on none",
			host_peer(host), host->pc->addr);
	host->path.sgid_index = (uint8_t)best;
	return 0;
}

static enum ibv_mtu
mtu_code(uint64_t bytes)
{
	return (enum ibv_mtu)(__builtin_ctzll(bytes) - 7); /* 256: IBV_MTU_256, 1 */
}

/* Which QPs of the peer the QPs are connected with: with RDMA-CM, if both ends have the same --qpn-base. */
static void
host_set_qpns(struct host *host)
{
	const struct conf *conf = host->conf;
	unsigned place = host->pc->peers[host->peer].place;
	uint32_t qps = (uint32_t)conf_qps(conf, host->pc);
	uint32_t there = (uint32_t)conf->qpn_base + ((place * qps) << host->two_qpns);
	uint32_t here = (uint32_t)conf->qpn_base + ((host->peer * qps) << host->two_qpns);

	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];

		conn->peer_qpn = conn->qpn - here + there;
		conn->flow_out =
			verify_flow(conn->qpn, conn->peer_qpn, host_is_back(host, false));
		conn->flow_in =
			verify_flow(conn->peer_qpn, conn->qpn, host_is_back(host, true));
	}
	/* Core 0 learns how many peers the other end has. */
	host->exchange.peer_qpn = host->core == 0 ? exchange_qpn(conf, 0, 0, place) : 0;
}

int
host_check_route(struct host *host, char err[ERR_MAX])
{
	if (rocade_port_resolve(host->port, &host->path.peer) != ENETUNREACH)
		return 0;
	return error_set(err,
		"cannot reach --peer %s: it is in no network of --addr, and there is no "
		"gateway; expected an address in a network of --addr %s, or %s",
		host_peer(host), host->pc->addr,
		is_v4(&host->path.peer) ? "--gateway4" : "--gateway6");
}

int
host_set_path(struct host *host, char err[ERR_MAX])
{
	const struct conf *conf = host->conf;
	struct ibv_port_attr port;

	if (host_peer(host)[0] == '\0')
		return error_set(err,
			"missing --peer: expected the address of the peer (`set peer "
			"192.0.2.2`)");
	if (rocade_gid_parse(host_peer(host), &host->path.peer) != 0 ||
		ibv_query_port(host->verbs.ctx, 1, &port) != 0)
		return error_set(err, "invalid value '%s' for --peer: %s",
			host_peer(host), rocade_error());
	if (conf->mtu != 0 && mtu_code(conf->mtu) > port.active_mtu)
		return error_set(err,
			"invalid value '%" PRIu64 "' for --mtu: expected at most %u, "
			"which the port's MTU carries (see --if-mtu)",
			conf->mtu, 128u << port.active_mtu);
	host->path.mtu = conf->mtu != 0 ? mtu_code(conf->mtu) : port.active_mtu;
	if (host_source_choose(host, &port, err) != 0)
		return -1;
	if (conf->type == TYPE_UD && conf->size_max > UINT64_C(128) << host->path.mtu)
		return error_set(err,
			"invalid value '%" PRIu64
			"' for --size: expected at most %u with --type "
			"ud, the path MTU",
			conf->size_max, 128u << host->path.mtu);
	/* The ends negotiate nothing. In pingpong, and with --mode both, the one with the
	 * lower address sends first. */
	if (host->ops == &sink_ops)
		host->passive = true;
	else if (host->ops == &both_ops)
		host->follows = memcmp(&host->path.own, &host->path.peer,
					sizeof(host->path.own)) > 0;
	else if (host->ops == &pingpong_ops)
		host->passive = memcmp(&host->path.own, &host->path.peer,
					sizeof(host->path.own)) > 0;
	host_set_qpns(host);
	return 0;
}

/* The attributes that a type of QP has in each state, in addition to the state (ibv_modify_qp(3)). */
static const struct {
	int init, rtr, rts;
} qp_attributes[] = {
	[IBV_QPT_RC] = {INIT | IBV_QP_ACCESS_FLAGS, PATH | RESPONDER, REQUESTER},
	[IBV_QPT_UC] = {INIT | IBV_QP_ACCESS_FLAGS, PATH, IBV_QP_SQ_PSN},
	[IBV_QPT_UD] = {INIT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN},
	[IBV_QPT_XRC_SEND] = {INIT | IBV_QP_ACCESS_FLAGS, PATH, REQUESTER},
	[IBV_QPT_XRC_RECV] = {INIT | IBV_QP_ACCESS_FLAGS, PATH | RESPONDER,
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT},
};

static int
qp_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = UD_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC | ROCADE_ACCESS_FLUSH_GLOBAL};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | qp_attributes[qp->qp_type].init);
}

static int
qp_to_rtr(struct host *host, struct ibv_qp *qp, uint32_t peer_qpn)
{
	const struct conf *conf = host->conf;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = host->path.mtu,
		.dest_qp_num = peer_qpn,
		.rq_psn = (uint32_t)conf->psn,
		.max_dest_rd_atomic = (uint8_t)host->verbs.attr.max_qp_rd_atom,
		.min_rnr_timer = (uint8_t)conf->min_rnr_timer,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = host->path.peer,
				.sgid_index = host->path.sgid_index,
				.hop_limit = (uint8_t)conf->hop_limit,
				.traffic_class = (uint8_t)conf->tclass}}};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | qp_attributes[qp->qp_type].rtr);
}

static int
qp_to_rts(struct host *host, struct ibv_qp *qp)
{
	const struct conf *conf = host->conf;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)conf->timeout,
		.retry_cnt = (uint8_t)conf->retry_cnt,
		.rnr_retry = (uint8_t)conf->rnr_retry,
		.sq_psn = (uint32_t)conf->psn,
		.max_rd_atomic = (uint8_t)host->verbs.attr.max_qp_init_rd_atom};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | qp_attributes[qp->qp_type].rts);
}

static void
conn_restart(struct host *host, struct conn *conn)
{
	if (conn->answered)
		host->n_answered--;
	conn->connected = false;
	conn->resetting = false;
	conn->failed = false;
	conn->answered = false;
	__atomic_store_n(&conn->last_wqe, false, __ATOMIC_RELAXED);
	conn->outdated = false;
	conn->posted = 0;
	conn->acked = 0;
	conn->limit = host_share(host, conn);
	conn->unsignaled = 0;
	host->n_replies_pending -= conn->reply_pending;
	conn->reply_pending = false;
	conn->slot = 0;
	conn->size_i = 0;
	conn->received = 0;
	conn->rx_size_i = 0;
	conn->op_i = 0;
	conn->ack = conn->take = (struct op_walk){0};
	conn->ring = (struct conn_ring){0};
	conn->checked = (struct conn_checked){0};
	conn->incomplete = false;
	memset(conn->seen, 0, sizeof(conn->seen));
	conn->fadd_sum = conn->cas_posted = conn->cas_value = 0;
	target_restart(host, conn);
	mws_restart(host, conn);
	exchange_restart(host);
	conn->seen_psn = (uint32_t)host->conf->psn;
	conn->stalled_checks = 0;
	conn->unheard = false;
}

/* Moves the QP, or both, to a state that needs no other attribute. */
static int
conn_modify(struct conn *conn, struct ibv_qp_attr *attr)
{
	int rc = ibv_modify_qp(conn->qp, attr, IBV_QP_STATE);

	if (rc == 0 && conn->xrc_target != NULL)
		rc = ibv_modify_qp(conn->xrc_target, attr, IBV_QP_STATE);
	return rc;
}

/* Moves the QP to ERR, so that all its receives come back through the CQ. RESET would
 * purge their completions, and a receive that the QP had taken from the SRQ would be lost
 * (ibv_destroy_qp(3), LAST_WQE_REACHED). */
static int
conn_to_err(struct conn *conn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	__atomic_store_n(&conn->last_wqe, false, __ATOMIC_RELAXED);
	return conn_modify(conn, &attr);
}

static bool
conn_is_flushed(const struct conn *conn)
{
	return conn->rxq == NULL ||
	       (conn->rxq->srq != NULL
			       ? __atomic_load_n(&conn->last_wqe, __ATOMIC_ACQUIRE)
			       : rxq_posted(conn->rxq) == 0);
}

static bool
conns_are_flushed(const struct host *host)
{
	for (unsigned i = 0; i < host->n_conns; i++) {
		if (host->conns[i].resetting && host->conns[i].connected &&
			!conn_is_flushed(&host->conns[i]))
			return false;
	}
	return true;
}

static void
conns_flush(struct host *host)
{
	uint64_t until = clock_ns() + FLUSH_NS;

	while (!conns_are_flushed(host) && clock_ns() < until) {
		host_poll_engines(host);
		host_events(host);
		host->ops->reap(host);
	}
	rx_drain(host);
}

static int
conn_to_init(struct host *host, struct conn *conn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	int rc = conn_modify(conn, &attr);

	conn_restart(host, conn);
	if (rc == 0)
		rc = qp_to_init(conn->qp);
	if (rc == 0 && conn->xrc_target != NULL)
		rc = qp_to_init(conn->xrc_target);
	if (rc == 0 && conn->rxq != NULL)
		rc = rxq_post(conn->rxq);
	return rc;
}

static int
conn_connect(struct host *host, struct conn *conn)
{
	int rc = conn_to_init(host, conn);

	/* A QP that sends is connected with one that receives. */
	if (rc == 0)
		rc = qp_to_rtr(host, conn->qp, conn->peer_qpn + host->two_qpns);
	if (rc == 0)
		rc = qp_to_rts(host, conn->qp);
	if (rc == 0 && conn->xrc_target != NULL)
		rc = qp_to_rtr(host, conn->xrc_target, conn->peer_qpn);
	if (rc == 0 && conn->xrc_target != NULL)
		rc = qp_to_rts(host, conn->xrc_target);
	conn->connected = rc == 0;
	return rc;
}

/* Moves the selected QPs to ERR and, once they are flushed, calls each() for them. */
static int
conns_reset(struct host *host, bool (*which)(const struct conn *conn),
	int (*each)(struct host *host, struct conn *conn))
{
	struct conn *conn;
	int rc = 0;

	for (unsigned i = 0; i < host->n_conns && rc == 0; i++) {
		conn = &host->conns[i];
		conn->resetting = which == NULL || which(conn);
		if (conn->resetting && conn->connected)
			rc = conn_to_err(conn);
	}
	if (rc == 0)
		conns_flush(host);
	for (unsigned i = 0; i < host->n_conns && rc == 0; i++) {
		conn = &host->conns[i];
		if (conn->resetting)
			rc = each(host, conn);
	}
	return rc;
}

int
host_to_init(struct host *host, bool (*which)(const struct conn *conn))
{
	int rc = conns_reset(host, which, conn_to_init);

	if (rc != 0)
		host_fail(host, "cannot prepare the QPs: %s", strerror(rc));
	return rc == 0 ? 0 : -1;
}

int
host_connect(struct host *host, bool (*which)(const struct conn *conn))
{
	int rc;

	if (host->by_cm) {
		host_fail(host,
			"the connection to %s is lost (`connect` makes a new "
			"one)",
			host_peer(host));
		return -1;
	}
	rc = conns_reset(host, which, conn_connect);
	if (rc != 0)
		host_fail(host, "cannot connect the QPs to %s: %s", host_peer(host),
			strerror(rc));
	return rc == 0 ? 0 : -1;
}
