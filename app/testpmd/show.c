/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "testpmd_parse.h"

static const char *const state_names[] = {
	"idle", "waiting", "running", "draining", "lingering", "done", "failed"};

/* Prints the counters' increase since `clear`. */
static void
print_stats(const struct snapshot *now, const struct snapshot *base, bool all)
{
	for (unsigned i = 0; i < now->n; i++) {
		const struct rocade_stat *row = &now->rows[i];
		uint64_t value = row->value - (i < base->n ? base->rows[i].value : 0);

		if (value != 0 || all)
			printf("    %-20s %16" PRIu64 "  %s\n", row->name, value,
				row->text);
	}
}

/* Returns an active host of the port, if there is one. */
static struct host *
active_host(struct host *head)
{
	for (unsigned c = 0; c < head->n_hosts; c++) {
		if (host_active(host_at(head, c)))
			return host_at(head, c);
	}
	return head;
}

static void
show_port(struct host *host, bool all)
{
	struct rocade_impair_stats impair;
	struct host *one = active_host(host);
	struct snapshot now;

	printf("port %" PRIu64 ": %s, %s, link %s, %s, path MTU %u\n", host->pc->port,
		mode_name(host->pc->mode), state_names[one->state],
		rocade_port_link_up(host->port) ? "up" : "down", host->pc->addr,
		host->path.mtu != 0 ? 128u << host->path.mtu : 0);
	printf("  peer %s, gateways %s %s\n",
		host->pc->peer[0] != '\0' ? host->pc->peer : "none",
		host->pc->gateway4[0] != '\0' ? host->pc->gateway4 : "none",
		host->pc->gateway6[0] != '\0' ? host->pc->gateway6 : "none");
	host_impaired_since(host, &host->base.show_impair, &impair);
	if (all ||
		impair.lost + impair.duplicated + impair.reordered + impair.corrupted !=
			0)
		printf("  impaired on purpose: %" PRIu64 " lost, %" PRIu64
		       " duplicated, %" PRIu64 " reordered, %" PRIu64 " corrupted\n",
			impair.lost, impair.duplicated, impair.reordered,
			impair.corrupted);
	host_snapshot(host, -1, &now);
	print_stats(&now, &host->base.show, all);
}

static void
show_engine(struct host *host, bool all)
{
	static const char *const runners[] = {
		"the main loop", "a worker lcore", "a core of --nb-cores"};

	for (unsigned e = 0; e < host->n_engines; e++) {
		struct snapshot now;

		printf("port %" PRIu64 " engine %u: run by %s", host->pc->port, e,
			runners[host->runner]);
		if (host->runner != ENGINES_BY_MAIN)
			printf(" (lcore %u)", host->engine_lcores[e]);
		printf("\n");
		host_snapshot(host, (int)e, &now);
		print_stats(&now, &host->base.engine[e], all);
	}
}

static const char *
qp_state_name(enum ibv_qp_state state)
{
	static const char *const names[] = {
		"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

/* base: the counters at `clear`; NULL: all 0. */
static void
show_one_qp(struct ibv_qp *qp, const uint64_t *base, bool all)
{
	struct rocade_stat rows[QP_STATS_MAX];
	struct ibv_qp_init_attr init;
	struct rocade_qp_info info;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0 ||
		rocade_qp_info(qp, &info) != 0)
		return;
	printf("  0x%06x %-5s engine %u, to 0x%06x, SQ %" PRIu32 "/%" PRIu32 " (%" PRIu32
	       " signaled), %" PRIu32 " packets unacknowledged, ",
		qp->qp_num, qp_state_name(attr.qp_state), info.engine, info.dest_qpn,
		info.sq_outstanding, info.sq_max_wr, info.sq_signaled, info.sq_unacked);
	if (info.rq_max_wr != 0)
		printf("RQ %" PRIu32 "/%" PRIu32 ", ", info.rq_outstanding,
			info.rq_max_wr);
	printf("PSN out %" PRIu32 " in %" PRIu32 ", MSN %" PRIu32 "\n", info.sq_psn,
		info.rq_psn, info.msn);
	if (info.sq_outstanding == info.sq_max_wr && info.sq_signaled == 0)
		printf("    the send queue is full: %" PRIu32 " unsignaled, none "
		       "signaled (%" PRIu32 " posts refused); no slot is freed before "
		       "RESET: signal at least one request in every %" PRIu32 "\n",
			info.sq_outstanding, info.sq_full_unsignaled, info.sq_max_wr);
	unsigned n = rocade_qp_stats(qp, rows, QP_STATS_MAX);
	for (unsigned i = 0; i < n && i < QP_STATS_MAX; i++) {
		uint64_t before = base != NULL ? base[i] : 0;
		/* A counter of 32 bits may have begun again. */
		uint64_t value = rows[i].value - (before <= rows[i].value ? before : 0);

		if (all || value != 0)
			printf("    %-20s %16" PRIu64 "  %s\n", rows[i].name, value,
				rows[i].text);
	}
}

static void
show_qp(struct host *host, bool all)
{
	if (host == host->head)
		printf("port %" PRIu64 ": %" PRIu64 " QPs\n", host->pc->port,
			host->conf->qps);
	for (unsigned i = 0; i < host->n_conns; i++) {
		show_one_qp(host->conns[i].qp,
			host->base.qps != NULL ? &host->base.qps[i * QP_STATS_MAX] : NULL,
			all);
		/* Its counters are since the start. */
		if (host->conns[i].xrc_target != NULL)
			show_one_qp(host->conns[i].xrc_target, NULL, all);
	}
}

static void
line_print(const char *line, void *arg)
{
	(void)arg;
	printf("  %s\n", line);
}

bool
show_qp_events(struct host *host, uint32_t index)
{
	unsigned c = 0;

	if (index >= host->conf->qps)
		return false;
	printf("port %" PRIu64 ", QP %" PRIu32 ":\n", host->pc->port, index);
	while (index - host_at(host, c)->first_conn >= host_at(host, c)->n_conns)
		c++;
	host = host_at(host, c);
	return rocade_qp_events(
		       host->conns[index - host->first_conn].qp, line_print, NULL) == 0;
}

static void
show_srq(struct host *host)
{
	struct rocade_srq_info info;
	uint32_t number;

	if (host != host->head && (host->verbs.srq == NULL || borrows_srq(host)))
		return;
	if (host->verbs.srq == NULL || rocade_srq_info(host->verbs.srq, &info) != 0 ||
		ibv_get_srq_num(host->verbs.srq, &number) != 0) {
		printf("port %" PRIu64 ": no SRQ\n", host->pc->port);
		return;
	}
	printf("port %" PRIu64 ": SRQ 0x%06" PRIx32 ", %" PRIu32 " of %" PRIu32
	       " receives posted, max_sge %" PRIu32 ", limit ",
		host->pc->port, number, info.outstanding, info.max_wr, info.max_sge);
	if (info.limit != 0)
		printf("%" PRIu32 " armed", info.limit);
	else
		printf("not armed");
	printf(", %" PRIu64 " limit events, %" PRIu64 " refills%s\n",
		host->tally.limit_events - host->base.limit_events,
		host->tally.refills - host->base.refills, info.error ? ", in ERROR" : "");
}

static void
show_one_cq(const struct host *host, const char *name, struct ibv_cq *cq)
{
	struct rocade_cq_info info;

	if (rocade_cq_info(cq, &info) == 0)
		printf("port %" PRIu64 ": %s CQ, %" PRIu32 " of %" PRIu32
		       " entries not polled%s\n",
			host->pc->port, name, info.outstanding, info.size,
			info.error ? ", in ERROR" : "");
}

static void
show_mr(const struct host *host)
{
	const struct ibv_mr *mr = host->tx.mr;

	if (mr != NULL)
		printf("port %" PRIu64 ": lkey 0x%08x, %zu bytes at %p, to send\n",
			host->pc->port, mr->lkey, mr->length, mr->addr);
	mr = host->target.mr;
	if (mr != NULL)
		printf("port %" PRIu64 ": rkey 0x%08x, %zu bytes at %p, for the peer\n",
			host->pc->port, mr->rkey, mr->length, mr->addr);
	for (unsigned q = 0; q < host->n_rxqs && !host->rxqs[q].borrowed; q++) {
		for (unsigned s = 0; s < host->rxqs[q].n_slabs; s++) {
			mr = host->rxqs[q].slabs[s].mr;
			printf("port %" PRIu64
			       ": lkey 0x%08x, %zu bytes at %p, to receive\n",
				host->pc->port, mr->lkey, mr->length, mr->addr);
		}
	}
}

static void
show_neigh(struct host *host)
{
	struct rocade_neigh rows[64];
	unsigned n = rocade_port_neighs(host->port, rows, 64);

	printf("port %" PRIu64 ": %u neighbours\n", host->pc->port, n);
	for (unsigned i = 0; i < n && i < 64; i++) {
		const uint8_t *mac = rows[i].mac;
		char text[64];

		printf("  %-40s %02x:%02x:%02x:%02x:%02x:%02x %s, answered %.1f s ago\n",
			rocade_gid_format(&rows[i].gid, text, sizeof(text)), mac[0],
			mac[1], mac[2], mac[3], mac[4], mac[5], rows[i].state,
			(double)rows[i].age_ns / (double)NS_PER_SECOND);
	}
}

static void
show_peer_window(const char *name, const struct rocade_peer_window *w, bool cc)
{
	printf("    %s: %" PRIu32 " of %" PRIu32 " packets in flight, %" PRIu32
	       " QPs blocked",
		name, w->inflight, w->window, w->qps_blocked);
	if (cc) {
		printf(", congestion window %.2f packets%s, ", w->cc_window,
			w->cc_paced ? " (paced)" : "");
		if (w->cc_target_ns == 0)
			printf("delays do not count");
		else if (w->cc_delay_ns == UINT32_MAX)
			printf("no delay measured, target %.1f us",
				w->cc_target_ns / 1e3);
		else
			printf("delay %.1f us, target %.1f us", w->cc_delay_ns / 1e3,
				w->cc_target_ns / 1e3);
	}
	putchar('\n');
}

static void
show_one_peer(const struct rocade_peer *peer)
{
	char text[64];

	printf("  %-40s engine %u, %" PRIu32
	       " QPs, round trip %.1f us, window cap %" PRIu32 " packets%s\n",
		rocade_gid_format(&peer->gid, text, sizeof(text)), peer->engine,
		peer->qps, peer->srtt_ns / 1e3, peer->cap,
		peer->cc ? "" : ", no congestion control");
	show_peer_window("send", &peer->send, peer->cc);
	show_peer_window("read", &peer->read, peer->cc);
}

static void
show_peer(struct host *host)
{
	struct rocade_peer rows[64];
	unsigned n = rocade_port_peers(host->port, rows, 64);

	printf("port %" PRIu64 ": %u peers\n", host->pc->port, n);
	for (unsigned i = 0; i < n && i < 64; i++)
		show_one_peer(&rows[i]);
}

/* Objects that each core has of its own. */
static void
show_core(struct host *host, enum show_what what, bool all)
{
	if (what == SHOW_QP) {
		show_qp(host, all);
	} else if (what == SHOW_SRQ) {
		show_srq(host);
	} else if (what == SHOW_CQ) {
		show_one_cq(host, "send", host->verbs.send_cq);
		show_one_cq(host, "receive", host->verbs.recv_cq);
	} else {
		show_mr(host);
	}
}

void
show_host(struct host *head, enum show_what what, bool all)
{
	switch (what) {
	case SHOW_PORT:
		show_port(head, all);
		break;
	case SHOW_ENGINE:
		show_engine(head, all);
		break;
	case SHOW_NEIGH:
		show_neigh(head);
		break;
	case SHOW_PEER:
		show_peer(head);
		break;
	default:
		for (unsigned c = 0; c < head->n_hosts; c++)
			show_core(host_at(head, c), what, all);
	}
}
