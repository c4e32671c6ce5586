/* SPDX-License-Identifier: BSD-3-Clause */
/* The UD QP, and the datagrams on it. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host.h"

#define DATAGRAM 256 /* a path MTU is not smaller */
#define DEPTH 1024   /* datagrams that are sent, or received, between two polls */
#define BATCH 16
#define SIGNAL_EVERY 64

static const char exchange_magic[4] = {'R', 'T', 'P', 'X'};
_Static_assert(sizeof(struct exchange_msg) <= DATAGRAM, "fits into every path MTU");

static int
datagram_post(struct exchange *ex, unsigned slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)ex->mem + slot * (GRH_LEN + DATAGRAM),
		.length = GRH_LEN + DATAGRAM,
		.lkey = ex->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(ex->qp, &wr, &bad);
}

static int
ud_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = UD_QKEY};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
	int rc = ibv_modify_qp(
		qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	if (rc == 0)
		rc = ibv_modify_qp(qp, &rtr, IBV_QP_STATE);
	return rc == 0 ? ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN) : rc;
}

static int
qp_open(struct host *host)
{
	struct exchange *ex = &host->exchange;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = sizeof(struct exchange_msg)}};
	size_t len = DEPTH * (GRH_LEN + DATAGRAM);
	int rc;

	ex->cq = ibv_create_cq(
		host->verbs.ctx, 2 * DEPTH, &ex->ready, host->verbs.channel, 0);
	if (ex->cq == NULL)
		return errno;
	init.send_cq = init.recv_cq = ex->cq;
	ex->qp = ibv_create_qp(host->verbs.pd, &init);
	if (ex->qp == NULL)
		return errno;
	ex->mem = buffer_map(len);
	if (ex->mem == NULL)
		return ENOMEM;
	ex->mr = ibv_reg_mr(host->verbs.pd, ex->mem, len, IBV_ACCESS_LOCAL_WRITE);
	if (ex->mr == NULL)
		return errno;
	rc = ud_to_rts(ex->qp);
	for (unsigned i = 0; i < DEPTH && rc == 0; i++)
		rc = datagram_post(ex, i);
	return rc;
}

int
exchange_open(struct host *host, char err[ERR_MAX])
{
	uint32_t want =
		exchange_qpn(host->conf, host->core, port_peers(host->pc), host->peer);
	int rc = qp_open(host);

	if (rc != 0)
		return error_set(err,
			"cannot create the QP before --qpn-base 0x%" PRIx64 ": %s",
			host->conf->qpn_base, strerror(rc));
	if (host->exchange.qp->qp_num != want)
		return error_set(err,
			"the QP before --qpn-base 0x%" PRIx64
			" has QPN 0x%x instead of 0x%x",
			host->conf->qpn_base, host->exchange.qp->qp_num, want);
	return 0;
}

void
exchange_close(struct exchange *ex)
{
	if (ex->qp != NULL)
		ibv_destroy_qp(ex->qp);
	if (ex->cq != NULL)
		ibv_destroy_cq(ex->cq);
	if (ex->ah != NULL)
		ibv_destroy_ah(ex->ah);
	if (ex->mr != NULL)
		ibv_dereg_mr(ex->mr);
	buffer_unmap(ex->mem, DEPTH * (GRH_LEN + DATAGRAM));
	*ex = (struct exchange){0};
}

int
exchange_start(struct host *host)
{
	struct exchange *ex = &host->exchange;
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = host->path.peer,
			.sgid_index = host->path.sgid_index,
			.hop_limit = (uint8_t)host->conf->hop_limit,
			.traffic_class = (uint8_t)host->conf->tclass}};

	ex->on = conf_exchanges(host->conf);
	ex->ring = (mix_any(&host->conf->mix) & OP_RING) != 0 && !host->conf->no_verify;
	ex->mws = (mix_any(&host->conf->mix) & OP_INV) != 0;
	ex->heard_ns = clock_ns();
	ex->agreed = ex->ended = false;
	__atomic_store_n(&ex->peers_there, 0, __ATOMIC_RELAXED);
	ex->asked.agreed = ex->asked.ended = ex->asked.receives = false;
	ex->asked.refused_ns = 0;
	ex->asked.heard_ns = ex->heard_ns;
	ex->run += host->ops->sends; /* a receiver gets its number from HELLO */
	ex->hello_ns = ex->alive_ns = ex->end_ns = 0;
	if (ex->ah != NULL)
		ibv_destroy_ah(ex->ah);
	if (ex->on && host->ops->receives && host->target.mem == NULL &&
		(errno = target_init(host)) != 0) {
		host_fail(host,
			"cannot allocate the memory for WRITEs and READs of --op: %s",
			strerror(errno));
		return -1;
	}
	if (ex->mws && (errno = mws_init(host)) != 0) {
		host_fail(host, "cannot allocate the memory windows of send-inv: %s",
			strerror(errno));
		return -1;
	}
	ex->ah = ibv_create_ah(host->verbs.pd, &attr);
	if (ex->ah == NULL) {
		host_fail(
			host, "cannot address %s: %s", host_peer(host), strerror(errno));
		return -1;
	}
	for (unsigned i = 0; i < host->n_conns; i++) {
		host->conns[i].ring.finished = false;
		host->conns[i].ring.asked_ns = 0;
	}
	return 0;
}

void
exchange_restart(struct host *host)
{
	if (host->ops->sends)
		host->exchange.session = clock_ns();
	/* A receiver gets the peer's session from HELLO, and connects its QPs then. */
	if (host->ops->sends && host->ops->receives)
		host->exchange.asked.session = 0;
}

bool
exchange_is_of_core(const struct host *host, uint32_t qpn, uint32_t peers)
{
	unsigned place = host->pc->peers[host->peer].place;

	return peers > place && peers <= PEERS_MAX &&
	       qpn == exchange_qpn(host->conf, host->core, peers, place);
}

uint64_t
exchange_options(const struct host *host, char text[OPTIONS_TEXT])
{
	const struct conf *conf = host->conf;
	char mix[192];
	uint64_t digest = UINT64_C(0xcbf29ce484222325);
	unsigned mtu = 128u << host->path.mtu;
	size_t len;

	mix_print(&conf->mix, mix, sizeof(mix));
	len = (size_t)snprintf(text, OPTIONS_TEXT,
		"--type %s --op %s --qps %" PRIu64 " --size ", qp_type_name(conf->type),
		mix, conf_qps(conf, host->pc));
	for (unsigned i = 0; i < conf->n_sizes; i++)
		len += (size_t)snprintf(text + len, OPTIONS_TEXT - len, "%s%" PRIu64,
			i != 0 ? "," : "", conf->sizes[i]);
	/* RDMA-CM tells each end the PSN and the path MTU of the other. */
	if (!host->by_cm && conf->psn != 0)
		len += (size_t)snprintf(
			text + len, OPTIONS_TEXT - len, " --psn %" PRIu64, conf->psn);
	if (!host->by_cm && conf->size_max > mtu) /* one packet fits either */
		len += (size_t)snprintf(text + len, OPTIONS_TEXT - len, " --mtu %u", mtu);
	if (conf_cores(conf) > 1) /* a core asks the same core of the other end */
		len += (size_t)snprintf(text + len, OPTIONS_TEXT - len, " --nb-cores %u",
			conf_cores(conf));
	len += (size_t)snprintf(text + len, OPTIONS_TEXT - len, "%s%s",
		conf->no_verify ? " --no-verify" : "",
		host->ops == &both_ops ? " --mode both" : "");
	for (const char *c = text; *c != '\0'; c++)
		digest = (digest ^ (uint8_t)*c) * UINT64_C(0x100000001b3); /* FNV-1a */
	if (conf->count != 0)
		snprintf(text + len, OPTIONS_TEXT - len, " --count %" PRIu64,
			conf_count(conf, host->pc));
	return digest;
}

void
exchange_options_put(const struct host *host, struct exchange_msg *hello)
{
	char all[OPTIONS_TEXT], *text = hello->u.hello.text;

	hello->u.hello.digest = htole64(exchange_options(host, all));
	hello->u.hello.count = htole64(conf_count(host->conf, host->pc));
	hello->u.hello.peers = htole32(port_peers(host->pc));
	if (strlen(all) < EXCHANGE_TEXT)
		strcpy(text, all);
	else
		snprintf(text, EXCHANGE_TEXT, "%.*s...", EXCHANGE_TEXT - 4, all);
}

bool
exchange_differs(
	const struct host *host, const struct exchange_msg *hello, char own[OPTIONS_TEXT])
{
	uint64_t count = le64toh(hello->u.hello.count),
		 own_count = conf_count(host->conf, host->pc);

	return exchange_options(host, own) != le64toh(hello->u.hello.digest) ||
	       (count != 0 && own_count != 0 && count != own_count);
}

struct exchange_msg
exchange_question(const struct host *host, enum exchange_kind kind)
{
	struct exchange_msg msg = {.kind = (uint8_t)kind,
		.session = htole64(host->exchange.session),
		.run = htole64(host->exchange.run)};

	memcpy(msg.magic, exchange_magic, sizeof(msg.magic));
	return msg;
}

/* A datagram that finds no room in the send queue is lost, as any other. */
void
exchange_post(struct host *host, const struct exchange_msg *msg)
{
	struct exchange *ex = &host->exchange;
	bool signal = ex->unsignaled + 1 >= SIGNAL_EVERY;
	struct ibv_sge sge = {.addr = (uintptr_t)msg, .length = sizeof(*msg)};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_INLINE | (signal ? IBV_SEND_SIGNALED : 0),
			.wr.ud = {.ah = ex->ah,
				.remote_qpn = ex->peer_qpn,
				.remote_qkey = UD_QKEY}};

	if (ibv_post_send(ex->qp, &wr, &bad) == 0)
		ex->unsignaled = signal ? 0 : ex->unsignaled + 1;
}

/* Two hosts may have given the same place among the peers of this one. A GRH ends with an IPv4 header, or
 * is an IPv6 header. */
static bool
is_from_peer(const struct host *host, const uint8_t *grh)
{
	static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *peer = host->path.peer.raw;

	if (memcmp(peer, v4_prefix, sizeof(v4_prefix)) == 0)
		return memcmp(peer + 12, grh + GRH_LEN - 8, 4) == 0;
	return memcmp(peer, grh + 8, sizeof(host->path.peer)) == 0;
}

static void
datagram_take(struct host *host, const struct ibv_wc *wc)
{
	struct exchange *ex = &host->exchange;
	struct exchange_msg msg;

	if (wc->byte_len != GRH_LEN + sizeof(msg) ||
		!is_from_peer(host, ex->mem + wc->wr_id * (GRH_LEN + DATAGRAM)))
		return;
	memcpy(&msg, ex->mem + wc->wr_id * (GRH_LEN + DATAGRAM) + GRH_LEN, sizeof(msg));
	if (memcmp(msg.magic, exchange_magic, sizeof(msg.magic)) != 0)
		return;
	if (msg.kind == EXCHANGE_HELLO && host->core != 0 &&
		exchange_is_of_core(host, wc->src_qp, le32toh(msg.u.hello.peers)))
		ex->peer_qpn = wc->src_qp;
	if (wc->src_qp != ex->peer_qpn)
		return;
	if (host->ops->receives && msg.answer == 0)
		exchange_asked(host, &msg);
	else if (host->ops->sends && msg.answer != 0)
		exchange_answered(host, &msg);
}

unsigned
exchange_poll(struct host *host)
{
	struct exchange *ex = &host->exchange;
	struct ibv_wc wc[BATCH];
	int n;

	if (ex->polling)
		return 0;
	n = host_poll_cq(host, ex->cq, BATCH, wc);
	ex->polling = true;
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS || wc[i].opcode != IBV_WC_RECV)
			continue;
		if (host_active(host))
			datagram_take(host, &wc[i]);
		if (datagram_post(ex, (unsigned)wc[i].wr_id) != 0)
			host_fail(host, "cannot post a receive of a datagram");
	}
	ex->polling = false;
	return n > 0 ? (unsigned)n : 0;
}
