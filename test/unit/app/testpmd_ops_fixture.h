/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of operations of rocade-testpmd: a peer that carries out the requests of a sender in the
 * target and the memory windows of a receiver. */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/flush.h>

#include "case.h"
#include "testpmd_rx.h"
#include "tx_op.h"

#define QPN 0x100
#define SIZE 40
#define SLOTS 64

static struct conf conf;
static struct port_conf pc = {.peers = {{.addr = "192.0.2.2"}}};
static struct host tx, rx;
static struct conn tx_conn, rx_conn;
static struct rxq rxq;
static struct rx_buf rx_buf;
static uint32_t spare[1];
static struct ibv_cq cq;
static uint8_t buffers[SLOTS * 64], received[64];
static uint32_t wrong_key;       /* bits of the R_Key in the completion of a SEND */
static struct ibv_wc completion; /* of the receive CQ; opcode -1: none */

#include "testpmd_host.h"

static int
fake_poll_cq(struct ibv_cq *unused, int n, struct ibv_wc *wc)
{
	(void)unused;
	(void)n;
	if ((int)completion.opcode == -1)
		return 0;
	*wc = completion;
	completion.opcode = (enum ibv_wc_opcode) - 1;
	return 1;
}

/* ---- The peer ---- */

/* Completes a receive of rx with len bytes. */
static void
receive(enum ibv_wc_opcode opcode, unsigned flags, uint32_t imm, uint32_t len)
{
	completion = (struct ibv_wc){.status = IBV_WC_SUCCESS,
		.qp_num = QPN,
		.opcode = opcode,
		.wc_flags = flags,
		.imm_data = imm,
		.byte_len = len};
	rx_reap(&rx, NULL);
}

/* ---- The receiver's memory windows ---- */

#define BINDS 64

static struct ibv_send_wr binds[BINDS]; /* that are posted, and not executed */
static unsigned n_binds;
static uint32_t valid[MWS_OF_QP]; /* R_Keys that are bound; 0: none */

static unsigned windows_left = UINT_MAX; /* of the device */
static unsigned windows;                 /* that are allocated */

static struct ibv_mw *
fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	static uint32_t index;
	struct ibv_mw *mw;

	if (windows_left == 0) {
		errno = ENOMEM;
		return NULL;
	}
	windows_left--;
	windows++;
	mw = calloc(1, sizeof(*mw));
	*mw = (struct ibv_mw){.context = pd->context,
		.pd = pd,
		.type = type,
		.rkey = (++index % MWS_OF_QP) << 8 | 0xfe};
	return mw;
}

static int
fake_dealloc_mw(struct ibv_mw *mw)
{
	windows--;
	free(mw);
	return 0;
}

static int
fake_post_send(struct ibv_qp *unused, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)unused;
	*bad = wr;
	assert_int_equal(wr->opcode, IBV_WR_BIND_MW);
	assert_true(n_binds < BINDS);
	binds[n_binds++] = *wr;
	wr->bind_mw.mw->rkey = wr->bind_mw.rkey;
	return 0;
}

/* Executes the binds that are posted. */
static void
binds_run(void)
{
	unsigned n = n_binds;

	n_binds = 0;
	for (unsigned i = 0; i < n; i++) {
		uint32_t *key = &valid[binds[i].bind_mw.rkey >> 8];
		struct ibv_wc wc = {.wr_id = binds[i].wr_id,
			.status = *key == 0 ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR};

		if (*key == 0)
			*key = binds[i].bind_mw.rkey;
		mws_bind_done(&rx, &rx_conn, &wc);
	}
}

static unsigned flushes[2]; /* by level */

static void
atomic_run(const struct ibv_send_wr *wr, uint64_t *result)
{
	uint64_t *word = (uint64_t *)(uintptr_t)wr->wr.atomic.remote_addr;

	*result = *word;
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		*word += wr->wr.atomic.compare_add;
	else if (*word == wr->wr.atomic.compare_add)
		*word = wr->wr.atomic.swap;
}

static void
request_run(const struct ibv_send_wr *wr, uint8_t *buf, uint32_t len)
{
	void *remote = (void *)(uintptr_t)wr->wr.rdma.remote_addr;

	if (wr->opcode == (enum ibv_wr_opcode)ROCADE_WR_FLUSH) {
		flushes[wr->wr.atomic.swap]++;
		assert_int_equal(wr->wr.atomic.rkey, rx.target.map.rkey);
		assert_int_equal(len, 0);
		return;
	}
	switch (wr->opcode) {
	case IBV_WR_SEND:
		memcpy(received, buf, len);
		receive(IBV_WC_RECV, 0, 0, len);
		break;
	case IBV_WR_SEND_WITH_IMM:
		memcpy(received, buf, len);
		receive(IBV_WC_RECV, IBV_WC_WITH_IMM, wr->imm_data, len);
		break;
	case IBV_WR_SEND_WITH_INV:
		memcpy(received, buf, len);
		assert_int_equal(valid[wr->invalidate_rkey >> 8], wr->invalidate_rkey);
		valid[wr->invalidate_rkey >> 8] = 0;
		receive(IBV_WC_RECV, IBV_WC_WITH_INV, wr->invalidate_rkey ^ wrong_key,
			len);
		binds_run();
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_ATOMIC_WRITE:
		memcpy(remote, buf, len);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		memcpy(remote, buf, len);
		receive(IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, wr->imm_data, len);
		break;
	case IBV_WR_RDMA_READ:
		memcpy(buf, remote, len);
		break;
	default:
		atomic_run(wr, (uint64_t *)(void *)buf);
	}
}

/* Posts the sender's next message, and lets the peer carry it out. */
static void
message(void)
{
	struct ibv_send_wr wr = {0};
	uint8_t *buf = buffers + tx_conn.posted % SLOTS * 64;
	uint32_t len;
	unsigned flags;

	tx_op_build(&tx, &tx_conn, &wr, buf, tx_conn.posted, &len, &flags);
	tx_conn.posted++;
	if (++tx_conn.size_i == conf.n_sizes)
		tx_conn.size_i = 0;
	request_run(&wr, buf, len);
}

static void
messages_acknowledged(void)
{
	tx_op_acked(&tx, &tx_conn, tx_conn.posted);
}

static void
parts_free(void)
{
	target_fini(&rx.target);
	mws_fini(&rx.mws, 1);
	mws_fini(&tx.mws, 1);
}

/* A sender and a receiver with one QP that run this mix. */
static void
run_begin(const char *text)
{
	static struct ibv_context ctx = {.ops = {.poll_cq = fake_poll_cq,
						 .alloc_mw = fake_alloc_mw,
						 .dealloc_mw = fake_dealloc_mw,
						 .post_send = fake_post_send}};
	static struct ibv_pd pd = {.context = &ctx};
	static struct ibv_qp qp = {.context = &ctx};
	static const struct mode_ops receives = {.receives = true},
				     sends = {.sends = true};

	parts_free();
	n_binds = 0;
	wrong_key = 0;
	tells_lost = false;
	memset(valid, 0, sizeof(valid));
	conf = (struct conf){.sizes = {SIZE, 8, 33},
		.n_sizes = 3,
		.size_max = SIZE,
		.size_cap = SIZE,
		.sq_depth = SLOTS};
	assert_true(parse_mix(text, &conf.mix));
	completion.opcode = (enum ibv_wc_opcode) - 1;
	cq = (struct ibv_cq){.context = &ctx};
	rx_buf.data = received;
	rxq = (struct rxq){.bufs = &rx_buf, .spare = spare, .n_bufs = 1, .capacity = 1};
	tx_conn = (struct conn){.qpn = QPN, .flow_out = QPN, .tx = buffers};
	rx_conn = (struct conn){.qp = &qp, .qpn = QPN, .flow_in = QPN, .rxq = &rxq};
	rx = (struct host){.conf = &conf,
		.pc = &pc,
		.head = &rx,
		.n_hosts = 1,
		.conns = &rx_conn,
		.n_conns = 1,
		.ops = &receives,
		.state = HOST_RUNNING,
		.verbs = {.recv_cq = &cq, .pd = &pd},
		.exchange = {.on = true, .asked = {.receives = true}}};
	assert_int_equal(target_init(&rx), 0);
	target_fill(&rx);
	tx = (struct host){.conf = &conf,
		.pc = &pc,
		.head = &tx,
		.n_hosts = 1,
		.conns = &tx_conn,
		.n_conns = 1,
		.ops = &sends,
		.tx = {.stride = 64, .slots = SLOTS},
		.exchange = {.on = true,
			.ring = true,
			.mws = (mix_any(&conf.mix) & OP_INV) != 0,
			.peer = rx.target.map}};
	if (!tx.exchange.mws)
		return;
	assert_int_equal(mws_init(&rx), 0);
	assert_int_equal(mws_init(&tx), 0);
	mws_bind(&rx);
	binds_run();
}

static int
teardown(void **state)
{
	parts_free();
	return 0;
}
