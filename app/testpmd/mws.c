/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static struct mws_bound *
bound_of(const struct host *host, const struct conn *conn)
{
	return &host->mws.bound[conn - host->conns];
}

static struct mws_known *
known_of(const struct host *host, const struct conn *conn)
{
	return &host->mws.known[conn - host->conns];
}

int
mws_check(const struct host *host, char err[ERR_MAX])
{
	uint64_t windows = (uint64_t)host->verbs.attr.max_mw;

	if (!host->ops->receives || host->conf->qps * MWS_OF_QP <= windows)
		return 0;
	return error_set(err,
		"invalid value '%" PRIu64 "' for --qps: expected at most %" PRIu64
		" with --op send-inv, as each QP has %u memory windows, and the device %" PRIu64,
		host->conf->qps, windows / MWS_OF_QP, MWS_OF_QP, windows);
}

static void
bound_free(struct mws *mws, unsigned n_conns)
{
	for (unsigned i = 0; i < n_conns * MWS_OF_QP && mws->bound != NULL; i++) {
		struct ibv_mw *mw = mws->bound[i / MWS_OF_QP].mw[i % MWS_OF_QP];

		if (mw != NULL)
			ibv_dealloc_mw(mw);
	}
	free(mws->bound);
	mws->bound = NULL;
}

int
mws_init(struct host *host)
{
	struct mws *mws = &host->mws;

	if (host->ops->sends && mws->known == NULL) {
		mws->known = calloc(host->n_conns, sizeof(*mws->known));
		if (mws->known == NULL)
			return ENOMEM;
	}
	if (!host->ops->receives || mws->bound != NULL)
		return 0;
	mws->bound = calloc(host->n_conns, sizeof(*mws->bound));
	if (mws->bound == NULL)
		return ENOMEM;
	for (unsigned i = 0; i < host->n_conns * MWS_OF_QP; i++) {
		struct ibv_mw **mw = &mws->bound[i / MWS_OF_QP].mw[i % MWS_OF_QP];

		*mw = ibv_alloc_mw(host->verbs.pd, IBV_MW_TYPE_2);
		if (*mw == NULL) {
			int rc = errno;

			bound_free(mws, host->n_conns);
			return rc;
		}
	}
	return 0;
}

void
mws_fini(struct mws *mws, unsigned n_conns)
{
	bound_free(mws, n_conns);
	free(mws->known);
	*mws = (struct mws){0};
}

void
mws_restart(struct host *host, const struct conn *conn)
{
	if (host->mws.known != NULL)
		*known_of(host, conn) = (struct mws_known){0};
	if (host->mws.bound != NULL) {
		struct mws_bound *bound = bound_of(host, conn);

		bound->posted = bound->bound = bound->invalidated = bound->told = 0;
	}
}

/* ---- The receiver ---- */

/* Posts the next bind. Returns 0, or an errno value. */
static int
bind_post(struct host *host, const struct conn *conn)
{
	struct mws_bound *bound = bound_of(host, conn);
	unsigned i = bound->posted % MWS_OF_QP;
	struct ibv_mw *mw = bound->mw[i];
	uint64_t word =
		target_word(&host->target.map, (unsigned)(conn - host->conns), WORD_FADD);
	struct ibv_send_wr *bad,
		wr = {.wr_id = MWS_WR_ID | bound->posted,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = IBV_SEND_SIGNALED,
			.bind_mw = {.mw = mw,
				.rkey = ibv_inc_rkey(mw->rkey),
				.bind_info = {.mr = host->target.mr,
					.addr = (uintptr_t)host->target.mem + word,
					.length = sizeof(uint64_t),
					.mw_access_flags = IBV_ACCESS_REMOTE_WRITE}}};
	int rc = ibv_post_send(conn->qp, &wr, &bad);

	if (rc != 0)
		return rc;
	bound->rkeys[i] = wr.bind_mw.rkey;
	bound->posted++;
	return 0;
}

static void
conn_bind(struct host *host, const struct conn *conn)
{
	struct mws_bound *bound = bound_of(host, conn);
	int rc = 0;

	while (bound->posted < bound->invalidated + MWS_OF_QP && rc == 0)
		rc = bind_post(host, conn);
	if (rc != 0)
		host_fail(host, "binding a memory window of QP 0x%x failed: %s",
			conn->qpn, strerror(rc));
}

void
mws_bind(struct host *host)
{
	for (unsigned i = 0; i < host->n_conns && host_active(host); i++)
		conn_bind(host, &host->conns[i]);
}

void
mws_bind_done(struct host *host, struct conn *conn, const struct ibv_wc *wc)
{
	struct mws_bound *bound = bound_of(host, conn);

	if (wc->status != IBV_WC_SUCCESS) {
		if (!conn->resetting && !conn->failed &&
			wc->status != IBV_WC_WR_FLUSH_ERR)
			host_fail(host,
				"bind %" PRIu64
				" of a memory window of QP 0x%x failed: %s: the SEND "
				"before has not invalidated it",
				wc->wr_id & ~MWS_WR_ID, conn->qpn,
				ibv_wc_status_str(wc->status));
		return;
	}
	bound->bound++;
	if (bound->bound < bound->told + MWS_OF_QP / 2)
		return;
	bound->told = bound->bound;
	exchange_tell_mws(host, conn);
}

void
mws_invalidated(struct host *host, const struct conn *conn, uint64_t msg, uint32_t rkey)
{
	struct mws_bound *bound = bound_of(host, conn);
	uint32_t want = bound->rkeys[bound->invalidated % MWS_OF_QP];

	if (rkey != want)
		host_fail(host,
			"message %" PRIu64
			" (send-inv) of QP 0x%x has invalidated the R_Key 0x%x, "
			"expected 0x%x",
			msg, conn->qpn, rkey, want);
	bound->invalidated++;
	conn_bind(host, conn);
}

void
mws_tell(const struct host *host, const struct conn *conn, struct mws_told *told)
{
	const struct mws_bound *bound = bound_of(host, conn);

	told->from = bound->posted < MWS_OF_QP ? 0 : bound->posted - MWS_OF_QP;
	told->n = (uint32_t)(bound->bound - told->from);
	for (uint32_t i = 0; i < told->n; i++)
		told->rkeys[i] = bound->rkeys[(told->from + i) % MWS_OF_QP];
}

/* ---- The sender ---- */

bool
mws_learn(struct host *host, const struct conn *conn, const struct mws_told *told)
{
	struct mws_known *known = known_of(host, conn);

	if (told->n > MWS_OF_QP || told->from > known->bound ||
		told->from + told->n > known->used + MWS_OF_QP)
		return false;
	for (uint32_t i = 0; i < told->n; i++) {
		if (told->from + i < known->bound)
			continue;
		known->rkeys[(told->from + i) % MWS_OF_QP] = told->rkeys[i];
		known->bound = told->from + i + 1;
		known->asked_ns = 0;
	}
	return true;
}

uint32_t
mws_use(struct host *host, const struct conn *conn)
{
	struct mws_known *known = known_of(host, conn);

	return known->rkeys[known->used++ % MWS_OF_QP];
}

uint64_t
mws_room(const struct host *host, const struct conn *conn)
{
	const struct mws_known *known = known_of(host, conn);

	return known->bound - known->used;
}
