/* SPDX-License-Identifier: BSD-3-Clause */
/* The flight recorder: what a QP notes, in virtual time, and how it reads. */
#include <string.h>

#include "base/splitmix64.h"
#include "qp/flight.h"
#include "qp_link.h"

static struct qp_link p;
static struct flight_log flight_log;

static char lines[FLIGHT_EVENTS + 2][256];
static unsigned line_count;

static void
line_keep(const char *line, void *arg)
{
	assert_null(arg);
	assert_true(line_count < FLIGHT_EVENTS + 2 && strlen(line) < sizeof(lines[0]));
	strcpy(lines[line_count++], line);
}

static void
print(const struct qp *qp)
{
	static struct flight_copy copy;

	assert_true(flight_copy_get(qp, &copy));
	line_count = 0;
	flight_print(&copy, line_keep, NULL);
}

/* The line is there, after the one that was looked for last. */
static unsigned found;

static void
expect_line(const char *line)
{
	while (found < line_count && strcmp(lines[found], line) != 0)
		found++;
	if (found == line_count)
		fail_msg("no line \"%s\"", line);
	found++;
}

static void
record(struct qp_link_conf *conf)
{
	conf->unconnected = true;
	qp_link_init(&p, conf);
	found = 0;
	for (struct host *h = &p.a; h != NULL; h = h == &p.a ? &p.b : NULL) {
		h->shared.flight_on = true;
		h->shared.flight = &flight_log;
		h->shared.now = p.now;
		assert_int_equal(flight_create(&h->qp), 0);
	}
	qp_link_connect(&p);
}

static void
log_init(void)
{
	memset(&flight_log, 0, sizeof(flight_log));
	sem_init(&flight_log.waiting, 0, 0);
}

/* Frees the copies. Returns how many waited. */
static unsigned
copies_take(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FLIGHT_COPIES; i++) {
		n += flight_log.slots[i].state == FLIGHT_WAITS;
		flight_log.slots[i].state = FLIGHT_FREE;
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(sem_trywait(&flight_log.waiting), 0);
	assert_int_not_equal(sem_trywait(&flight_log.waiting), 0);
	return n;
}

/* Without a receive: RNR NAKs until none may come any more. */
TEST(rnr_until_error)
{
	struct qp_link_conf conf = qp_link_defaults();

	log_init();
	conf.rnr_retry = 2;
	conf.min_rnr_timer = 12;
	record(&conf);
	p.now += 5 * NS_PER_MS;
	host_send(&p.a, 1, 0, 100, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 3; i++) {
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
		p.now += 12 * NS_PER_US;
		wire_deliver_all(&p.b);
		qp_link_advance(&p, 640 * NS_PER_US);
	}
	expect_sent(&p.a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	print(&p.a.qp);
	expect_line("+0.00 us: RTR to RTS");
	expect_line("+5.00 ms: sent PSN 4096 to 4096 (packets: 1)");
	expect_line("+12 us: received RC_ACKNOWLEDGE, PSN 4096 (packets: 1)");
	expect_line("+0.00 us: peer answered RNR for PSN 4096, wait 640 us, try 1 of 2");
	expect_line("+640 us: sent PSN 4096 to 4096 (packets: 1)");
	expect_line("+0.00 us: peer answered RNR for PSN 4096, wait 640 us, try 2 of 2");
	expect_line("+0.00 us: oldest request failed, oldest PSN without an answer 4096: "
		    "RNR_RETRIES: RNR NAKs, RNR retries spent");
	expect_line("+0.00 us: RTS to ERR");
	assert_int_equal(found, line_count);
	assert_string_equal(
		lines[0], "QP 0x000011 to 0x000022: the last 13 of 13 events");
	print(&p.b.qp);
	found = 0;
	expect_line(
		"+0.00 us: no receive is posted for PSN 4096: an RNR NAK is due, wait 640 us");
	/* b has no fault. */
	assert_int_equal(flight_log.slots[0].copy.qpn, QPN_A);
	assert_int_equal(copies_take(), 1);
	qp_link_fini_discard(&p);
}

/* Losses: a NAK, a probe, ACK timeouts until none may come any more. */
TEST(losses)
{
	struct qp_link_conf conf = qp_link_defaults();

	log_init();
	conf.retry_cnt = 1;
	record(&conf);
	for (unsigned i = 0; i < 4; i++)
		host_recv(&p.b, i, 0, 100);
	for (unsigned i = 0; i < 3; i++)
		host_send(&p.a, i, 0, 100, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_drop(&p.a, 1);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 20000 && p.a.qp.state == IBV_QPS_RTS; i++) {
		host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
		qp_link_advance(&p, 100 * NS_PER_US);
	}
	print(&p.a.qp);
	expect_line("+0.00 us: peer answered that PSN 4097 is missing");
	expect_line("+0.00 us: goes back to PSN 4097, try 1 of 1");
	expect_line("+0.00 us: sent PSN 4097 to 4098 (packets: 2)");
	expect_line("+0.00 us: sent a tail-loss probe of PSN 4097");
	expect_line("+0.00 us: oldest request failed, oldest PSN without an answer 4097: "
		    "ACK_TIMEOUT: no answer, retries spent");
	expect_line("+0.00 us: RTS to ERR");
	assert_int_equal(copies_take(), 1);
	print(&p.b.qp);
	found = 0;
	expect_line("+0.00 us: received RC_SEND_ONLY, PSN 4098 (packets: 1)");
	expect_line("+0.00 us: PSN 4097 is missing: a sequence NAK is due");
	qp_link_fini_discard(&p);
}

static bool
receiver_away(void *arg, const struct qp *qp, struct answer_wait *wait, uint64_t now)
{
	return true;
}

/* A timer that expires while the receiver has not taken the packet. */
TEST(packets_wait)
{
	static struct answer_wait wait;
	struct qp_link_conf conf = qp_link_defaults();

	log_init();
	record(&conf);
	p.a.shared.answer_waits = receiver_away;
	p.a.shared.answer_wait = &wait;
	p.a.shared.answer_wait_ns = NS_PER_SEC;
	host_send(&p.a, 1, 0, 100, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	p.a.shared.now = p.now + 250 * NS_PER_US;
	qp_link_advance(&p, 250 * NS_PER_US);
	print(&p.a.qp);
	expect_line("+250 us: no answer for PSN 4096: it may still be on its way, waits");
	assert_int_equal(found, line_count);
	host_recv(&p.b, 1, 0, 100);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_received(&p.b, 1, 100);
	assert_int_equal(copies_take(), 0);
	qp_link_fini(&p);
}

/* The packets of a message are one event; the next message is another one. */
TEST(messages_are_one_event)
{
	struct qp_link_conf conf = qp_link_defaults();

	log_init();
	conf.mem_bytes = 1 << 16;
	record(&conf);
	for (unsigned i = 0; i < 2; i++) {
		host_recv(&p.b, i, 0, 5000);
		host_send(&p.a, i, 0, 5000, IBV_SEND_SIGNALED);
	}
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	print(&p.b.qp);
	expect_line("+0.00 us: received RC_SEND_FIRST, PSN 4096 (packets: 5)");
	expect_line("+0.00 us: received RC_SEND_FIRST, PSN 4101 (packets: 5)");
	qp_link_fini_discard(&p);
}

/* A fault by the application's wish is none: a QP that it moves to ERR leaves no copy. */
TEST(only_faults_leave_copies)
{
	struct qp_link_conf conf = qp_link_defaults();

	log_init();
	record(&conf);
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	assert_int_equal(copies_take(), 0);
	print(&p.a.qp);
	expect_line("+0.00 us: RTS to ERR");
	for (unsigned i = 0; i < FLIGHT_COPIES + 2; i++)
		flight_error(&p.b.qp);
	assert_int_equal(flight_log.lost, 2);
	assert_int_equal(copies_take(), FLIGHT_COPIES);
	qp_link_fini_discard(&p);
}

/* The oldest events go first. */
TEST(the_last_events_are_kept)
{
	struct qp_link_conf conf = qp_link_defaults();

	log_init();
	record(&conf);
	for (unsigned i = 0; i < FLIGHT_EVENTS + 10; i++) {
		p.a.shared.now = 1000 * NS_PER_US * i;
		flight_note(&p.a.qp, FLIGHT_DUPLICATE, i, 0);
	}
	print(&p.a.qp);
	assert_int_equal(line_count, FLIGHT_EVENTS + 1);
	assert_string_equal(
		lines[0], "QP 0x000011 to 0x000022: the last 256 of 269 events");
	assert_string_equal(lines[1], "+0.00 us: PSN 10 is a duplicate request");
	assert_string_equal(lines[256], "+1.00 ms: PSN 265 is a duplicate request");
	qp_link_fini_discard(&p);
}

/* Each kind of event has a text whose fields are all filled in. */
TEST(each_kind_has_a_text)
{
	struct qp_link_conf conf = qp_link_defaults();

	log_init();
	record(&conf);
	for (unsigned kind = 0; kind < FLIGHT_KINDS; kind++)
		flight_note(&p.a.qp, (enum flight_kind)kind, 1, 5);
	print(&p.a.qp);
	for (unsigned i = 1; i < line_count; i++) {
		assert_null(strchr(lines[i], '%'));
		assert_null(strstr(lines[i], "unknown"));
		assert_true(strlen(lines[i]) > 12);
	}
	/* Values of a damaged record do not lead outside the tables. */
	for (unsigned kind = 0; kind < FLIGHT_KINDS; kind++)
		flight_note(&p.a.qp, (enum flight_kind)kind, UINT32_MAX, UINT32_MAX);
	print(&p.a.qp);
	assert_int_equal(line_count, 3 + 2 * FLIGHT_KINDS + 1);
	qp_link_fini_discard(&p);
}

/* On request the last line says how long ago the last event was. */
TEST(a_request_ends_with_its_time)
{
	struct qp_link_conf conf = qp_link_defaults();
	static struct flight_copy copy;

	log_init();
	record(&conf);
	p.a.shared.now = 7 * NS_PER_SEC;
	flight_note(&p.a.qp, FLIGHT_DUPLICATE, 3, 0);
	assert_true(flight_copy_get(&p.a.qp, &copy));
	assert_int_equal(copy.asked, 0);
	copy.asked = 7 * NS_PER_SEC + 25 * NS_PER_MS;
	line_count = 0;
	flight_print(&copy, line_keep, NULL);
	assert_non_null(strstr(lines[line_count - 2], "PSN 3 is a duplicate"));
	assert_string_equal(lines[line_count - 1], "+25.00 ms: now");
	/* No event at all. */
	copy.flight.count = 0;
	line_count = 0;
	flight_print(&copy, line_keep, NULL);
	assert_int_equal(line_count, 2);
	assert_string_equal(lines[1], "+0.00 us: now");
	qp_link_fini_discard(&p);
}

/* Any bytes of another process make lines, as many as there can be. */
TEST(any_bytes_can_be_printed)
{
	static struct flight_copy copy;
	uint64_t rand = 1;

	for (unsigned round = 0; round < 200; round++) {
		uint8_t *bytes = (uint8_t *)&copy;

		for (size_t i = 0; i < sizeof(copy); i++)
			bytes[i] = (uint8_t)splitmix64(&rand);
		if (round % 4 == 0)
			copy.flight.count = UINT64_MAX;
		line_count = 0;
		flight_print(&copy, line_keep, NULL);
		assert_int_equal(line_count, FLIGHT_EVENTS + 2);
		for (unsigned i = 0; i < FLIGHT_EVENTS; i++) {
			const struct flight_event *e =
				&copy.flight
					 .events[(copy.flight.count + i) % FLIGHT_EVENTS];

			if ((e->when & 0xFF) >= FLIGHT_KINDS)
				assert_string_equal(
					strchr(lines[1 + i], ':'), ": unknown");
		}
	}
}

/* A QP without a record notes nothing and has nothing to print. */
TEST(a_qp_without_a_record)
{
	static struct flight_copy copy;

	log_init();
	qp_link_init_default(&p);
	p.a.shared.flight_on = true;
	p.a.shared.flight = &flight_log;
	flight_note(&p.a.qp, FLIGHT_DUPLICATE, 1, 0);
	flight_error(&p.a.qp);
	assert_false(flight_copy_get(&p.a.qp, &copy));
	assert_int_equal(copies_take(), 0);
	qp_link_fini(&p);
}
