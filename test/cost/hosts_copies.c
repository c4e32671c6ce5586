/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many bytes are copied for a byte of payload between clients of two daemons, and by which of the four
 * parts: messages of 1 MiB over ends_hosts.c, with the functions that copy payload wrapped.
 *
 *     hosts_copies write|read
 *
 * Fails unless each part makes as many copies as its row says: one that makes fewer is to be written down,
 * too.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "clock_cost.h"
#include "ends.h"
#include "wire/icrc_copy.h"

#define MESSAGE (1u << 20)
#define MESSAGES 8
#define PASS_NS 1000
#define PASSES 100000   /* after which a message must be lost */
#define PAYLOAD_MIN 256 /* what is shorter is a header or a descriptor */
#define TOLERANCE                                                                        \
	0.05 /* a packet's headers are copied with the first bytes behind them */
#define TARGET                                                                           \
	ENDS_SLOT /* offset of the memory that a WRITE goes to, or a READ comes from */

enum part { OTHER, CLIENT, CLIENT_DAEMON, SERVER_DAEMON, SERVER, PARTS };

static const struct {
	const char *name;
	double copies; /* of each byte of payload */
} rows[PARTS] = {
	[OTHER] = {"anything else", 0},
	[CLIENT] = {"the requester", 1},
	[CLIENT_DAEMON] = {"its daemon", 1},
	[SERVER_DAEMON] = {"the other daemon", 1},
	[SERVER] = {"the responder", 1},
};

static struct {
	enum part part;
	bool counts; /* messages are on their way */
	bool inside; /* a copy that is counted already */
	uint64_t bytes[PARTS];
} trace;

void *__wrap_memcpy(void *to, const void *from, size_t len);
void *__real_memcpy(void *to, const void *from, size_t len);
void *__wrap_memmove(void *to, const void *from, size_t len);
void *__real_memmove(void *to, const void *from, size_t len);
uint32_t __wrap_icrc_copy(struct icrc_sum before, size_t before_len, uint8_t *dst,
	const uint8_t *src, size_t len);
uint32_t __real_icrc_copy(struct icrc_sum before, size_t before_len, uint8_t *dst,
	const uint8_t *src, size_t len);
struct icrc_sum __wrap_icrc_sum_copy(
	struct icrc_sum sum, uint8_t *dst, const uint8_t *src, size_t len);
struct icrc_sum __real_icrc_sum_copy(
	struct icrc_sum sum, uint8_t *dst, const uint8_t *src, size_t len);

static void
count(size_t len)
{
	if (trace.counts && !trace.inside && len >= PAYLOAD_MIN)
		trace.bytes[trace.part] += len;
}

void *
__wrap_memcpy(void *to, const void *from, size_t len)
{
	count(len);
	return __real_memcpy(to, from, len);
}

void *
__wrap_memmove(void *to, const void *from, size_t len)
{
	count(len);
	return __real_memmove(to, from, len);
}

uint32_t
__wrap_icrc_copy(struct icrc_sum before, size_t before_len, uint8_t *dst,
	const uint8_t *src, size_t len)
{
	uint32_t crc;

	count(len);
	trace.inside = true;
	crc = __real_icrc_copy(before, before_len, dst, src, len);
	trace.inside = false;
	return crc;
}

struct icrc_sum
__wrap_icrc_sum_copy(struct icrc_sum sum, uint8_t *dst, const uint8_t *src, size_t len)
{
	count(len);
	trace.inside = true;
	sum = __real_icrc_sum_copy(sum, dst, src, len);
	trace.inside = false;
	return sum;
}

/* Polls, which runs the engine of the client. Returns the number of completions. */
static int
end_poll(struct ibv_cq *cq, enum part part)
{
	struct ibv_wc wc;
	int n;

	trace.part = part;
	n = ibv_poll_cq(cq, 1, &wc);
	must(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS), "completion");
	trace.part = OTHER;
	return n;
}

static void
daemon_pass(struct end *end, enum part part)
{
	trace.part = part;
	ends_pass(end);
	trace.part = OTHER;
}

static void
message_move(struct ends *ends, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {.addr = (uintptr_t)ends->client.mem,
		.length = MESSAGE,
		.lkey = ends->client.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)ends->server.mem + TARGET,
			.rkey = ends->server.mr->rkey}};
	struct ibv_send_wr *bad;
	unsigned passes = 0;

	trace.part = CLIENT;
	must(ibv_post_send(ends->client.qp[0], &wr, &bad) == 0, "ibv_post_send");
	while (end_poll(ends->client.send_cq, CLIENT) == 0) {
		clock_step(PASS_NS);
		daemon_pass(&ends->client, CLIENT_DAEMON);
		daemon_pass(&ends->server, SERVER_DAEMON);
		must(end_poll(ends->server.recv_cq, SERVER) == 0, "no receive");
		must(++passes < PASSES, "the message arrives");
	}
}

/* Moves messages of other bytes each, and sees that these arrive. */
static void
messages_move(struct ends *ends, bool read)
{
	uint8_t *from = read ? ends->server.mem + TARGET : ends->client.mem;
	uint8_t *to = read ? ends->client.mem : ends->server.mem + TARGET;

	for (unsigned n = 0; n < MESSAGES; n++) {
		for (uint32_t i = 0; i < MESSAGE; i++)
			from[i] = (uint8_t)(i * 7 + i / 4096 + n);
		trace.counts = true;
		message_move(ends, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
		trace.counts = false;
		must(memcmp(from, to, MESSAGE) == 0, "the payload arrives");
	}
}

static bool
counts_judge(void)
{
	double sum = 0;
	bool good = true;

	for (unsigned part = 0; part < PARTS; part++) {
		double copies = (double)trace.bytes[part] / MESSAGE / MESSAGES;
		bool as_told = fabs(copies - rows[part].copies) < TOLERANCE;

		printf("%-20s %.3f bytes copied a byte of payload%s\n", rows[part].name,
			copies,
			as_told ? "" : ": its row of hosts_copies.c says otherwise");
		sum += copies;
		good &= as_told;
	}
	printf("%-20s %.3f\n", "together", sum);
	return good;
}

int
main(int argc, char **argv)
{
	static struct ends ends;
	bool good;

	must(argc == 2 && (strcmp(argv[1], "write") == 0 || strcmp(argv[1], "read") == 0),
		"one argument, write or read");
	ends_open(&ends, 1, IBV_QPT_RC);
	message_move(&ends, IBV_WR_RDMA_WRITE); /* the hosts find each other */
	messages_move(&ends, strcmp(argv[1], "read") == 0);
	good = counts_judge();
	ends_close(&ends);
	return good ? 0 : 1;
}
