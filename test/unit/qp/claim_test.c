/* SPDX-License-Identifier: BSD-3-Clause */
/* Which receives of a shared SRQ the first message of a burst takes with its own (lib/qp/claim.h): those
 * of the messages that are going to take one, and no more than half of what is outstanding. */
#include "qp/claim.h"
#include "qp_link.h"

#define PACKETS 6

static struct qp_link p;
static struct qp other;
static struct rx_packet burst[PACKETS];
static uint8_t ip[20]; /* of a packet from another address */

static void
set_op(unsigned i, uint8_t opcode)
{
	burst[i].view.op = &op_rows[opcode];
	burst[i].view.opcode = opcode;
}

/* SENDs in sequence, and `receives` receives. */
static void
begin(unsigned receives)
{
	struct qp_link_conf conf = qp_link_defaults();
	struct pkt pkt;

	conf.srq = true;
	qp_link_init(&p, &conf);
	p.b.srq.shared = true;
	for (unsigned i = 0; i < receives; i++)
		host_recv(&p.b, i, 0, 16);
	host_send(&p.a, 0, 0, 16, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	pkt = (struct pkt){.data = p.a.wire[0].data, .len = p.a.wire[0].len};
	for (unsigned i = 0; i < PACKETS; i++) {
		burst[i].qp = &p.b.qp;
		assert_int_equal(pkt_parse(&pkt, 0, &burst[i].view), DROP_none);
		burst[i].view.psn += i;
	}
	memcpy(ip, burst[0].view.ip, sizeof(ip));
	ip[15]++; /* the last byte of the IPv4 source address */
	p.b.shared.burst = (struct rx_burst){
		.packets = burst, .end = burst + PACKETS, .checked = true};
}

/* Returns how many receives the message takes that begins with packet `first`. */
static unsigned
taken_by(unsigned first)
{
	uint32_t before = recv_ring_outstanding(&p.b.srq.ring);

	assert_int_equal(claim_take(&p.b.qp, &burst[first].view), 0);
	return before - recv_ring_outstanding(&p.b.srq.ring);
}

/* Each claimed receive is used by the next message, without another take. */
static void
end(unsigned claimed)
{
	uint64_t missed = p.b.stats.srq_claim_missed, before = p.b.stats.srq_claimed;

	for (unsigned i = 1; i < claimed; i++) {
		assert_ptr_equal(p.b.claim.qp, &p.b.qp);
		assert_int_equal(taken_by(i), 0);
		assert_int_equal(p.b.qp.wqe->wr_id, i);
	}
	assert_null(p.b.claim.qp);
	assert_int_equal(p.b.stats.srq_claimed - before, claimed - 1);
	assert_int_equal(p.b.stats.srq_claim_missed, missed);
	p.b.shared.burst.end = NULL;
	wire_drop(&p.a, 0);
	qp_link_fini_discard(&p);
}

TEST(all_messages_of_a_burst_are_counted)
{
	begin(32);
	assert_int_equal(taken_by(0), PACKETS);
	end(PACKETS);
}

TEST(at_most_half_is_taken)
{
	for (unsigned receives = 1; receives < 2 * PACKETS; receives++) {
		begin(receives);
		assert_int_equal(taken_by(0), (receives + 1) / 2);
		end((receives + 1) / 2);
	}
}

/* Each changes the fourth packet so that the count ends there. */
static void
gap(void)
{
	burst[3].view.psn++;
}
static void
repeat(void)
{
	burst[3].view.psn = burst[2].view.psn;
}
static void
read_between(void)
{
	set_op(3, OPCODE_RC_READ_REQUEST);
}
static void
dropped(void)
{
	burst[3].qp = NULL;
}
static void
other_qp(void)
{
	burst[3].qp = &other;
}
static void
other_address(void)
{
	burst[3].view.ip = ip;
}

TEST(the_count_ends_at_a_packet_that_may_take_none)
{
	void (*const change[])(void) = {
		gap, repeat, read_between, dropped, other_qp, other_address};

	for (unsigned i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
		begin(32);
		change[i]();
		assert_int_equal(taken_by(0), 3);
		end(3);
	}
}

TEST(a_message_of_several_packets_counts_once)
{
	begin(32);
	set_op(1, OPCODE_RC_SEND_FIRST);
	set_op(2, OPCODE_RC_SEND_MIDDLE);
	set_op(3, OPCODE_RC_SEND_LAST);
	set_op(4, OPCODE_RC_WRITE_FIRST);
	set_op(5, OPCODE_RC_WRITE_LAST_IMM);
	assert_int_equal(taken_by(0), 3);
	end(3);
}

TEST(writes_take_none)
{
	begin(32);
	for (unsigned i = 1; i < PACKETS; i++)
		set_op(i, OPCODE_RC_WRITE_ONLY);
	assert_int_equal(taken_by(0), 1);
	end(1);
}

TEST(a_qp_that_holds_packets_takes_one)
{
	begin(32);
	p.b.qp.resp.hold = 1;
	assert_int_equal(taken_by(0), 1);
	p.b.qp.resp.hold = 0;
	end(1);
}

TEST(a_packet_that_is_not_of_the_burst_takes_one)
{
	begin(32);
	p.b.shared.burst.end = burst;
	assert_int_equal(taken_by(0), 1);
	end(1);
}

/* A burst of large frames, or one that another engine checks again. */
TEST(a_burst_whose_icrcs_are_not_checked_takes_one)
{
	begin(32);
	p.b.shared.burst.checked = false;
	assert_int_equal(taken_by(0), 1);
	end(1);
}

TEST(a_message_that_may_wait_for_an_mbuf_takes_one)
{
	struct rte_mempool *pool =
		(struct rte_mempool *)&other; /* only its address matters */

	begin(32);
	p.b.srq.mbufs.pool = pool;
	assert_int_equal(taken_by(0), 1);
	p.b.srq.mbufs.pool = NULL;
	end(1);
}

/* A QP that leaves the engine leaves nothing for the next one. */
TEST(a_claim_is_forgotten)
{
	begin(32);
	assert_int_equal(taken_by(0), PACKETS);
	claim_forget(&p.b.qp);
	assert_int_equal(p.b.claim.claim.next, p.b.claim.claim.count);
	end(1);
}

/* Another engine has found the SRQ corrupted: the QP keeps what it has taken, until it is flushed. */
TEST(a_failed_srq_keeps_the_claim)
{
	begin(32);
	assert_int_equal(taken_by(0), PACKETS);
	p.b.srq.error = true;
	assert_int_equal(claim_take(&p.b.qp, &burst[1].view), -EIO);
	assert_int_equal(p.b.claim.claim.count - p.b.claim.claim.next, PACKETS - 1);
	p.b.srq.error = false;
	assert_int_equal(taken_by(1), 0);
	assert_int_equal(p.b.qp.wqe->wr_id, 1);
	claim_forget(&p.b.qp);
	end(1);
}

/* So does a WQE of it that is corrupted. */
TEST(a_corrupted_receive_stays_in_the_claim)
{
	begin(32);
	recv_ring_slot(&p.b.srq.ring, 1)->num_sge = UINT32_MAX;
	assert_int_equal(taken_by(0), PACKETS);
	assert_int_equal(claim_take(&p.b.qp, &burst[1].view), -EIO);
	assert_int_equal(p.b.claim.claim.count - p.b.claim.claim.next, PACKETS - 1);
	expect_event(&p.b, IBV_EVENT_SRQ_ERR);
	claim_forget(&p.b.qp);
	end(1);
}
