/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Embedding Rocade in a DPDK application. docs/embedding.md explains the calls.
 *
 * Two ports of this process talk to each other: four QPs of the first send to the second,
 * into one shared receive queue, most of their requests unsignaled. By default the ports
 * are a loop in memory; with --ports A,B they are two ethdev ports of DPDK, connected by
 * a cable, a bridge or memif. The engines are run by the loop in embed_run(), or with
 * --lcore by EAL's worker lcores.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include <infiniband/verbs.h>
#include <rocade/rocade.h>

#include <common/eal_end.h>

#define QPS 4
#define MSG_BYTES 1000
#define SRQ_DEPTH 256
#define SRQ_LIMIT 64 /* limit event: fewer receives than this are left */
#define SEND_DEPTH 64
#define SIGNAL_EVERY 16 /* every 16th send is signaled; must not exceed SEND_DEPTH */

struct side {
	struct rocade_port *port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[QPS];
	struct ibv_mr *mr;
	uint8_t *mem; /* SRQ_DEPTH receive buffers, then SEND_DEPTH send buffers per QP */
	union ibv_gid gid;
};

struct options {
	unsigned long messages;
	int ports[2]; /* -1: an in-process loop */
	bool lcore;
};

static void
die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* ---- Ports and engines ---- */

static void
ports_open(const struct options *o, struct side side[2])
{
	struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]), .addresses = "192.0.2.1/24"},
		{.size = sizeof(conf[1]), .addresses = "192.0.2.2/24"},
	};
	struct rocade_port *ports[2];
	int err = 0;

	if (o->ports[0] < 0) {
		err = rocade_open_loop(conf, ports);
	} else {
		for (int i = 0; i < 2 && err == 0; i++) {
			conf[i].ethdev = (uint16_t)o->ports[i];
			err = rocade_open_port(&conf[i], &ports[i]);
		}
	}
	if (err != 0)
		die("embed: %s", rocade_error());
	side[0].port = ports[0];
	side[1].port = ports[1];
}

static void
engines_launch(struct side side[2])
{
	unsigned lcore = rte_get_next_lcore(-1, 1, 0);

	if (lcore == RTE_MAX_LCORE)
		die("embed: --lcore needs a worker lcore, for example: embed -l 0,1 -- "
		    "--lcore");
	for (int i = 0; i < 2; i++) {
		if (rocade_engine_launch(rocade_port_engine(side[i].port, 0), lcore) != 0)
			die("embed: %s", rocade_error());
		/* With a single worker lcore both engines share it. */
		if (rte_get_next_lcore(lcore, 1, 0) != RTE_MAX_LCORE)
			lcore = rte_get_next_lcore(lcore, 1, 0);
	}
}

/* One pass of this program's own loop. With --lcore the worker lcores poll instead. */
static void
engines_poll(const struct options *o, struct side side[2])
{
	if (o->lcore)
		return;
	rocade_engine_poll(rocade_port_engine(side[0].port, 0));
	rocade_engine_poll(rocade_port_engine(side[1].port, 0));
}

/* ---- Verbs: standard calls from here on ---- */

static void
objects_create(struct side *s)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = SRQ_DEPTH, .max_sge = 1}};
	size_t bytes = (SRQ_DEPTH + QPS * SEND_DEPTH) * MSG_BYTES;

	s->context = ibv_open_device(rocade_port_device(s->port));
	if (s->context == NULL)
		die("embed: ibv_open_device: %m");
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 4096, NULL, NULL, 0);
	s->srq = ibv_create_srq(s->pd, &srq);
	s->mem = malloc(bytes);
	if (s->pd == NULL || s->cq == NULL || s->srq == NULL || s->mem == NULL)
		die("embed: cannot create the queues: %m");
	s->mr = ibv_reg_mr(s->pd, s->mem, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (s->mr == NULL)
		die("embed: ibv_reg_mr: %m");
	for (unsigned i = 0; i < QPS; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = s->cq,
			.recv_cq = s->cq,
			.srq = s->srq,
			.cap = {.max_send_wr = SEND_DEPTH, .max_send_sge = 1},
			.qp_type = IBV_QPT_RC,
		};

		s->qp[i] = ibv_create_qp(s->pd, &attr);
		if (s->qp[i] == NULL)
			die("embed: ibv_create_qp: %m");
	}
	if (ibv_query_gid(s->context, 1, 0, &s->gid) != 0)
		die("embed: ibv_query_gid: %m");
}

static void
qp_modify_state(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = ibv_modify_qp(qp, attr, IBV_QP_STATE | mask);

	if (err != 0)
		die("embed: ibv_modify_qp to state %d: %s", attr->qp_state,
			strerror(err));
}

/* Both ends start with PSN 0. Programs on two hosts first exchange QP number, starting
 * PSN and GID, for example over TCP. */
static void
qp_connect(struct ibv_qp *qp, uint32_t peer_qpn, const union ibv_gid *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	qp_modify_state(qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		/* 0.64 ms; rarely used, as the limit event refills the SRQ in time */
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = *peer, .sgid_index = 0, .hop_limit = 64}},
	};
	qp_modify_state(qp, &attr,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};
	qp_modify_state(qp, &attr,
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC);
}

/* ---- Receiving ---- */

static void
slot_post(struct side *s, uint64_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->mem + slot * MSG_BYTES,
		.length = MSG_BYTES,
		.lkey = s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int err = ibv_post_srq_recv(s->srq, &wr, &bad);

	if (err != 0)
		die("embed: ibv_post_srq_recv: %s", strerror(err));
}

static void
srq_limit_arm(struct side *s)
{
	struct ibv_srq_attr attr = {.srq_limit = SRQ_LIMIT};
	int err = ibv_modify_srq(s->srq, &attr, IBV_SRQ_LIMIT);

	if (err != 0)
		die("embed: ibv_modify_srq: %s", strerror(err));
}

/* Expected content of a byte: a function of the sending QP, the message number and the
 * offset. */
static uint8_t
expected_byte(unsigned qp, uint64_t number, unsigned offset)
{
	return (uint8_t)((qp + 1) * 31 + number * 7 + offset);
}

struct receiver {
	uint64_t next[QPS]; /* number of the next message of each QP */
	uint64_t count;
	uint64_t refills;
	uint64_t limit_events;    /* of the SRQ, as far as they are answered */
	uint64_t used[SRQ_DEPTH]; /* slots to repost */
	unsigned used_count;
};

static void
message_check(const struct side *s, struct receiver *r, const struct ibv_wc *wc)
{
	const uint8_t *data = s->mem + wc->wr_id * MSG_BYTES;
	unsigned qp = 0;

	while (s->qp[qp]->qp_num != wc->qp_num)
		qp++;
	if (wc->byte_len != MSG_BYTES)
		die("embed: received a message of %u bytes", wc->byte_len);
	for (unsigned i = 0; i < MSG_BYTES; i++) {
		if (data[i] != expected_byte(qp, r->next[qp], i))
			die("embed: QP %u, message %lu: byte %u is wrong", qp,
				(unsigned long)r->next[qp], i);
	}
	r->next[qp]++;
	r->count++;
	r->used[r->used_count++] = wc->wr_id;
}

/* The event also waits in the device's queue of asynchronous events. To ask there would be a system call
 * in each pass. */
static bool
limit_was_reached(const struct side *s, struct receiver *r)
{
	struct rocade_srq_info info;

	if (r->used_count <= SRQ_DEPTH - SRQ_LIMIT)
		return false; /* enough receives are left */
	if (rocade_srq_info(s->srq, &info) != 0 || info.limit_events == r->limit_events)
		return false;
	r->limit_events = info.limit_events;
	return true;
}

static void
messages_receive(struct side *s, struct receiver *r)
{
	struct ibv_async_event event;
	struct ibv_wc wc[32];
	int n = ibv_poll_cq(s->cq, 32, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			die("embed: receive: %s", ibv_wc_status_str(wc[i].status));
		message_check(s, r, &wc[i]);
	}
	/* Refill only after the SRQ's limit event. */
	if (!limit_was_reached(s, r))
		return;
	/* It is taken out of the queue, so that the queue does not fill. */
	if (ibv_get_async_event(s->context, &event) != 0)
		die("embed: ibv_get_async_event: %m");
	ibv_ack_async_event(&event);
	r->refills++;
	while (r->used_count != 0)
		slot_post(s, r->used[--r->used_count]);
	srq_limit_arm(s);
}

/* ---- Sending ---- */

struct sender {
	uint64_t next[QPS]; /* number of the next message of each QP */
	uint64_t done[QPS]; /* messages before this one are acknowledged */
	uint64_t count;
};

static void
send_one(struct side *s, struct sender *t, unsigned qp)
{
	uint64_t number = t->next[qp];
	uint64_t slot = SRQ_DEPTH + qp * SEND_DEPTH + number % SEND_DEPTH;
	bool signaled = number % SIGNAL_EVERY == SIGNAL_EVERY - 1;
	struct ibv_sge sge = {.addr = (uintptr_t)s->mem + slot * MSG_BYTES,
		.length = MSG_BYTES,
		.lkey = s->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = number,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = signaled ? IBV_SEND_SIGNALED : 0};
	struct ibv_send_wr *bad;
	int err;

	for (unsigned i = 0; i < MSG_BYTES; i++)
		s->mem[slot * MSG_BYTES + i] = expected_byte(qp, number, i);
	err = ibv_post_send(s->qp[qp], &wr, &bad);
	if (err != 0)
		die("embed: ibv_post_send: %s", strerror(err));
	t->next[qp]++;
	t->count++;
}

/* A send buffer and its send queue slot may be reused once a completion of its request,
 * or of a later one, was polled. */
static void
send_some(struct side *s, struct sender *t, uint64_t messages)
{
	struct ibv_wc wc[32];
	int n = ibv_poll_cq(s->cq, 32, wc);

	for (int i = 0; i < n; i++) {
		unsigned qp = 0;

		if (wc[i].status != IBV_WC_SUCCESS)
			die("embed: send: %s", ibv_wc_status_str(wc[i].status));
		while (s->qp[qp]->qp_num != wc[i].qp_num)
			qp++;
		t->done[qp] = wc[i].wr_id + 1;
	}
	for (unsigned qp = 0; qp < QPS; qp++) {
		if (t->count < messages && t->next[qp] - t->done[qp] < SEND_DEPTH)
			send_one(s, t, qp);
	}
}

/* ---- The program ---- */

static void
side_close(struct side *s)
{
	for (unsigned i = 0; i < QPS; i++)
		ibv_destroy_qp(s->qp[i]);
	ibv_destroy_srq(s->srq);
	ibv_destroy_cq(s->cq);
	ibv_dereg_mr(s->mr);
	ibv_dealloc_pd(s->pd);
	ibv_close_device(s->context);
	free(s->mem);
}

static void
ports_close(const struct options *o, struct side side[2])
{
	for (int i = 0; i < 2; i++) {
		if (o->lcore)
			rocade_engine_stop(rocade_port_engine(side[i].port, 0));
	}
	for (int i = 0; i < 2; i++) {
		if (rocade_close_port(side[i].port) != 0)
			die("embed: %s", rocade_error());
	}
}

static void
embed_run(const struct options *o)
{
	struct side side[2] = {0};
	struct receiver receiver = {0};
	struct sender sender = {0};

	ports_open(o, side);
	if (o->lcore)
		engines_launch(side);
	objects_create(&side[0]);
	objects_create(&side[1]);
	for (unsigned i = 0; i < QPS; i++) {
		qp_connect(side[0].qp[i], side[1].qp[i]->qp_num, &side[1].gid);
		qp_connect(side[1].qp[i], side[0].qp[i]->qp_num, &side[0].gid);
	}
	for (unsigned i = 0; i < SRQ_DEPTH; i++)
		slot_post(&side[1], i);
	srq_limit_arm(&side[1]);
	while (receiver.count < o->messages) {
		engines_poll(o, side);
		send_some(&side[0], &sender, o->messages);
		messages_receive(&side[1], &receiver);
	}
	side_close(&side[0]);
	side_close(&side[1]);
	ports_close(o, side);
	printf("%lu messages of %d bytes by %d QPs into one SRQ, all verified; %lu "
	       "refills\n",
		(unsigned long)receiver.count, MSG_BYTES, QPS,
		(unsigned long)receiver.refills);
}

static const char usage[] =
	"usage: embed [EAL options] -- [options]\n"
	"  --messages N   number of messages to send (10000)\n"
	"  --ports A,B    two ethdev ports connected to each other (default: an "
	"in-process loop)\n"
	"  --lcore        run the engines on EAL's worker lcores, not in this "
	"program's loop\n"
	"  --help, --version\n"
	"Without root or hugepages: embed --no-huge --no-pci -- --messages 1000\n"
	"Exit status: 0 if all messages arrived and were verified, 1 otherwise.\n";

static void
embed_options_read(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {{"messages", required_argument, NULL, 'm'},
		{"ports", required_argument, NULL, 'p'},
		{"lcore", no_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'}, {NULL, 0, NULL, 0}};
	char *end;
	int c;

	*o = (struct options){.messages = 10000, .ports = {-1, -1}};
	optind = 1;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'm':
			o->messages = strtoul(optarg, &end, 10);
			if (*end != '\0' || o->messages == 0)
				die("embed: invalid value '%s' for --messages: "
				    "expected a number above 0",
					optarg);
			break;
		case 'p':
			if (sscanf(optarg, "%d,%d", &o->ports[0], &o->ports[1]) != 2)
				die("embed: invalid value '%s' for --ports: expected "
				    "two port ids, for example 0,1",
					optarg);
			break;
		case 'l':
			o->lcore = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'v':
			printf("embed %s\n", rocade_version());
			exit(0);
		default:
			fputs(usage, stderr);
			exit(1);
		}
	}
}

/* Handles --help and --version before EAL starts, because EAL has options of the same
 * names. */
static void
help_first(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "--version") == 0) {
			struct options o;

			embed_options_read(2, (char *[]){argv[0], argv[i], NULL}, &o);
		}
	}
}

int
main(int argc, char **argv)
{
	struct options o;
	int used;

	help_first(argc, argv);
	used = rte_eal_init(argc, argv);
	if (used < 0)
		die("embed: cannot start EAL");
	embed_options_read(argc - used, argv + used, &o);
	embed_run(&o);
	eal_end();
	return 0;
}
