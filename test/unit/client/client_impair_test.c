/* SPDX-License-Identifier: BSD-3-Clause */
/* rocaded --local --impair: a client impairs what it sends, the transport repairs that, and the daemon
 * shows it. */
#include "client_fixture.h"
#include "client_messages.h"

#define MESSAGES 300
#define DATAGRAMS 100
#define DATAGRAM_SIZE 64
#define GRH_SIZE 40

/* Returns a counter of the daemon's state. */
static uint64_t
impaired(const char *name)
{
	char key[32], *text, *at;
	uint64_t value;

	assert_int_equal(rocade_status(NULL, &text), 0);
	at = strstr(text, "\"impair\": {");
	assert_non_null(at);
	snprintf(key, sizeof(key), "\"%s\": ", name);
	at = strstr(at, key);
	assert_non_null(at);
	value = strtoull(at + strlen(key), NULL, 10);
	free(text);
	return value;
}

static void
messages_pass_with(const struct rocade_impair *impair, const char *counter)
{
	const struct rocade_daemon_conf conf = {.impair = *impair};
	struct client_fixture f;
	struct end e;

	fixture_open(&f);
	daemon_begin(&f, &conf);
	end_open(&e);
	assert_int_equal(end_connect(&e), 0);
	assert_int_equal(messages_pass(&e, MESSAGES), 0);
	assert_true(impaired(counter) != 0);
	assert_int_equal(end_close(&e), 0);
	/* The daemon keeps the counters of clients that have ended. */
	assert_true(impaired(counter) != 0);
	fixture_close(&f);
}

TEST(lost_packets_are_sent_again)
{
	messages_pass_with(&(struct rocade_impair){.loss_ppm = 20000, .seed = 1}, "lost");
}

TEST(duplicates_are_dropped)
{
	messages_pass_with(&(struct rocade_impair){.duplicate_ppm = 200000, .seed = 1},
		"duplicated");
}

TEST(reordered_packets_are_put_in_order)
{
	messages_pass_with(
		&(struct rocade_impair){.reorder_ppm = 100000, .seed = 1}, "reordered");
}

TEST(corrupted_packets_are_found)
{
	messages_pass_with(
		&(struct rocade_impair){.corrupt_ppm = 20000, .seed = 1}, "corrupted");
}

/* A datagram that is held back has none behind it, and the application does not poll: it leaves all the
 * same, by the progress thread. */
TEST(held_packet_leaves_while_the_application_waits)
{
	const struct rocade_daemon_conf conf = {
		.impair = {.reorder_ppm = 1000000, .seed = 1}};
	struct client_fixture f;
	struct ibv_cq *cq;
	struct end e;
	void *context;

	fixture_open(&f);
	daemon_begin(&f, &conf);
	end_open(&e);
	assert_int_equal(end_connect(&e), 0);
	for (unsigned i = 0; i < 20; i++) {
		struct ibv_wc wc;

		assert_int_equal(recv_post(&e, 0), 0);
		assert_int_equal(ibv_req_notify_cq(e.cq, 0), 0);
		assert_int_equal(send_post(&e, DEPTH), 0);
		assert_int_equal(ibv_get_cq_event(e.channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		for (unsigned done = 0; done < 2; done++)
			assert_int_equal(wc_wait(e.cq, &wc), 0);
	}
	assert_int_equal(end_close(&e), 0);
	fixture_close(&f);
}

static int
qp_end(struct ibv_qp *qp, bool by_reset)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	int rc = by_reset ? ibv_modify_qp(qp, &reset, IBV_QP_STATE) : 0;

	return rc != 0 ? rc : ibv_destroy_qp(qp);
}

/* The last acknowledgement is held back when its QP ends, as that of a program that has received all and
 * ends. It is reordered, not lost: it leaves before the QP does. */
static void
messages_last_one(bool by_reset)
{
	const struct rocade_daemon_conf conf = {
		.impair = {.reorder_ppm = 1000000, .seed = 1}};
	struct client_fixture f;
	struct end e;

	fixture_open(&f);
	daemon_begin(&f, &conf);
	end_open(&e);
	for (unsigned i = 0; i < 20; i++) {
		struct end from = e, to = e;
		struct ibv_wc wc;

		from.qp = qp_make(&e, IBV_QPT_RC, NULL);
		to.qp = qp_make(&e, IBV_QPT_RC, NULL);
		assert_int_equal(qp_init(from.qp), 0);
		assert_int_equal(qp_init(to.qp), 0);
		assert_int_equal(qp_connect(from.qp, to.qp->qp_num), 0);
		assert_int_equal(qp_connect(to.qp, from.qp->qp_num), 0);
		assert_int_equal(recv_post(&to, 0), 0);
		assert_int_equal(send_post(&from, DEPTH), 0);
		assert_int_equal(wc_wait(e.cq, &wc), 0);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(qp_end(to.qp, by_reset), 0);
		assert_int_equal(wc_wait(e.cq, &wc), 0);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_destroy_qp(from.qp), 0);
	}
	assert_int_equal(end_close(&e), 0);
	fixture_close(&f);
}

TEST(last_acknowledgement_leaves_before_its_qp_is_destroyed)
{
	messages_last_one(false);
}

TEST(last_acknowledgement_leaves_before_its_qp_is_reset)
{
	messages_last_one(true);
}

static struct ibv_ah *
own_ah(const struct end *e)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1};
	struct ibv_ah *ah;

	assert_int_equal(ibv_query_gid(e->ctx, 1, 0, &attr.grh.dgid), 0);
	ah = ibv_create_ah(e->pd, &attr);
	assert_non_null(ah);
	return ah;
}

static void
receive_post(const struct end *e, struct ibv_qp *qp)
{
	struct ibv_sge to = {.addr = (uintptr_t)e->buf,
		.length = GRH_SIZE + DATAGRAM_SIZE,
		.lkey = e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &to, .num_sge = 1};

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static void
datagram_send(const struct end *e, struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge from = {.addr = (uintptr_t)(e->buf + SIZE),
		.length = DATAGRAM_SIZE,
		.lkey = e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &from,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.ud = {ah, qp->qp_num, 1}};
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(e->cq, &wc), 0);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
}

/* Sends datagrams to itself, and notes which arrive. */
static void
arrivals_note(uint64_t seed, bool arrives[DATAGRAMS])
{
	const struct rocade_daemon_conf conf = {
		.impair = {.loss_ppm = 300000, .seed = seed}};
	struct client_fixture f;
	uint64_t lost = 0;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct end e;

	fixture_open(&f);
	daemon_begin(&f, &conf);
	end_open(&e);
	qp = datagram_qp(&e);
	ah = own_ah(&e);
	receive_post(&e, qp);
	for (unsigned i = 0; i < DATAGRAMS; i++) {
		bool is_lost = false;
		struct ibv_wc wc;

		datagram_send(&e, qp, ah);
		arrives[i] = false;
		await((arrives[i] = ibv_poll_cq(e.cq, 1, &wc) == 1) ||
			(is_lost = impaired("lost") != lost));
		lost += is_lost;
		if (arrives[i])
			receive_post(&e, qp);
	}
	assert_in_range(lost, 1, DATAGRAMS - 1);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(end_close(&e), 0);
	fixture_close(&f);
}

TEST(same_seed_loses_the_same_packets)
{
	bool first[DATAGRAMS], again[DATAGRAMS], other[DATAGRAMS];

	arrivals_note(7, first);
	arrivals_note(7, again);
	arrivals_note(1007, other);
	assert_memory_equal(first, again, sizeof(first));
	assert_memory_not_equal(first, other, sizeof(first));
}
