/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_arp.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <rocade/mbuf.h>

#include "await.h"
#include "case.h"
#include "shared_pair.h"

#define OTHER_TYPE 0x88B5 /* EtherType of the application's frames: local experiments */

struct side sides[2] = {{.address = "192.0.2.1/24"}, {.address = "192.0.2.2/24"}};
struct rte_mempool *pool;

/* ---- The application ---- */

static void
app_port_start(struct side *s, const char *name)
{
	const struct rte_eth_conf eth = {0};

	assert_int_equal(rte_eth_dev_get_port_by_name(name, &s->ethdev), 0);
	assert_int_equal(rte_eth_dev_configure(s->ethdev, 1, 1, &eth), 0);
	assert_int_equal(rte_eth_rx_queue_setup(s->ethdev, 0, 1024, 0, NULL, pool), 0);
	assert_int_equal(rte_eth_tx_queue_setup(s->ethdev, 0, 1024, 0, NULL), 0);
	assert_int_equal(rte_eth_dev_start(s->ethdev), 0);
}

int
app_start(void **state)
{
	char memif[2][160], name[64];
	char *args[] = {"shared_test", "--no-huge", "--no-pci", "--no-shconf",
		"--no-telemetry", "-m", "256", "-l", "0", "--log-level=error", memif[0],
		memif[1]};

	snprintf(name, sizeof(name), "@rocade-shared-test-%d", (int)getpid());
	for (unsigned i = 0; i < 2; i++)
		snprintf(memif[i], sizeof(memif[i]),
			"--vdev=net_memif%u,role=%s,id=0,bsize=2048,socket-abstract=yes,"
			"socket=%s",
			i, i == 0 ? "server" : "client", name);
	assert_true(rte_eal_init(RTE_DIM(args), args) >= 0);
	pool = rte_pktmbuf_pool_create("app", 16383, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	assert_non_null(pool);
	app_port_start(&sides[0], "net_memif0");
	app_port_start(&sides[1], "net_memif1");
	return 0;
}

static uint16_t
app_tx(void *arg, unsigned engine, struct rte_mbuf **frames, uint16_t n)
{
	const struct side *s = arg;

	assert_int_equal(engine, 0);
	return rte_eth_tx_burst(s->ethdev, 0, frames, n);
}

static void
app_send(struct side *s, struct rte_mbuf *m)
{
	if (rte_eth_tx_burst(s->ethdev, 0, &m, 1) == 0)
		rte_pktmbuf_free(m);
}

void
other_frame_send(struct side *s)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct rte_ether_hdr *eth;

	assert_non_null(m);
	eth = (struct rte_ether_hdr *)rte_pktmbuf_append(m, 60);
	memset(eth, 0xFF, 60);
	eth->ether_type = rte_cpu_to_be_16(OTHER_TYPE);
	app_send(s, m);
}

/* Answers ARP requests for the address of Rocade, which is the application's too. */
static void
arp_answer(struct side *s, struct rte_mbuf *m)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_arp_hdr *arp = (struct rte_arp_hdr *)(eth + 1);
	uint32_t asked = arp->arp_data.arp_tip;

	if (arp->arp_opcode != rte_cpu_to_be_16(RTE_ARP_OP_REQUEST) ||
		memcmp(&asked, s->gid.raw + 12, 4) != 0 ||
		asked == arp->arp_data.arp_sip) {
		rte_pktmbuf_free(m);
		return;
	}
	arp->arp_opcode = rte_cpu_to_be_16(RTE_ARP_OP_REPLY);
	arp->arp_data.arp_tha = arp->arp_data.arp_sha;
	arp->arp_data.arp_tip = arp->arp_data.arp_sip;
	arp->arp_data.arp_sip = asked;
	assert_int_equal(rte_eth_macaddr_get(s->ethdev, &arp->arp_data.arp_sha), 0);
	eth->dst_addr = eth->src_addr;
	eth->src_addr = arp->arp_data.arp_sha;
	s->answered++;
	app_send(s, m);
}

static void
app_frames_handle(struct side *s, struct rte_mbuf **frames, unsigned n, enum how how)
{
	for (unsigned i = 0; i < n; i++) {
		const struct rte_ether_hdr *eth =
			rte_pktmbuf_mtod(frames[i], const struct rte_ether_hdr *);

		s->others += eth->ether_type == rte_cpu_to_be_16(OTHER_TYPE);
		if (how == HOW_APP_ANSWERS &&
			eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP))
			arp_answer(s, frames[i]);
		else
			rte_pktmbuf_free(frames[i]);
	}
}

static void
frames_input(struct side *s, enum how how)
{
	struct rte_mbuf *frames[32];
	uint16_t received = rte_eth_rx_burst(s->ethdev, 0, frames, 32), n;

	n = rocade_engine_input(rocade_port_engine(s->port, 0), frames, received);
	__atomic_fetch_add(&s->taken, received - n, __ATOMIC_RELEASE);
	app_frames_handle(s, frames, n, how);
}

void
side_input(struct side *s)
{
	frames_input(s, HOW_FRAMES);
}

void
side_pass(struct side *s, enum how how)
{
	struct rocade_engine *engine = rocade_port_engine(s->port, 0);
	struct rte_mbuf *frames[32];
	uint16_t n;

	if (how == HOW_QUEUES) {
		n = rocade_engine_exceptions(engine, frames, 32);
		app_frames_handle(s, frames, n, how);
	} else {
		frames_input(s, how);
	}
	rocade_engine_poll(engine);
}

void
sides_pass(enum how how)
{
	side_pass(&sides[0], how);
	side_pass(&sides[1], how);
}

/* ---- Verbs ---- */

void
side_open(struct side *s, enum how how)
{
	struct rocade_port_conf conf = {
		.size = sizeof(conf), .addresses = s->address, .ethdev = s->ethdev};
	struct rocade_shared_conf shared = {.size = sizeof(shared),
		.rx_queues = how == HOW_QUEUES,
		.tx = how == HOW_FUNCTION ? app_tx : NULL,
		.tx_arg = s,
		.pool = how == HOW_FUNCTION ? pool : NULL,
		.app_answers = how == HOW_APP_ANSWERS};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	if (rocade_open_shared(&conf, &shared, &s->port) != 0)
		fail_msg("%s", rocade_error());
	s->context = ibv_open_device(rocade_port_device(s->port));
	assert_non_null(s->context);
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 2 * DEPTH, NULL, NULL, 0);
	s->mr = ibv_reg_mr(s->pd, s->mem, sizeof(s->mem), IBV_ACCESS_LOCAL_WRITE);
	s->srq = NULL;
	if (s->mbufs != NULL) {
		struct ibv_srq_init_attr srq = {.attr = {.max_wr = DEPTH, .max_sge = 1}};

		s->srq = ibv_create_srq(s->pd, &srq);
		assert_int_equal(rocade_srq_set_mbufs(s->srq, s->mbufs), 0);
		init.srq = s->srq;
	}
	init.send_cq = init.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &init);
	assert_non_null(s->qp);
	assert_int_equal(ibv_query_gid(s->context, 1, 0, &s->gid), 0);
	s->others = s->answered = 0;
}

void
side_connect(struct side *s, const struct side *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	assert_int_equal(ibv_modify_qp(s->qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = peer->gid, .hop_limit = 64}}};
	assert_int_equal(
		ibv_modify_qp(s->qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER),
		0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = s->timeout != 0 ? s->timeout : 17,
		.retry_cnt = 7,
		.rnr_retry = 7};
	assert_int_equal(
		ibv_modify_qp(s->qp, &attr,
			IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

uint64_t
side_stat(const struct side *s, const char *name)
{
	struct rocade_stat stats[256];
	unsigned n = rocade_port_stats(s->port, -1, stats, 256);

	for (unsigned i = 0; i < n; i++)
		if (strcmp(stats[i].name, name) == 0)
			return stats[i].value;
	fail_msg("no counter %s", name);
	return 0;
}

void
side_close(struct side *s)
{
	ibv_destroy_qp(s->qp);
	if (s->srq != NULL)
		assert_int_equal(ibv_destroy_srq(s->srq), 0);
	ibv_destroy_cq(s->cq);
	ibv_dereg_mr(s->mr);
	ibv_dealloc_pd(s->pd);
	ibv_close_device(s->context);
	assert_int_equal(rocade_close_port(s->port), 0);
}

void
recv_post(struct side *s, unsigned slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->mem + slot * MSG_BYTES,
		.length = MSG_BYTES,
		.lkey = s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	if (s->srq != NULL) {
		wr.num_sge = 0;
		assert_int_equal(ibv_post_srq_recv(s->srq, &wr, &bad), 0);
		return;
	}
	assert_int_equal(ibv_post_recv(s->qp, &wr, &bad), 0);
}

void
send_post(struct side *s, unsigned number)
{
	unsigned slot = number % DEPTH;
	struct ibv_sge sge = {.addr = (uintptr_t)s->mem + slot * MSG_BYTES,
		.length = MSG_BYTES,
		.lkey = s->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = number,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	memset(s->mem + slot * MSG_BYTES, (int)(number % 251), MSG_BYTES);
	assert_int_equal(ibv_post_send(s->qp, &wr, &bad), 0);
}

static bool ports_are_closed;

static void
ports_close(void *arg)
{
	for (unsigned i = 0; i < 2; i++) {
		if (!rte_eth_dev_is_valid_port(sides[i].ethdev))
			continue; /* a test has closed it */
		rte_eth_dev_stop(sides[i].ethdev);
		rte_eth_dev_close(sides[i].ethdev);
	}
	__atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
}

int
app_end(void **state)
{
	bool *closed = &ports_are_closed;
	unsigned left;

	/* net_memif handles the end of its peer in EAL's interrupt thread, with memory that the close frees.
	 * Alarms run in that thread. */
	if (rte_eal_alarm_set(1, ports_close, closed) != 0 ||
		!awaited(__atomic_load_n(closed, __ATOMIC_ACQUIRE))) {
		fprintf(stderr, "EAL's interrupt thread runs no alarm\n");
		return -1;
	}
	left = rte_mempool_in_use_count(pool);
	if (left != 0)
		fprintf(stderr, "%u frames of the application are left\n", left);
	return left != 0 ? -1 : 0;
}
