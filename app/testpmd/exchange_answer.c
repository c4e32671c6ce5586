/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's answers (exchange.h). A question may come twice, and gets the same answer. */
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "testpmd_rx.h"

static void
answer(struct host *host, const struct exchange_msg *question)
{
	struct exchange_msg msg = *question;

	msg.answer = 1;
	exchange_post(host, &msg);
}

static void
hello_answer(struct host *host, const struct exchange_msg *question)
{
	const struct target_map *map = &host->target.map;
	struct exchange_msg msg = *question;

	exchange_options_put(host, &msg);
	msg.u.hello.addr = htole64(map->addr);
	msg.u.hello.read_len = htole64(map->read_len);
	msg.u.hello.stride = htole64(map->stride);
	msg.u.hello.slots = htole32(map->slots);
	msg.u.hello.rkey = htole32(map->rkey);
	msg.u.hello.srqn = htole32(host->verbs.srqn);
	answer(host, &msg);
}

void
exchange_tell_mws(struct host *host, const struct conn *conn)
{
	struct exchange_msg msg = exchange_question(host, EXCHANGE_MWS);
	struct mws_told told = {0};

	mws_tell(host, conn, &told);
	msg.session = htole64(host->exchange.asked.session);
	msg.run = htole64(host->exchange.asked.run);
	msg.u.mws.qp = htole64((uint64_t)(conn - host->conns));
	msg.u.mws.told.from = htole64(told.from);
	msg.u.mws.told.n = htole32(told.n);
	for (uint32_t i = 0; i < told.n; i++)
		msg.u.mws.told.rkeys[i] = htole32(told.rkeys[i]);
	answer(host, &msg);
}

/* Connects the QPs for a sender whose QPs begin anew. Returns 0, or -1 after host_fail(). */
static int
session_begin(struct host *host, uint64_t session)
{
	bool again = host->exchange.asked.agreed;
	int rc;

	if (again)
		host_log(host, "%s was restarted: it begins anew; reconnected",
			host_peer(host));
	host->tally.restarts += again;
	/* With RDMA-CM the sender has connected the QPs itself. */
	rc = host->by_cm ? 0 : host_connect(host, NULL);
	host->exchange.asked.session = session;
	return rc;
}

/* --mode both: the QPs are connected once, by the end that was asked first. Returns whether a HELLO is one
 * of the connection that this end has, or begins it. */
static bool
both_accept(struct host *host, const struct exchange_msg *msg)
{
	struct exchange *ex = &host->exchange;
	uint64_t session = le64toh(msg->session);

	if (!host->follows && le64toh(msg->u.hello.of_session) != ex->session)
		return false; /* it will be asked again, too */
	if (session == ex->asked.session)
		return true;
	if (ex->agreed && (host->follows || ex->asked.session != 0)) {
		host_fail(host, "%s was restarted (`start` reconnects)", host_peer(host));
		return false;
	}
	if (host->follows)
		return session_begin(host, session) == 0;
	ex->asked.session = session;
	return true;
}

static bool
hello_accept(struct host *host, const struct exchange_msg *msg)
{
	uint64_t session = le64toh(msg->session);

	if (host->ops == &both_ops)
		return both_accept(host, msg);
	return session == host->exchange.asked.session ||
	       session_begin(host, session) == 0;
}

/* With RDMA-CM the main loop fetches the event that makes a QP ready to send, and HELLO may come before. */
static bool
conns_are_ready(const struct host *host)
{
	bool ready = true;

	for (unsigned i = 0; i < host->n_conns && host->by_cm; i++)
		ready &= host->conns[i].established;
	return ready;
}

static void
hello_asked(struct host *host, const struct exchange_msg *msg)
{
	struct exchange_asked *asked = &host->exchange.asked;
	char own[OPTIONS_TEXT];

	if (host->state == HOST_LINGERING) {
		if (le64toh(msg->run) != asked->run)
			host_set_done(host); /* the sender has the last answer */
		return;
	}
	if (exchange_differs(host, msg, own)) {
		hello_answer(host, msg);
		host_set_error(host,
			"%s runs with '%.*s', and this end with '%s': both ends need the same",
			host_peer(host), EXCHANGE_TEXT - 1, msg->u.hello.text, own);
		if (asked->refused_ns == 0)
			asked->refused_ns = clock_ns();
		return;
	}
	if (!conns_are_ready(host) || !hello_accept(host, msg))
		return; /* the sender asks again */
	if (mix_has(&host->conf->mix, OP_READ))
		target_fill(host);
	asked->agreed = true;
	asked->receives = (mix_any(&host->conf->mix) & OP_RECEIVED) != 0;
	asked->ended = asked->ended && le64toh(msg->run) == asked->run;
	asked->run = le64toh(msg->run);
	if (host->exchange.mws)
		mws_bind(host);
	if (host->passive && host->state == HOST_WAITING)
		host_set_running(host);
	hello_answer(host, msg);
}

/* Whether the QP's words are as they are after this number of messages. */
static bool
words_are_right(
	struct host *host, const struct conn *conn, const struct exchange_msg *msg)
{
	unsigned i = (unsigned)(conn - host->conns);
	uint64_t words[2];

	memcpy(words, host->target.mem + target_word(&host->target.map, i, 0),
		sizeof(words));
	if (host->conf->no_verify ||
		(words[WORD_FADD] == le64toh(msg->u.check.fadd) &&
			words[WORD_CAS] == le64toh(msg->u.check.cas)))
		return true;
	host_fail(host,
		"after message %" PRIu64
		" of QP 0x%x the sum of its fetch-and-adds is 0x%" PRIx64
		", expected 0x%" PRIx64 ", and its compare-and-swaps have left 0x%" PRIx64
		", expected 0x%" PRIx64,
		le64toh(msg->u.check.messages) - 1, conn->qpn, words[WORD_FADD],
		le64toh(msg->u.check.fadd), words[WORD_CAS], le64toh(msg->u.check.cas));
	return false;
}

/* How many of the QP's messages have not completed a receive. */
static uint64_t
receives_missing(
	struct host *host, const struct conn *conn, const struct exchange_msg *msg)
{
	uint64_t messages = le64toh(msg->u.check.messages);

	rx_drain(host);
	return mix_count(&host->conf->mix, messages, OP_RECEIVED) - conn->received;
}

/* The last message of the run has been sent. */
static bool
last_is_right(struct host *host, struct conn *conn, const struct exchange_msg *msg)
{
	uint64_t missing = receives_missing(host, conn, msg);

	if (type_is_lossy(host->conf->type)) {
		rx_lost(host, conn, le64toh(msg->u.check.messages), missing);
		return true;
	}
	if (missing == 0)
		return words_are_right(host, conn, msg);
	host_fail(host,
		"QP 0x%x has not received %" PRIu64 " of %" PRIu64
		" messages, and its sender has ended",
		conn->qpn, missing, le64toh(msg->u.check.messages));
	return false;
}

/* On UC and UD: the datagram that asks may have overtaken messages. They are counted as lost when the
 * sender asks for the second time. */
static bool
is_early(struct host *host, struct conn *conn, const struct exchange_msg *msg,
	uint64_t writes)
{
	bool early = (msg->last != 0 && receives_missing(host, conn, msg) != 0) ||
		     (host->exchange.ring && !target_is_complete(host, conn, writes));

	conn->incomplete = early && !conn->incomplete;
	return conn->incomplete;
}

static void
check_asked(struct host *host, const struct exchange_msg *msg)
{
	uint64_t i = le64toh(msg->u.check.qp), writes = le64toh(msg->u.check.writes);
	struct exchange_msg reply = *msg;
	struct conn *conn;

	if (i >= host->n_conns)
		return;
	conn = &host->conns[i];
	/* An old question, which waited in a queue, is not answered. */
	if (host->exchange.ring &&
		(writes < conn->checked.writes ||
			writes > conn->checked.writes + host->target.map.slots))
		return;
	if (type_is_lossy(host->conf->type) && is_early(host, conn, msg, writes))
		return;
	if (host->exchange.ring)
		reply.wrong = !target_verify(host, conn, writes);
	if (msg->last != 0)
		reply.wrong |= !last_is_right(host, conn, msg);
	answer(host, &reply);
}

void
exchange_asked(struct host *host, const struct exchange_msg *msg)
{
	struct exchange_asked *asked = &host->exchange.asked;

	asked->heard++;
	asked->heard_ns = clock_ns();
	if (msg->kind == EXCHANGE_HELLO) {
		hello_asked(host, msg);
		return;
	}
	if (!asked->agreed || le64toh(msg->session) != asked->session ||
		le64toh(msg->run) != asked->run)
		return;
	if (msg->kind == EXCHANGE_CHECK) {
		check_asked(host, msg);
	} else if (msg->kind == EXCHANGE_MWS && host->exchange.mws) {
		if (le64toh(msg->u.mws.qp) < host->n_conns)
			exchange_tell_mws(host, &host->conns[le64toh(msg->u.mws.qp)]);
	} else if (msg->kind == EXCHANGE_END) {
		asked->ended = true;
		answer(host, msg);
	}
}

void
exchange_watch(struct host *host, uint64_t now_ns)
{
	uint64_t refused_ns = host->exchange.asked.refused_ns;

	(void)exchange_poll(host);
	if (refused_ns != 0 &&
		elapsed_ns(now_ns, refused_ns) >= EXCHANGE_REPEATS * EXCHANGE_AGAIN_NS)
		host_fail(host, "%s has other options", host_peer(host));
}
