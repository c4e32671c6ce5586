/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing: port, device, PD, CQs, SRQ, QPs, buffers. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app_port.h"
#include "host.h"

#define RX_MEM_MAX (UINT64_C(256) << 20)
#define RECV_CQ_MIN 16384

static void
port_conf_fill(
	const struct conf *conf, const struct port_conf *pc, struct rocade_port_conf *out)
{
	*out = (struct rocade_port_conf){.size = sizeof(*out),
		.addresses = pc->addr,
		.gateway4 = pc->gateway4[0] != '\0' ? pc->gateway4 : NULL,
		.gateway6 = pc->gateway6[0] != '\0' ? pc->gateway6 : NULL,
		.mtu = (uint32_t)pc->if_mtu,
		.vlan = (uint16_t)pc->vlan,
		.ethdev = (uint16_t)pc->port,
		.engines = (uint16_t)conf->engines,
		.rx_desc = (uint16_t)conf->rxd,
		.tx_desc = (uint16_t)conf->txd,
		.qpn_base = (uint32_t)conf->qpn_base -
			    conf_cores(conf) * port_peers(pc), /* exchange.h */
		.peer_window = (uint32_t)conf->peer_window,
		.no_cksum_offload = conf->no_cksum_offload,
		.no_cnp = conf->no_cnp,
		.no_sack = conf->no_sack,
		.flight_recorder = conf->flight_recorder,
		.paths = (uint16_t)conf->paths,
		.rx_interrupts = conf->sleep};
	/* IPv6 header, UDP, BTH and extension headers, ICRC: what the path MTU needs on
	 * top. Below 2048 the 1500 bytes of Ethernet suffice. */
	if (out->mtu == 0 && conf->mtu >= 2048)
		out->mtu = (uint32_t)conf->mtu + 88;
}

static int
host_ports_open(struct host *hosts, unsigned n, struct conf *conf, char err[ERR_MAX])
{
	struct rocade_port_conf port_conf[PORTS_MAX] = {0};
	struct rocade_port *ports[PORTS_MAX] = {NULL};
	struct rocade_cc_conf cc;
	int rc = 0;

	if (conf->cc != NULL && rocade_cc_parse(conf->cc, &cc) != 0)
		return error_set(err, "invalid value for --cc: %s", rocade_error());
	for (unsigned i = 0; i < n; i++) {
		port_conf_fill(conf, &conf->ports[i], &port_conf[i]);
		port_conf[i].cc = conf->cc != NULL ? &cc : NULL;
	}
	if (conf->loop) {
		rc = rocade_open_loop(port_conf, ports);
		if (rc != 0)
			snprintf(err, ERR_MAX, "cannot open the loop ports: %s",
				rocade_error());
	}
	for (unsigned i = 0; i < n && !conf->loop && rc == 0; i++) {
		if (conf->shared != SHARED_NOT) {
			hosts[i].app_port =
				app_port_open(conf, &port_conf[i], &ports[i], err);
			rc = hosts[i].app_port != NULL ? 0 : -1;
			continue;
		}
		rc = rocade_open_port(&port_conf[i], &ports[i]);
		if (rc != 0)
			snprintf(err, ERR_MAX, "cannot open port %" PRIu64 ": %s",
				conf->ports[i].port, rocade_error());
	}
	for (unsigned i = 0; i < n; i++)
		hosts[i].port = ports[i];
	return rc == 0 ? 0 : -1;
}

static int
host_cqs_create(struct host *host, char err[ERR_MAX])
{
	const struct conf *conf = host->conf;
	uint64_t depth = host->rxqs == NULL ? 0 : conf->depth;
	uint64_t send = (uint64_t)host->n_conns * host_sq_depth(host);
	uint64_t recv = conf->rq ? host->n_conns * depth : 4 * depth;

	if (recv < RECV_CQ_MIN)
		recv = RECV_CQ_MIN;
	if (recv > (uint64_t)host->verbs.attr.max_cqe)
		recv = (uint64_t)host->verbs.attr.max_cqe;
	if (send > (uint64_t)host->verbs.attr.max_cqe ||
		(conf->rq && recv < host->n_conns * depth))
		return error_set(err,
			"invalid value '%u' for --qps: needs a CQ of %" PRIu64
			" entries (--sq-depth, --depth); expected at most %d",
			host->n_conns, conf->rq ? host->n_conns * depth : send,
			host->verbs.attr.max_cqe);
	if (conf->events)
		host->verbs.channel = host->first != host
					      ? host->first->verbs.channel
					      : cq_channel_open(host->verbs.ctx);
	if (conf->events && host->verbs.channel == NULL)
		return error_set(
			err, "cannot create a completion channel: %s", strerror(errno));
	/* Not armed yet: they are polled first. */
	host->verbs.send_ready = host->verbs.recv_ready = host->exchange.ready = true;
	host->verbs.send_cq = ibv_create_cq(host->verbs.ctx, (int)send,
		&host->verbs.send_ready, host->verbs.channel, 0);
	host->verbs.recv_cq = ibv_create_cq(host->verbs.ctx, (int)recv,
		&host->verbs.recv_ready, host->verbs.channel, 0);
	if (host->verbs.send_cq == NULL || host->verbs.recv_cq == NULL)
		return error_set(err, "cannot create a CQ: %s", strerror(errno));
	return 0;
}

/* Returns NULL, with errno set, on failure. */
static struct ibv_srq *
xrc_srq_create(struct host *host, const struct ibv_srq_attr *attr)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT};
	struct ibv_srq_init_attr_ex init = {.attr = *attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.cq = host->verbs.recv_cq,
		.pd = host->verbs.pd};
	struct ibv_srq *srq;

	host->verbs.xrcd = ibv_open_xrcd(host->verbs.ctx, &domain);
	if (host->verbs.xrcd == NULL)
		return NULL;
	init.xrcd = host->verbs.xrcd;
	srq = ibv_create_srq_ex(host->verbs.ctx, &init);
	if (srq != NULL)
		(void)ibv_get_srq_num(srq, &host->verbs.srqn);
	return srq;
}

static int
host_srq_create(struct host *host, char err[ERR_MAX])
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = (uint32_t)host->conf->depth, .max_sge = 1}};

	if (host->conf->type == TYPE_XRC)
		host->verbs.srq = xrc_srq_create(host, &init.attr);
	else
		host->verbs.srq = ibv_create_srq(host->verbs.pd, &init);
	if (host->verbs.srq == NULL)
		return error_set(err,
			"invalid value '%" PRIu64 "' for --depth: cannot create an SRQ "
			"of this size (largest: %d): %s",
			host->conf->depth, host->verbs.attr.max_srq_wr, strerror(errno));
	rxq_init(&host->rxqs[0], host->verbs.srq, NULL);
	host->rxqs[0].capacity = (uint32_t)host->conf->depth;
	host->rxqs[0].sharers =
		conf_shares_srq(host->conf) ? conf_cores(host->conf) - 1 : 0;
	return 0;
}

/* Receive buffers and send buffers. */
static int
host_buffers_create(struct host *host, char err[ERR_MAX])
{
	const struct conf *conf = host->conf;
	int rc = 0;

	if (host->n_rxqs != 0 && borrows_srq(host) && host->first == host)
		rc = rxq_share(&host->rxqs[0], &host->head->rxqs[0]);
	for (unsigned i = 0; i < host->n_rxqs && !borrows_srq(host) && rc == 0; i++)
		rc = rxq_grow(&host->rxqs[i], host->verbs.pd, (uint32_t)conf->depth,
			conf->size_max + (conf->type == TYPE_UD ? GRH_LEN : 0));
	if (rc == 0 && host->ops->sends)
		rc = tx_init(host);
	if (rc == 0)
		return 0;
	return error_set(err,
		"cannot allocate message buffers (--size up to %" PRIu64
		", --depth %" PRIu64 ", --qps %u): %s",
		conf->size_max, conf->depth, host->n_conns, strerror(rc));
}

static int
host_context_open(struct host *host, char err[ERR_MAX])
{
	if (lender(host) != host)
		host->verbs.ctx = lender(host)->verbs.ctx;
	else
		host->verbs.ctx = ibv_open_device(rocade_port_device(host->port));
	if (host->verbs.ctx == NULL ||
		ibv_query_device(host->verbs.ctx, &host->verbs.attr) != 0)
		return error_set(err,
			"cannot open the verbs device of port %" PRIu64 ": %s",
			host->pc->port, strerror(errno));
	fcntl(host->verbs.ctx->async_fd, F_SETFL,
		fcntl(host->verbs.ctx->async_fd, F_GETFL) | O_NONBLOCK);
	return host->conf->binds ? mws_check(host, err) : 0;
}

static int
host_device_open(struct host *host, char err[ERR_MAX])
{
	if (host_context_open(host, err) != 0)
		return -1;
	host->verbs.pd = ibv_alloc_pd(host->verbs.ctx);
	if (host->verbs.pd == NULL)
		return error_set(err, "cannot create a PD: %s", strerror(errno));
	host->n_engines = rocade_port_engine_count(host->port);
	for (unsigned i = 0; i < host->n_engines && i < ENGINES_MAX; i++)
		host->engines[i] = rocade_port_engine(host->port, i);
	return 0;
}

/* One thread uses the receives of all peers of a core. */
static int
host_rxqs_alloc(struct host *host)
{
	host->n_rxqs = !host->ops->receives ? 0 : host->conf->rq ? host->n_conns : 1;
	if (host->n_rxqs == 0)
		return 0;
	host->rxqs = borrows_srq(host) && host->first != host
			     ? host->first->rxqs
			     : calloc(host->n_rxqs, sizeof(*host->rxqs));
	return host->rxqs != NULL ? 0 : -1;
}

static int
host_open(struct host *host, char err[ERR_MAX])
{
	host->conns = calloc(host->n_conns, sizeof(*host->conns));
	if (host->conns == NULL || host_rxqs_alloc(host) != 0)
		return error_set(err, "out of memory");
	if (host_device_open(host, err) != 0 || host_cqs_create(host, err) != 0)
		return -1;
	if (host->n_rxqs != 0 && borrows_srq(host))
		host->verbs.srq = lender(host)->verbs.srq;
	else if (host->n_rxqs != 0 && !host->conf->rq && host_srq_create(host, err) != 0)
		return -1;
	return 0;
}

/* The default of --depth: as many receives as fit into RX_MEM_MAX. */
static uint64_t
default_depth(const struct conf *conf)
{
	uint64_t depth = conf->rq ? 512 : 4096;
	uint64_t queues = conf->srq_per_core ? conf_cores(conf) : 1;
	uint64_t fit;

	if (conf->rq || conf->type == TYPE_XRC) /* an SRQ for each peer at most */
		queues = conf->qps;
	fit = RX_MEM_MAX / ((conf->size_max | 63) + 1) / queues;

	if (fit < depth)
		depth = fit == 0 ? 1 : fit;
	return depth > conf->srq_limit ? depth : conf->srq_limit;
}

static const struct mode_ops *
ops_of(enum mode_kind mode)
{
	return mode == MODE_SEND   ? &send_ops
	       : mode == MODE_SINK ? &sink_ops
	       : mode == MODE_BOTH ? &both_ops
				   : &pingpong_ops;
}

static void
host_init(struct host *host, struct host *head, unsigned i)
{
	unsigned cores = conf_cores(head->conf), core = i % cores, peer = i / cores;
	unsigned qps = (unsigned)conf_qps(head->conf, head->pc);
	unsigned more = qps % cores; /* cores that have one QP more */

	host->index = head->index;
	host->head = head;
	host->first = host_at(head, core);
	host->conf = head->conf;
	host->pc = head->pc;
	host->ops = head->ops;
	host->port = head->port;
	host->reconnect = true;
	host->two_qpns = conf_qpns(head->conf, head->pc) - 1;
	host->core = core;
	host->peer = peer;
	host->n_conns = qps / cores + (core < more);
	host->first_conn =
		peer * qps + core * (qps / cores) + (core < more ? core : more);
}

/* Opens the hosts of all cores and peers. QPNs are given in the order in which QPs are created. */
static int
port_hosts_open(struct host *head, char err[ERR_MAX])
{
	unsigned n = conf_cores(head->conf) * port_peers(head->pc);

	if (n > 1)
		head->others = aligned_alloc(
			_Alignof(struct host), (n - 1) * sizeof(*head->others));
	if (n > 1 && head->others == NULL)
		return error_set(err, "out of memory");
	for (unsigned i = 1; i < n; i++)
		head->others[i - 1] = (struct host){0};
	head->n_hosts = n;
	for (unsigned i = 0; i < n; i++)
		host_init(host_at(head, i), head, i);
	for (unsigned i = 0; i < n; i++) {
		if (host_open(host_at(head, i), err) != 0)
			return -1;
	}
	for (unsigned i = n;
		i-- > 0;) { /* those of a core one after another: exchange_qpn() */
		unsigned core = i / port_peers(head->pc), peer = i % port_peers(head->pc);

		if (exchange_open(host_at(head, peer * conf_cores(head->conf) + core),
			    err) != 0)
			return -1;
	}
	for (unsigned i = 0; i < n; i++) {
		if (host_conns_create(host_at(head, i), err) != 0 ||
			host_buffers_create(host_at(head, i), err) != 0)
			return -1;
	}
	return 0;
}

int
hosts_open(struct host *hosts, unsigned n, struct conf *conf, char err[ERR_MAX])
{
	if (conf->depth == 0)
		conf->depth = default_depth(conf);
	conf->size_cap = conf->size_max;
	conf->binds = (mix_any(&conf->mix) & OP_INV) != 0;
	conf->flushes = mix_has(&conf->mix, OP_FLUSH);
	if (host_ports_open(hosts, n, conf, err) != 0)
		goto undo;
	for (unsigned i = 0; i < n; i++) {
		hosts[i].index = i;
		hosts[i].head = &hosts[i];
		hosts[i].conf = conf;
		hosts[i].pc = &conf->ports[i];
		hosts[i].ops = ops_of(conf->ports[i].mode);
		if (conf->dump != NULL && host_dump(&hosts[i], conf->dump, err) != 0)
			goto undo;
		if (port_hosts_open(&hosts[i], err) != 0)
			goto undo;
	}
	return 0;
undo:
	for (unsigned i = 0; i < n; i++)
		port_close(&hosts[i]);
	return -1;
}

static void
host_close(struct host *host)
{
	bool own_rxqs = host->first == host || host->rxqs != host->first->rxqs;

	for (unsigned i = 0; i < host->n_conns && host->conns != NULL; i++) {
		if (host->conns[i].qp != NULL)
			ibv_destroy_qp(host->conns[i].qp);
		if (host->conns[i].xrc_target != NULL)
			ibv_destroy_qp(host->conns[i].xrc_target);
	}
	if (host->verbs.srq != NULL && !borrows_srq(host))
		ibv_destroy_srq(host->verbs.srq);
	if (host->verbs.xrcd != NULL)
		ibv_close_xrcd(host->verbs.xrcd);
	if (host->verbs.send_cq != NULL)
		ibv_destroy_cq(host->verbs.send_cq);
	if (host->verbs.recv_cq != NULL)
		ibv_destroy_cq(host->verbs.recv_cq);
	for (unsigned i = 0; i < host->n_rxqs && host->rxqs != NULL && own_rxqs; i++)
		rxq_fini(&host->rxqs[i]);
	tx_fini(&host->tx);
	mws_fini(&host->mws, host->n_conns);
	target_fini(&host->target);
	exchange_close(&host->exchange);
	if (host->verbs.channel != NULL && host->first == host)
		ibv_destroy_comp_channel(host->verbs.channel);
	rate_close(&host->rate);
	free(host->base.qps);
	free(host->conns);
	if (own_rxqs)
		free(host->rxqs);
	if (host->verbs.pd != NULL)
		ibv_dealloc_pd(host->verbs.pd);
	if (host->verbs.ctx != NULL && lender(host) == host)
		ibv_close_device(host->verbs.ctx);
}

void
port_close(struct host *head)
{
	host_cm_close(head);
	for (unsigned i = head->n_hosts; i-- > 1;)
		host_close(host_at(head, i));
	if (head->n_hosts != 0)
		host_close(head);
	free(head->others);
	host_dump_end(head);
	if (head->port != NULL)
		rocade_close_port(head->port);
	app_port_close(head->app_port);
	*head = (struct host){0};
}
