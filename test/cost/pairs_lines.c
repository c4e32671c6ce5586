/* SPDX-License-Identifier: BSD-3-Clause */
/* Two pairs of engines (app/perf/pairs.h) over a loop, each with a thread of its own; or one thread that
 * posts and polls CQs, and one that polls the engines. The threads run in turn, so that each run is the
 * same. line_trace.h records what each of them writes.
 *
 *     pairs_lines nothing    shared nothing: the private path. No cache line is written by both or
 *                            written by one and read by the other
 *     pairs_lines crossed    packets arrive at the wrong engine
 *     pairs_lines srq        one SRQ
 *     pairs_lines cq         one CQ for requests, and one for receives
 *     pairs_lines posted     one thread posts SENDs, and their receives to an SRQ. Not more than
 *                            MOVES_MAX lines move for a message
 *
 * In each of them only the rows below have atomic read-modify-writes, and no more than they say. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <perf/pairs.h>

#include "clock_cost.h"
#include "line_trace.h"

#define PAIRS 2
#define TURNS_WARM 20 /* then each thread is the owner of its engines (engine_lock.h) */
#define TURNS 16      /* measured, of each pair */
#define PASSES 4      /* of a turn */
#define POSTS (PAIRS * TURNS)
#define POLLS (POSTS * PASSES * 2) /* of engines, and of CQs */
#define SENDS (POSTS * PAIR_BURST / 2)
#define PASS_NS 1000
#define MOVES_MAX 4

static struct pairs pairs;
static bool posted; /* mode "posted" */
static sem_t turn[PAIRS];

/* Where atomic read-modify-writes may be: in functions whose names begin so. */
static const struct allowed {
	const char *what;
	const char *functions[6];
	unsigned long most; /* of both parts */
	const char *mode;   /* NULL: in each */
} allowed[] = {
	/* Of the loop: a burst's buffers, once for each of its senders. */
	{"buffers of the port", {"loop_"}, 2 * POLLS, NULL},
	/* A burst's together. */
	{"takes of the SRQ",
		{"recv_ring_claim", "recv_ring_take_shared", "cons_claim", "srq_"},
		SENDS / PAIR_BURST, "srq"},
	{"lock of the SRQ's posts",
		{"verbs_post_srq_recv", "recv_ring_lock", "rte_spinlock"}, POSTS, "srq"},
	{"lock of the SRQ's posts", {"verbs_post_srq_recv"}, TURNS, "posted"},
	/* Of each engine that posts have rung. The thread that posts has none. */
	{"doorbells of posts", {"doorbells_drain", "flag_clear", "flags_clear"},
		PASSES *TURNS, "posted"},
	/* A burst's together, and each signaled request. */
	{"CQEs", {"cq_reserve", "cq_put", "cq_gather", "gathered_write", "slots_reserve"},
		2 * POSTS, "cq"},
	{"locks of CQs, SQ and RQ",
		{"verbs_poll_cq", "poll_once", "verbs_post_", "cq_lock", "recv_ring_lock",
			"rte_spinlock"},
		POLLS + 2 * POSTS, "cq"},
	{"requests that this program counts", {"pair_reap", "pair_pass"}, POSTS, "cq"},
};

static unsigned long seen[sizeof(allowed) / sizeof(allowed[0])];

static void
turns_must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "pairs_lines: failed: %s\n", what);
	exit(1);
}

/* A turn: SENDs, then WRITEs or READs. */
static void
pair_turn(struct pair *pair, unsigned number)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ};

	pair_requests_set(pair, opcodes[number % 4]);
	if (number >= TURNS_WARM)
		trace_begin(pair->index);
	for (unsigned i = 0; i < PASSES; i++)
		turns_must(pair_pass(pair, i == 0), "a pass");
	trace_end();
}

/* A turn of the thread that posts, or of that which polls the engines. */
static void
posted_turn(unsigned part, unsigned number)
{
	if (number >= TURNS_WARM)
		trace_begin(part);
	for (unsigned i = 0; i < PASSES; i++) {
		if (part == 1)
			pairs_engines_poll(&pairs, 0);
		else
			turns_must(pair_work(&pairs.pair[0], i == 0), "a post");
	}
	trace_end();
}

static void *
turns_thread(void *arg)
{
	unsigned part = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < TURNS_WARM + TURNS; i++) {
		while (sem_wait(&turn[part]) != 0)
			;
		clock_step(PASS_NS);
		if (posted)
			posted_turn(part, i);
		else
			pair_turn(&pairs.pair[part], i);
		sem_post(&turn[(part + 1) % PAIRS]);
	}
	return NULL;
}

static void
turns_open(const char *mode)
{
	/* Small, because opening them is traced, too. */
	struct rocade_port_conf port[2] = {{.size = sizeof(port[0]),
		.addresses = "192.0.2.1/24",
		.engines = PAIRS,
		.max_qp = 64,
		.rx_desc = 128}};
	struct pairs_conf conf = {.pairs = posted ? 1 : PAIRS,
		.engines = posted ? 1 : PAIRS,
		.crossed = strcmp(mode, "crossed") == 0};
	struct rocade_port *ports[2];
	const char *failed;

	port[1] = port[0];
	port[1].addresses = "192.0.2.2/24";
	if (posted || strcmp(mode, "srq") == 0)
		conf.share = SHARE_SRQ;
	else if (strcmp(mode, "cq") == 0)
		conf.share = SHARE_CQ;
	turns_must(rocade_open_loop(port, ports) == 0, rocade_error());
	pairs.sending.port = ports[0];
	pairs.receiving.port = ports[1];
	failed = pairs_open(&pairs, &conf);
	turns_must(failed == NULL, failed);
}

static bool
row_matches(const struct allowed *row, const char *function, const char *mode)
{
	if (row->mode != NULL && strcmp(row->mode, mode) != 0)
		return false;
	for (unsigned i = 0; i < 6 && row->functions[i] != NULL; i++) {
		if (strncmp(function, row->functions[i], strlen(row->functions[i])) == 0)
			return true;
	}
	return false;
}

/* Prints the atomic read-modify-writes. Returns how many have no row, and how many rows have too
 * many. */
static unsigned
rmws_check(const char *mode)
{
	static struct trace_rmw rmws[256];
	unsigned n = trace_rmws(rmws, 256), rows = sizeof(allowed) / sizeof(allowed[0]),
		 wrong = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned row = 0;

		while (row < rows && !row_matches(&allowed[row], rmws[i].function, mode))
			row++;
		if (row < rows)
			seen[row] += rmws[i].count;
		else
			printf("%lu atomic read-modify-writes in %s: it has no row\n",
				rmws[i].count, rmws[i].function);
		wrong += row == rows;
	}
	for (unsigned i = 0; i < rows; i++) {
		if (seen[i] != 0)
			printf("%s: %lu atomic read-modify-writes, at most %lu\n",
				allowed[i].what, seen[i], allowed[i].most);
		wrong += seen[i] > allowed[i].most;
	}
	return wrong;
}

/* Prints the lines that both parts access. Returns how many there are. */
static unsigned long
lines_print(const char *how, unsigned (*get)(struct trace_shared *rows, unsigned n))
{
	static struct trace_shared rows[1024];
	unsigned n = get(rows, 1024);
	unsigned long sum = 0;

	for (unsigned i = 0; i < n; i++) {
		printf("%lu lines %s: %s, %s\n", rows[i].lines, how, rows[i].function[0],
			rows[i].function[1]);
		sum += rows[i].lines;
	}
	return sum;
}

static unsigned
turns_check(const char *mode)
{
	unsigned wrong = rmws_check(mode);
	unsigned long written = lines_print("written by both", trace_shared_lines);
	unsigned long read =
		lines_print("written by one and read by the other", trace_read_lines);

	printf("%lu and %lu lines written, %lu by both; %lu written by one and read by the "
	       "other\n",
		trace_lines(0), trace_lines(1), written, read);
	if (posted) {
		printf("%lu times a line moved, for %u messages\n", trace_moves(),
			TURNS * PAIR_BURST);
		wrong += trace_moves() > MOVES_MAX * TURNS * PAIR_BURST;
	}
	if (strcmp(mode, "nothing") == 0)
		wrong += written != 0 || read != 0;
	else
		/* The trace sees what is shared. */
		wrong += written + read == 0;
	return wrong;
}

int
main(int argc, char **argv)
{
	pthread_t thread[PAIRS];
	uint64_t received = 0;
	unsigned wrong;

	turns_must(argc == 2, "one argument: nothing, crossed, srq, cq or posted");
	posted = strcmp(argv[1], "posted") == 0;
	turns_open(argv[1]);
	for (unsigned i = 0; i < PAIRS; i++)
		turns_must(sem_init(&turn[i], 0, i == 0) == 0, "sem_init");
	for (unsigned i = 0; i < PAIRS; i++)
		turns_must(pthread_create(&thread[i], NULL, turns_thread,
				   (void *)(uintptr_t)i) == 0,
			"pthread_create");
	for (unsigned i = 0; i < PAIRS; i++)
		pthread_join(thread[i], NULL);
	/* Not before: it would be an access during a turn. */
	for (unsigned i = 0; i < PAIRS; i++)
		received += pairs.pair[i].received;
	/* Crossed, an acknowledgement takes several turns. */
	turns_must(received >= SENDS / 2, "messages arrive");
	wrong = turns_check(argv[1]);
	pairs_close(&pairs);
	rocade_close_port(pairs.sending.port);
	rocade_close_port(pairs.receiving.port);
	return wrong == 0 ? 0 : 1;
}
