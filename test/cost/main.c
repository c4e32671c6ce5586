/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions per message, both ends together. Runs a fixed amount of work over a loop,
 * for tools/lib/cost.py, which counts the instructions of measured() with callgrind. With
 * COST_RING, ring_cost: the same over net_ring. With COST_HOSTS, hosts_cost: between clients of two daemons,
 * over a loop of these.
 *
 *     cost NAME     runs that workload; prints how many messages measured() moved
 *     cost --list   prints the workloads
 *     cost --rate NAME   prints the nanoseconds of CPU per message of many messages
 *     cost --key    prints what the count depends on besides the source: compiler,
 *                   CPU flags */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock_cost.h"
#include "ends.h"

#define BURST 32             /* requests per pass */
#define SIGNAL_EVERY 32      /* requests of a QP per signaled one */
#define WARMUP_MESSAGES 4096 /* messages before the measurement */
#define MESSAGES 8192        /* messages measured */
#define PASS_NS 1000
#define IDLE_PASSES 10000 /* passes without a message, after which one must be lost */
#define RATE_MESSAGES 1000000
#define POLL_MAX 64
#ifdef COST_RING
#define RING 1
#else
#define RING 0
#endif
#ifdef COST_HOSTS
#define HOSTS 1
#else
#define HOSTS 0
#endif
#define QKEY 0x11

static const struct workload {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	unsigned qps;
	enum ibv_qp_type type;
	bool pingpong; /* each end answers a message with one before its engine's next pass */
	bool mbufs; /* messages are received in mbufs */
	enum ends_source source;
} workloads[] = {
#ifdef COST_RING
	{"ring-send-4096", IBV_WR_SEND, 4096, 1, IBV_QPT_RC, false, false, ENDS_MEMORY},
	{"ring-send-4096-mbuf", IBV_WR_SEND, 4096, 1, IBV_QPT_RC, false, true,
		ENDS_MEMORY},
	{"ring-post-4096-mbuf", IBV_WR_SEND, 4096, 1, IBV_QPT_RC, false, false,
		ENDS_MBUF},
	{"ring-copy-4096-mbuf", IBV_WR_SEND, 4096, 1, IBV_QPT_RC, false, false,
		ENDS_MBUF_COPY},
#elif defined(COST_HOSTS)
	{"hosts-send-64", IBV_WR_SEND, 64, 1, IBV_QPT_RC, false, false, ENDS_MEMORY},
	{"hosts-write-4096", IBV_WR_RDMA_WRITE, 4096, 1, IBV_QPT_RC, false, false,
		ENDS_MEMORY},
	{"hosts-read-4096", IBV_WR_RDMA_READ, 4096, 1, IBV_QPT_RC, false, false,
		ENDS_MEMORY},
	{"hosts-pingpong-64", IBV_WR_SEND, 64, 1, IBV_QPT_RC, true, false, ENDS_MEMORY},
#else
	{"send-64", IBV_WR_SEND, 64, 1, IBV_QPT_RC, false, false, ENDS_MEMORY},
	{"write-4096", IBV_WR_RDMA_WRITE, 4096, 1, IBV_QPT_RC, false, false, ENDS_MEMORY},
	{"read-4096", IBV_WR_RDMA_READ, 4096, 1, IBV_QPT_RC, false, false, ENDS_MEMORY},
	{"send-64-qps-256", IBV_WR_SEND, 64, 256, IBV_QPT_RC, false, false, ENDS_MEMORY},
	{"ud-send-64", IBV_WR_SEND, 64, 1, IBV_QPT_UD, false, false, ENDS_MEMORY},
	{"pingpong-64", IBV_WR_SEND, 64, 1, IBV_QPT_RC, true, false, ENDS_MEMORY},
#endif
};

struct run {
	const struct workload *work;
	struct ends ends;
	struct ibv_send_wr wr[BURST];
	struct ibv_sge sge[BURST];
	uint64_t posted[ENDS_QPS_MAX], freed[ENDS_QPS_MAX]; /* requests, by QP */
	unsigned qp;                                        /* the next to post to */
	uint64_t started, done;
};

static void
requests_prepare(struct run *run)
{
	const struct workload *work = run->work;
	struct ends *ends = &run->ends;
	struct ibv_ah *ah = NULL;

	if (work->type == IBV_QPT_UD) {
		struct ibv_ah_attr attr = {
			.is_global = 1, .port_num = 1, .grh.hop_limit = 64};

		must(rocade_gid_parse("192.0.2.2", &attr.grh.dgid) == 0, "GID");
		ah = ibv_create_ah(ends->client.pd, &attr);
		must(ah != NULL, "ibv_create_ah");
	}
	for (unsigned i = 0; i < BURST; i++) {
		struct ibv_send_wr *wr = &run->wr[i];

		/* Over net_ring from different memory, as the mbufs are. */
		size_t slot = RING ? (size_t)ENDS_SLOT * (2 + i) : 0;

		run->sge[i] = (struct ibv_sge){.addr = (uintptr_t)ends->client.mem + slot,
			.length = work->bytes,
			.lkey = ends->client.mr->lkey};
		*wr = (struct ibv_send_wr){
			.sg_list = &run->sge[i], .num_sge = 1, .opcode = work->opcode};
		if (ah != NULL) {
			wr->wr.ud.ah = ah;
			wr->wr.ud.remote_qpn = ends->server.qp[0]->qp_num;
			wr->wr.ud.remote_qkey = QKEY;
		} else {
			wr->wr.rdma.remote_addr = (uintptr_t)ends->server.mem + ENDS_SLOT;
			wr->wr.rdma.rkey = ends->server.mr->rkey;
		}
	}
}

/* Posts n requests whose payload is in mbufs. */
static void
mbufs_post(struct run *run, struct ibv_qp *qp, unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		struct ibv_send_wr wr = run->wr[i];

		wr.next = NULL;
		ends_mbuf_post(qp, &wr, run->work->source == ENDS_MBUF_COPY);
	}
}

/* Posts a list of n requests from wr[first] on to the next QP. */
static void
list_post(struct run *run, unsigned first, unsigned n)
{
	unsigned qp = run->qp;
	uint64_t id = run->posted[qp];
	struct ibv_send_wr *bad;

	run->qp = (qp + 1) % run->ends.qps;
	for (unsigned i = first; i < first + n; i++) {
		run->wr[i].wr_id = ++id;
		run->wr[i].send_flags = id % SIGNAL_EVERY == 0 ? IBV_SEND_SIGNALED : 0;
		run->wr[i].next = i + 1 < first + n ? &run->wr[i + 1] : NULL;
	}
	if (run->work->source != ENDS_MEMORY)
		mbufs_post(run, run->ends.client.qp[qp], first, n);
	else
		must(ibv_post_send(run->ends.client.qp[qp], &run->wr[first], &bad) == 0,
			"ibv_post_send");
	run->posted[qp] = id;
	run->started += n;
}

/* Posts one list of 32 requests to one QP, or one request to each of 32 QPs. */
static void
pass_post(struct run *run)
{
	unsigned n = run->ends.qps == 1 ? BURST : 1;

	for (unsigned i = 0; i < BURST; i += n) {
		if (run->posted[run->qp] - run->freed[run->qp] + n > ENDS_SQ_DEPTH)
			break;
		list_post(run, i, n);
	}
}

static void
pass_poll_sends(struct run *run)
{
	struct ibv_wc wc[POLL_MAX];
	int n = ibv_poll_cq(run->ends.client.send_cq, POLL_MAX, wc);

	must(n >= 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		unsigned qp = wc[i].qp_num - run->ends.client.qp[0]->qp_num;

		must(wc[i].status == IBV_WC_SUCCESS && qp < run->ends.qps,
			"completion of a request");
		if (run->work->opcode != IBV_WR_SEND)
			run->done += wc[i].wr_id - run->freed[qp];
		run->freed[qp] = wc[i].wr_id;
	}
}

/* Polls the end's receive CQ and posts the receives again. Returns the number of
 * messages. */
static unsigned
pass_receive(struct end *end)
{
	struct ibv_recv_wr *first = NULL, **link = &first, *bad;
	struct ibv_wc wc[POLL_MAX];
	int n = ibv_poll_cq(end->recv_cq, POLL_MAX, wc);

	must(n >= 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		must(wc[i].status == IBV_WC_SUCCESS, "completion of a receive");
		*link = &end->recv_wr[ends_message_take(end, &wc[i])];
		link = &(*link)->next;
	}
	*link = NULL;
	if (first != NULL)
		must(ibv_post_srq_recv(end->srq, first, &bad) == 0, "ibv_post_srq_recv");
	return (unsigned)n;
}

static void
stream_run(struct run *run, uint64_t messages)
{
	uint64_t end = run->started + messages, done = run->done;
	unsigned idle = 0;

	while (run->done < end) {
		if (run->started < end)
			pass_post(run);
		clock_step(PASS_NS);
		ends_pass(&run->ends.client);
		ends_pass(&run->ends.server);
		run->done += pass_receive(&run->ends.server);
		pass_poll_sends(run);
		idle = run->done == done ? idle + 1 : 0;
		must(idle < IDLE_PASSES, "messages stopped arriving");
		done = run->done;
	}
}

/* Both ends post the same request, with their own address and lkey. */
static void
message_post(struct run *run, struct end *end)
{
	struct ibv_send_wr *wr = &run->wr[0], *bad;
	struct ibv_wc wc;

	run->sge[0].addr = (uintptr_t)end->mem;
	run->sge[0].lkey = end->mr->lkey;
	wr->send_flags = run->started / 2 % SIGNAL_EVERY == 0 ? IBV_SEND_SIGNALED : 0;
	must(ibv_post_send(end->qp[0], wr, &bad) == 0, "ibv_post_send");
	if (wr->send_flags != 0)
		must(ibv_poll_cq(end->send_cq, 1, &wc) >= 0, "ibv_poll_cq");
	run->started++;
}

/* Ping-pong. The receiver polls its CQ before its engine runs: a message leaves from
 * within the post, its ACK in the next pass. */
static void
pingpong_run(struct run *run, uint64_t messages)
{
	struct end *from = &run->ends.client, *to = &run->ends.server;

	for (uint64_t i = 0; i < messages; i++) {
		struct end *next = from;
		unsigned idle = 0;

		message_post(run, from);
		while (pass_receive(to) == 0) {
			clock_step(PASS_NS);
			/* The message is in the port, or in the ring to its host's daemon. */
			ends_pass(HOSTS ? from : to);
			ends_pass(HOSTS ? to : from);
			must(++idle < IDLE_PASSES, "messages stopped arriving");
		}
		from = to;
		to = next;
	}
}

/* tools/lib/cost.py passes this name to callgrind. */
void measured(struct run *run) __attribute__((noinline));

void
measured(struct run *run)
{
	(run->work->pingpong ? pingpong_run : stream_run)(run, MESSAGES);
}

static void
rate_print(struct run *run)
{
	struct timespec start, end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	(run->work->pingpong ? pingpong_run : stream_run)(run, RATE_MESSAGES);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	printf("%.1f\n", ((double)(end.tv_sec - start.tv_sec) * 1e9 +
				 (double)(end.tv_nsec - start.tv_nsec)) /
				 RATE_MESSAGES);
}

static void
key_print(void)
{
#if defined(__clang__)
	printf("clang %d.%d.%d\t", __clang_major__, __clang_minor__,
		__clang_patchlevel__);
#else
	printf("gcc %d.%d.%d\t", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
#if defined(__x86_64__)
	printf("x86_64");
#define CAN(flag)                                                                        \
	if (__builtin_cpu_supports(flag))                                                \
	printf("+" flag)
	CAN("sse4.2");
	CAN("pclmul");
	CAN("avx2");
	CAN("bmi2");
	CAN("avx512f");
#undef CAN
#elif defined(__aarch64__)
	printf("aarch64");
#else
	printf("other");
#endif
	printf("\n");
}

int
main(int argc, char **argv)
{
	static struct run run;
	bool rate = argc == 3 && strcmp(argv[1], "--rate") == 0;

	if (rate) {
		argv++;
		argc--;
	}
	if (argc == 2 && strcmp(argv[1], "--key") == 0) {
		key_print();
		return 0;
	}
	for (unsigned i = 0; argc == 2 && i < sizeof(workloads) / sizeof(workloads[0]);
		i++) {
		if (strcmp(argv[1], "--list") == 0)
			printf("%s\n", workloads[i].name);
		else if (strcmp(argv[1], workloads[i].name) == 0)
			run.work = &workloads[i];
	}
	if (argc == 2 && strcmp(argv[1], "--list") == 0)
		return 0;
	must(run.work != NULL, "unknown workload (see --list)");
	run.ends.server.mbufs = run.work->mbufs;
	ends_open(&run.ends, run.work->qps, run.work->type);
	requests_prepare(&run);
	(run.work->pingpong ? pingpong_run : stream_run)(&run, WARMUP_MESSAGES);
	if (rate) {
		rate_print(&run);
	} else {
		measured(&run);
		printf("%u\n", MESSAGES);
	}
	if (run.work->type == IBV_QPT_UD)
		must(ibv_destroy_ah(run.wr[0].wr.ud.ah) == 0, "ibv_destroy_ah");
	ends_close(&run.ends);
	return 0;
}
