/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers: one that all QPs send from, the target that the peer writes or reads, and
 * receive buffers. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_malloc.h>

#include "perf_context.h"

#define RECV_MEM_MAX (UINT64_C(64) << 20)
#define TARGET_MEM_MAX (UINT64_C(64) << 20)
#define GRH_ROOM 64 /* bytes; the GRH has 40 */
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static bool
plan_receives(const struct plan *plan)
{
	return plan->mode == MODE_SEND || plan->mode == MODE_PINGPONG;
}

/* Both ends compute the same sizes, as they have the same plan. */
static void
sizes_choose(struct perf_context *ctx)
{
	struct perf_buffers *b = &ctx->buffers;
	struct plan *plan = &ctx->plan;
	uint64_t queues = plan->rq ? plan->qps : 1;
	uint64_t fit;

	b->stride = (plan->size + 63) & ~UINT64_C(63);
	if (b->stride == 0)
		b->stride = 64;
	b->recv_stride = b->stride + (plan->ud ? GRH_ROOM : 0);
	b->slots = TARGET_MEM_MAX / b->stride;
	if (b->slots > plan->qps)
		b->slots = plan->qps;
	if (b->slots == 0)
		b->slots = 1;
	if (plan->depth == 0) {
		fit = RECV_MEM_MAX / b->recv_stride / queues;
		plan->depth = fit == 0 ? 1 : fit < 1024 ? fit : 1024;
	}
	b->n_recv = plan_receives(plan) ? plan->depth * queues : 0;
}

static void
receives_prepare(struct perf_context *ctx)
{
	struct perf_buffers *b = &ctx->buffers;

	for (uint64_t i = 0; i < b->n_recv; i++) {
		b->recv_sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)(b->recv + i * b->recv_stride),
			.length = (uint32_t)b->recv_stride,
			.lkey = b->mr->lkey};
		b->recv_wr[i] = (struct ibv_recv_wr){
			.wr_id = i, .sg_list = &b->recv_sge[i], .num_sge = 1};
	}
}

uint64_t
perf_memory_in_use(void)
{
	struct rte_malloc_socket_stats stats;
	struct mallinfo2 heap = mallinfo2();
	uint64_t bytes = heap.uordblks + heap.hblkhd;

	for (int socket = 0; rte_malloc_get_socket_stats(socket, &stats) == 0; socket++)
		bytes += stats.heap_allocsz_bytes;
	return bytes;
}

int
perf_alloc_buffers(struct perf_context *ctx)
{
	struct perf_buffers *b = &ctx->buffers;

	sizes_choose(ctx);
	b->mem_len = b->stride * (1 + b->slots) + b->recv_stride * b->n_recv;
	b->mem = mmap(NULL, b->mem_len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->mem == MAP_FAILED) {
		b->mem = NULL;
		return perf_set_error(
			ctx, "cannot allocate buffers: %s", strerror(errno));
	}
	/* a hint: failure does not matter */
	madvise(b->mem, b->mem_len, MADV_HUGEPAGE);
	memset(b->mem, 0, b->mem_len); /* avoids page faults later */
	b->mr = ibv_reg_mr(ctx->verbs.pd, b->mem, b->mem_len, ACCESS);
	b->recv_wr = calloc(b->n_recv + 1, sizeof(*b->recv_wr));
	b->recv_sge = calloc(b->n_recv + 1, sizeof(*b->recv_sge));
	if (b->mr == NULL || b->recv_wr == NULL || b->recv_sge == NULL)
		return perf_set_error(ctx, "cannot register memory: %s", strerror(errno));
	b->source = b->mem;
	b->target = b->source + b->stride;
	b->recv = b->target + b->slots * b->stride;
	receives_prepare(ctx);
	return 0;
}
