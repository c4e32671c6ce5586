/* SPDX-License-Identifier: BSD-3-Clause */
/* The questions of --mode both, and those of a sender of SENDs with invalidate. This file stands for the
 * datagrams, and for what a host does with them. */
#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "testpmd_reason.h"
#include "testpmd_rx.h"

static struct conf conf = {.wait_s = 30, .qpn_base = 0x100, .qps = 1};
static struct port_conf pc = {.peers = {{.addr = "192.0.2.2"}}};
static struct conn conn;
static struct host host;
static struct exchange_msg last; /* that was posted last */
static unsigned posts, connects, binds;
static bool differs;
const struct mode_ops both_ops = {.sends = true, .receives = true};

uint64_t
clock_ns(void)
{
	return 77;
}

struct exchange_msg
exchange_question(const struct host *h, enum exchange_kind kind)
{
	return (struct exchange_msg){.kind = (uint8_t)kind,
		.session = htole64(h->exchange.session),
		.run = htole64(h->exchange.run)};
}

void
exchange_post(struct host *h, const struct exchange_msg *msg)
{
	(void)h;
	last = *msg;
	posts++;
}

uint64_t
exchange_options(const struct host *h, char text[OPTIONS_TEXT])
{
	(void)h;
	text[0] = '\0';
	return 0;
}

void
exchange_options_put(const struct host *h, struct exchange_msg *hello)
{
	(void)h;
	hello->u.hello.peers = htole32(1);
}

bool
exchange_differs(
	const struct host *h, const struct exchange_msg *hello, char own[OPTIONS_TEXT])
{
	(void)h;
	(void)hello;
	own[0] = '\0';
	return differs;
}

unsigned
exchange_poll(struct host *h)
{
	(void)h;
	return 0;
}

int
host_connect(struct host *h, bool (*which)(const struct conn *conn))
{
	(void)which;
	connects++;
	h->exchange.session = 1000 + connects; /* exchange_restart() */
	h->exchange.asked.session = 0;
	return 0;
}

void
host_set_running(struct host *h)
{
	h->state = HOST_RUNNING;
}

void
host_set_done(struct host *h)
{
	h->state = HOST_DONE;
}

void
host_log(const struct host *h, const char *format, ...)
{
	(void)h;
	(void)format;
}

void
target_fill(struct host *h)
{
	(void)h;
}

bool
target_verify(struct host *h, struct conn *c, uint64_t end)
{
	(void)h;
	c->checked.writes = end;
	return true;
}

bool
target_is_complete(struct host *h, const struct conn *c, uint64_t end)
{
	(void)h;
	(void)c;
	(void)end;
	return true;
}

void
rx_drain(struct host *h)
{
	(void)h;
}

void
rx_lost(struct host *h, struct conn *c, uint64_t end, uint64_t missing)
{
	(void)h;
	(void)c;
	(void)end;
	(void)missing;
}

void
mws_bind(struct host *h)
{
	(void)h;
	binds++;
}

void
mws_tell(const struct host *h, const struct conn *c, struct mws_told *told)
{
	(void)h;
	(void)c;
	*told = (struct mws_told){.from = 5, .n = 2, .rkeys = {0x10, 0x20}};
}

bool
mws_learn(struct host *h, const struct conn *c, const struct mws_told *told)
{
	(void)c;
	h->mws.known->bound = told->from + told->n;
	h->mws.known->rkeys[0] = told->rkeys[0];
	return true;
}

uint64_t
mws_room(const struct host *h, const struct conn *c)
{
	(void)c;
	return h->mws.known->bound - h->mws.known->used;
}

/* An end of --mode both. follows: that with the higher address. */
static void
both_begin(bool follows)
{
	posts = connects = binds = 0;
	differs = false;
	assert_true(parse_mix("write", &conf.mix));
	conn = (struct conn){.qpn = 0x100, .limit = UINT64_MAX};
	host = (struct host){.conf = &conf,
		.pc = &pc,
		.head = &host,
		.n_hosts = 1,
		.ops = &both_ops,
		.conns = &conn,
		.n_conns = 1,
		.follows = follows,
		.state = HOST_WAITING,
		.exchange = {.on = true, .session = 500, .run = 1}};
}

/* A HELLO of the peer arrives. */
static void
hello(uint64_t session, uint64_t of_session)
{
	struct exchange_msg msg = {.kind = EXCHANGE_HELLO,
		.session = htole64(session),
		.run = htole64(3),
		.u.hello.of_session = htole64(of_session)};

	exchange_asked(&host, &msg);
}

/* The peer answers the HELLO that was posted last. */
static void
answered(void)
{
	struct exchange_msg msg = last;

	msg.answer = 1;
	msg.u.hello.slots = htole32(8);
	msg.u.hello.stride = msg.u.hello.read_len = htole64(1 << 20);
	exchange_answered(&host, &msg);
}

TEST(the_end_that_follows_connects_once_and_asks_then)
{
	both_begin(true);
	hello(900, 0);
	assert_int_equal(connects, 1);
	assert_int_equal(posts, 1);
	assert_int_equal(last.answer, 1);
	assert_int_equal(host.state, HOST_WAITING); /* until it has asked, too */
	hello(900, 0);                              /* its answer was lost */
	assert_int_equal(connects, 1);
	exchange_hello(&host, 1);
	assert_int_equal(le64toh(last.u.hello.of_session), 900);
	assert_int_equal(le64toh(last.session), 1001);
	answered();
	assert_int_equal(host.state, HOST_RUNNING);
	assert_true(host.exchange.asked.agreed && host.exchange.agreed);
}

TEST(the_end_that_begins_keeps_its_connection)
{
	both_begin(false);
	exchange_hello(&host, 1);
	hello(700, 499); /* of an earlier session of this end */
	assert_false(host.exchange.asked.agreed);
	hello(700, 500);
	assert_true(host.exchange.asked.agreed);
	assert_int_equal(connects, 0);
	assert_int_equal(host.exchange.asked.session, 700);
	exchange_hello(&host, NS_PER_SECOND);
	answered();
	assert_int_equal(host.state, HOST_RUNNING);
}

TEST(a_peer_that_was_restarted_fails_the_run)
{
	both_begin(true);
	hello(900, 0);
	hello(901, 0); /* nothing is sent yet */
	assert_int_equal(connects, 2);
	exchange_hello(&host, 1);
	answered();
	hello(902, 0);
	assert_int_equal(connects, 2);
	assert_int_equal(host.state, HOST_FAILED);
	assert_non_null(strstr(host.reason, "192.0.2.2 was restarted"));
	both_begin(false);
	exchange_hello(&host, 1);
	answered();
	hello(700, 500);
	assert_int_equal(host.state, HOST_RUNNING);
	hello(701, 500);
	assert_int_equal(host.state, HOST_FAILED);
}

/* With --op flush the receiver checks what a complete FLUSH covers, and the rest when the ring is full. */
TEST(writes_in_front_of_a_flush_are_checked)
{
	both_begin(false);
	host.exchange.peer.slots = 8;
	conn.ring.acked = 6;
	conn.ring.flushed = 3;
	exchange_check(&host, &conn);
	assert_int_equal(posts, 0); /* less than half a ring */
	conn.ring.flushed = 4;
	exchange_check(&host, &conn);
	assert_int_equal(posts, 1);
	assert_int_equal(le64toh(last.u.check.writes), 4);
	conn.ring.asked_ns = 0;
	conn.ring.acked = 8;
	conn.ring.flushed = 0;
	exchange_check(&host, &conn);
	assert_int_equal(posts, 2);
	assert_int_equal(le64toh(last.u.check.writes), 8);
	conn.ring.asked_ns = 0;
	conn.ring.checked = 8;
	conn.ring.acked = 9;
	conn.ring.flushed = 4;
	exchange_check(&host, &conn);
	assert_int_equal(posts, 2); /* the receiver would not answer */
}

/* Its answer may be under way: that is about these WRITEs, too. */
TEST(a_repeated_question_is_about_the_same_writes)
{
	both_begin(false);
	host.exchange.peer.slots = 8;
	conn.ring.acked = conn.ring.flushed = 4;
	exchange_check(&host, &conn);
	assert_int_equal(le64toh(last.u.check.writes), 4);
	conn.ring.acked = conn.ring.flushed = 8;
	conn.ring.asked_ns = 1;
	exchange_tick(&host, 1 + EXCHANGE_AGAIN_NS);
	assert_int_equal(last.kind, EXCHANGE_CHECK);
	assert_int_equal(le64toh(last.u.check.writes), 4);
	conn.ring.asked_ns = 0;
	exchange_check(&host, &conn);
	assert_int_equal(le64toh(last.u.check.writes), 8);
}

static void
check_answer(uint64_t writes)
{
	struct exchange_msg msg = exchange_question(&host, EXCHANGE_CHECK);

	msg.u.check.writes = htole64(writes);
	exchange_answered(&host, &msg);
}

/* The question that it leaves open is lost: with a full ring nothing else would ask again. */
TEST(a_second_answer_leaves_the_next_question_open)
{
	both_begin(false);
	host.exchange.peer.slots = 8;
	conn.ring.acked = conn.ring.flushed = 4;
	exchange_check(&host, &conn);
	check_answer(4);
	assert_int_equal(conn.ring.checked, 4);
	assert_int_equal(conn.ring.asked_ns, 0);
	conn.ring.acked = conn.ring.flushed = 12;
	exchange_check(&host, &conn);
	check_answer(4);
	assert_int_not_equal(conn.ring.asked_ns, 0);
	posts = 0;
	exchange_tick(&host, conn.ring.asked_ns + EXCHANGE_AGAIN_NS);
	assert_int_not_equal(posts, 0);
	assert_int_equal(last.kind, EXCHANGE_CHECK);
	assert_int_equal(le64toh(last.u.check.writes), 12);
	check_answer(12);
	assert_int_equal(conn.ring.checked, 12);
	assert_int_equal(conn.ring.asked_ns, 0);
}

/* Several runs over the same connection. */
TEST(a_session_that_is_known_is_not_connected_again)
{
	both_begin(true);
	host.exchange.asked.session = 900;
	hello(900, 0);
	assert_int_equal(connects, 0);
	assert_true(host.exchange.asked.agreed);
}

/* The QPN of another core depends on how many peers the other end has, which core 0 learns. */
TEST(a_core_asks_when_core_0_was_answered)
{
	static struct host zero;

	both_begin(false);
	conf.nb_cores = 2;
	host.core = 1;
	host.head = &zero;
	zero = host;
	zero.core = 0;
	exchange_hello(&host, 1);
	assert_int_equal(posts, 0);
	zero.exchange.peers_there = 3;
	pc.peers[0].place = 2;
	exchange_hello(&host, 1);
	assert_int_equal(posts, 1);
	assert_int_equal(host.exchange.peer_qpn, 0x100 - 1 - 3 - 2);
	pc.peers[0].place = 0;
	conf.nb_cores = 0;
}

static struct mws_known known;

static void
invalidates_begin(void)
{
	both_begin(false);
	assert_true(parse_mix("send-inv", &conf.mix));
	known = (struct mws_known){0};
	host.mws.known = &known;
	host.exchange.mws = true;
	host.exchange.alive_ns = UINT64_MAX;
	host.exchange.asked =
		(struct exchange_asked){.session = 700, .run = 3, .agreed = true};
}

TEST(a_sender_without_a_key_asks_again_and_again)
{
	invalidates_begin();
	exchange_tick(&host, 1);
	assert_int_equal(posts, 0); /* the receiver tells them */
	exchange_tick(&host, 1 + EXCHANGE_AGAIN_NS);
	assert_int_equal(posts, 1);
	assert_int_equal(last.kind, EXCHANGE_MWS);
	exchange_tick(&host, 2 + EXCHANGE_AGAIN_NS);
	assert_int_equal(posts, 1);
	exchange_tick(&host, 1 + 2 * EXCHANGE_AGAIN_NS);
	assert_int_equal(posts, 2);
	exchange_tick(&host, 30 * NS_PER_SECOND);
	assert_int_equal(host.state, HOST_FAILED);
	assert_non_null(strstr(host.reason, "has bound no memory window for 30 s"));
}

TEST(a_sender_that_has_posted_all_or_has_keys_does_not_ask)
{
	invalidates_begin();
	known.bound = 1;
	exchange_tick(&host, 1);
	exchange_tick(&host, 1 + EXCHANGE_AGAIN_NS);
	known.used = 1;
	conn.posted = conn.limit;
	exchange_tick(&host, 1);
	exchange_tick(&host, 1 + 2 * EXCHANGE_AGAIN_NS);
	assert_int_equal(posts, 0);
}

TEST(a_receiver_tells_its_keys_in_the_run_of_the_sender)
{
	invalidates_begin();
	exchange_tell_mws(&host, &conn);
	assert_int_equal(last.kind, EXCHANGE_MWS);
	assert_int_equal(last.answer, 1);
	assert_int_equal(le64toh(last.session), 700);
	assert_int_equal(le64toh(last.run), 3);
	assert_int_equal(le32toh(last.u.mws.told.n), 2);
	last.session = htole64(host.exchange.session);
	last.run = htole64(host.exchange.run);
	exchange_answered(&host, &last);
	assert_int_equal(known.bound, 7);
	assert_int_equal(known.rkeys[0], 0x10);
	known.bound = 0;
	last.u.mws.told.n = htole32(MWS_OF_QP + 1);
	exchange_answered(&host, &last);
	last.u.mws.told.n = htole32(1);
	last.u.mws.qp = htole64(1);
	exchange_answered(&host, &last);
	assert_int_equal(known.bound, 0);
}

TEST(a_receiver_binds_when_it_has_agreed)
{
	invalidates_begin();
	host.exchange.asked.agreed = false;
	differs = true;
	hello(700, 500);
	assert_int_equal(binds, 0);
	differs = false;
	hello(700, 500);
	assert_int_equal(binds, 1);
}

/* With RDMA-CM the receiver's QPs are in RTR until the main loop has fetched an event. */
TEST(a_receiver_answers_when_its_connections_are_established)
{
	invalidates_begin();
	host.by_cm = true;
	conn.connected = true;
	hello(700, 500);
	assert_int_equal(binds, 0);
	assert_int_equal(posts, 0);
	conn.established = true;
	hello(700, 500);
	assert_int_equal(binds, 1);
	assert_int_equal(posts, 1);
	assert_int_equal(last.answer, 1);
}

/* Of a mix of WRITEs and SENDs with invalidate. */
TEST(the_failure_names_what_was_waited_for)
{
	invalidates_begin();
	host.exchange.ring = true;
	exchange_tick(&host, 1);
	exchange_tick(&host, 30 * NS_PER_SECOND);
	assert_non_null(strstr(host.reason, "has bound no memory window for 30 s"));
	invalidates_begin();
	host.exchange.ring = true;
	known.bound = 1;
	conn.ring.asked_ns = 1;
	exchange_tick(&host, 30 * NS_PER_SECOND);
	assert_non_null(strstr(host.reason, "has checked no WRITE for 30 s"));
	invalidates_begin();
	host.exchange.ring = true;
	conn.ring.asked_ns = 1;
	exchange_tick(&host, 30 * NS_PER_SECOND);
	assert_non_null(strstr(
		host.reason, "has checked no WRITE and bound no memory window for 30 s"));
}
