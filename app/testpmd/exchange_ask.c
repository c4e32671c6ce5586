/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's questions (exchange.h). A question or its answer may be lost: it is asked again. */
#include <endian.h>
#include <inttypes.h>

#include "host.h"

#define ALIVE_NS (NS_PER_SECOND / 10)

/* Whether the QPN of the other end is known: by the answer to core 0, whose own QPN needs none. An end with another
 * number of cores is named there. */
static bool
peer_qpn_known(struct host *host)
{
	const struct host *zero =
		host_at(host->head, host->peer * conf_cores(host->conf));
	uint32_t peers = __atomic_load_n(&zero->exchange.peers_there, __ATOMIC_RELAXED);

	if (host->core != 0 && peers != 0)
		host->exchange.peer_qpn = exchange_qpn(
			host->conf, host->core, peers, host->pc->peers[host->peer].place);
	return host->core == 0 || peers != 0;
}

void
exchange_hello(struct host *host, uint64_t now_ns)
{
	struct exchange_msg msg = exchange_question(host, EXCHANGE_HELLO);

	if (now_ns < host->exchange.hello_ns || !peer_qpn_known(host))
		return;
	host->exchange.hello_ns = now_ns + EXCHANGE_AGAIN_NS;
	msg.u.hello.of_session = htole64(host->exchange.asked.session);
	exchange_options_put(host, &msg);
	exchange_post(host, &msg);
}

/* How many of the QP's WRITEs the receiver may check: with --op flush those before a FLUSH that is complete. A FLUSH
 * takes no slot, but this end posts nothing while the ring is full: all acknowledged WRITEs are checked then, also those
 * without a FLUSH behind them. */
static uint64_t
writes_checkable(const struct host *host, const struct conn *conn)
{
	const struct conn_ring *ring = &conn->ring;

	if (ring->acked - ring->checked == host->exchange.peer.slots)
		return ring->acked;
	return ring->flushed > ring->checked ? ring->flushed : ring->checked;
}

static void
check_ask(struct host *host, struct conn *conn, bool last, uint64_t now_ns)
{
	struct exchange_msg msg = exchange_question(host, EXCHANGE_CHECK);

	msg.last = last;
	msg.u.check.qp = htole64((uint64_t)(conn - host->conns));
	msg.u.check.writes = htole64(last ? conn->ring.acked : conn->ring.asked);
	msg.u.check.messages = htole64(conn->acked);
	msg.u.check.fadd = htole64(conn->fadd_sum);
	msg.u.check.cas = htole64(conn->cas_value);
	/* exchange_finish() repeats the last question itself. Another one for each QP would take its
	 * place in the send queue. */
	if (!last)
		conn->ring.asked_ns = now_ns;
	exchange_post(host, &msg);
}

/* Half a ring at a time: meanwhile the other half is written. */
void
exchange_check(struct host *host, struct conn *conn)
{
	uint64_t writes = writes_checkable(host, conn);

	if (conn->ring.asked_ns == 0 &&
		writes - conn->ring.checked >= host->exchange.peer.slots / 2) {
		conn->ring.asked = writes; /* also when the question is repeated */
		check_ask(host, conn, false, clock_ns());
	}
}

/* A QP whose SENDs have used all R_Keys that it knows. Returns whether it waits for more. */
static bool
mws_ask(struct host *host, struct conn *conn, uint64_t now_ns)
{
	struct mws_known *known = &host->mws.known[conn - host->conns];
	struct exchange_msg msg;

	if (mws_room(host, conn) != 0 || conn->posted == conn->limit)
		return false;
	if (known->asked_ns == 0) {
		/* The receiver tells them without being asked, unless that is lost. */
		known->asked_ns = now_ns;
		return true;
	}
	if (elapsed_ns(now_ns, known->asked_ns) < EXCHANGE_AGAIN_NS)
		return true;
	known->asked_ns = now_ns;
	msg = exchange_question(host, EXCHANGE_MWS);
	msg.u.mws.qp = htole64((uint64_t)(conn - host->conns));
	exchange_post(host, &msg);
	return true;
}

void
exchange_tick(struct host *host, uint64_t now_ns)
{
	struct exchange *ex = &host->exchange;
	bool writes = false, windows = false; /* what is waited for */

	if (now_ns >= ex->alive_ns) {
		struct exchange_msg msg = exchange_question(host, EXCHANGE_ALIVE);

		exchange_post(host, &msg);
		ex->alive_ns = now_ns + ALIVE_NS;
	}
	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];

		if (conn->ring.asked_ns != 0 &&
			elapsed_ns(now_ns, conn->ring.asked_ns) >= EXCHANGE_AGAIN_NS)
			check_ask(host, conn, false, now_ns);
		writes |= conn->ring.asked_ns != 0;
		windows |= host->exchange.mws && mws_ask(host, conn, now_ns);
	}
	if (!writes && !windows)
		ex->heard_ns = now_ns;
	else if (host->conf->wait_s != 0 &&
		 elapsed_ns(now_ns, ex->heard_ns) >= host->conf->wait_s * NS_PER_SECOND)
		host_fail(host, "%s has %s for %" PRIu64 " s (--wait)", host_peer(host),
			!windows  ? "checked no WRITE"
			: !writes ? "bound no memory window"
				  : "checked no WRITE and bound no memory window",
			host->conf->wait_s);
}

bool
exchange_finish(struct host *host, uint64_t now_ns)
{
	struct exchange *ex = &host->exchange;
	bool finished = true;

	if (ex->ended)
		return true;
	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];

		finished &= conn->ring.finished;
		if (!conn->ring.finished && now_ns >= ex->end_ns)
			check_ask(host, conn, true, now_ns);
	}
	if (finished && now_ns >= ex->end_ns) {
		struct exchange_msg msg = exchange_question(host, EXCHANGE_END);

		exchange_post(host, &msg);
	}
	if (now_ns >= ex->end_ns)
		ex->end_ns = now_ns + EXCHANGE_AGAIN_NS;
	return ex->ended;
}

/* ---- Answers ---- */

static void
hello_answered(struct host *host, const struct exchange_msg *msg)
{
	struct exchange *ex = &host->exchange;
	char own[OPTIONS_TEXT];

	if (host->state != HOST_WAITING)
		return;
	if (exchange_differs(host, msg, own)) {
		host_fail(host,
			"%s runs with '%.*s', and this end with '%s': both ends need the same",
			host_peer(host), EXCHANGE_TEXT - 1, msg->u.hello.text, own);
		return;
	}
	ex->peer = (struct target_map){.addr = le64toh(msg->u.hello.addr),
		.read_len = le64toh(msg->u.hello.read_len),
		.stride = le64toh(msg->u.hello.stride),
		.slots = le32toh(msg->u.hello.slots),
		.rkey = le32toh(msg->u.hello.rkey)};
	if (ex->peer.slots == 0 || ex->peer.stride < host->conf->size_max ||
		ex->peer.read_len < host->conf->size_max) {
		host_fail(host, "%s has no room for --size %" PRIu64, host_peer(host),
			host->conf->size_max);
		return;
	}
	ex->peer_srqn = le32toh(msg->u.hello.srqn);
	__atomic_store_n(&ex->peers_there, le32toh(msg->u.hello.peers), __ATOMIC_RELAXED);
	ex->agreed = true;
	host_set_running(host);
}

static void
check_answered(struct host *host, const struct exchange_msg *msg)
{
	uint64_t i = le64toh(msg->u.check.qp), writes = le64toh(msg->u.check.writes);
	struct conn *conn = i < host->n_conns ? &host->conns[i] : NULL;

	if (conn == NULL || writes > conn->ring.acked || writes < conn->ring.checked)
		return;
	/* A question that was repeated, or that the network has duplicated, is answered more than once. A second
	 * answer does not end the wait for the answer to the next question, which would not be repeated then. */
	if (msg->last == 0 && writes != conn->ring.asked)
		return;
	if (msg->wrong != 0) {
		host_fail(host, "%s has received wrong data on QP 0x%x", host_peer(host),
			conn->qpn);
		return;
	}
	conn->ring.checked = writes;
	conn->ring.asked_ns = 0;
	host->exchange.heard_ns = clock_ns();
	if (msg->last != 0 && le64toh(msg->u.check.messages) == conn->acked)
		conn->ring.finished = true;
}

static void
mws_answered(struct host *host, const struct exchange_msg *msg)
{
	uint64_t i = le64toh(msg->u.mws.qp);
	struct mws_told told = {
		.from = le64toh(msg->u.mws.told.from), .n = le32toh(msg->u.mws.told.n)};

	if (i >= host->n_conns || told.n > MWS_OF_QP)
		return;
	for (uint32_t r = 0; r < told.n; r++)
		told.rkeys[r] = le32toh(msg->u.mws.told.rkeys[r]);
	if (mws_learn(host, &host->conns[i], &told))
		host->exchange.heard_ns = clock_ns();
}

void
exchange_answered(struct host *host, const struct exchange_msg *msg)
{
	if (le64toh(msg->session) != host->exchange.session ||
		le64toh(msg->run) != host->exchange.run)
		return;
	if (msg->kind == EXCHANGE_HELLO)
		hello_answered(host, msg);
	else if (msg->kind == EXCHANGE_CHECK)
		check_answered(host, msg);
	else if (msg->kind == EXCHANGE_MWS && host->exchange.mws)
		mws_answered(host, msg);
	else if (msg->kind == EXCHANGE_END)
		host->exchange.ended = true;
}
