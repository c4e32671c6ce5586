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
	struct plan *plan = &ctx->plan;
	uint64_t queues = plan->rq ? plan->qps : 1;
	uint64_t fit;

	ctx->buffers.stride = (plan->size + 63) & ~UINT64_C(63);
	if (ctx->buffers.stride == 0)
		ctx->buffers.stride = 64;
	ctx->buffers.recv_stride = ctx->buffers.stride + (plan->ud ? GRH_ROOM : 0);
	ctx->buffers.slots = TARGET_MEM_MAX / ctx->buffers.stride;
	if (ctx->buffers.slots > plan->qps)
		ctx->buffers.slots = plan->qps;
	if (ctx->buffers.slots == 0)
		ctx->buffers.slots = 1;
	if (plan->depth == 0) {
		fit = RECV_MEM_MAX / ctx->buffers.recv_stride / queues;
		plan->depth = fit == 0 ? 1 : fit < 1024 ? fit : 1024;
	}
	ctx->buffers.n_recv = plan_receives(plan) ? plan->depth * queues : 0;
}

static void
receives_prepare(struct perf_context *ctx)
{
	for (uint64_t i = 0; i < ctx->buffers.n_recv; i++) {
		ctx->buffers.recv_sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)(ctx->buffers.recv +
					    i * ctx->buffers.recv_stride),
			.length = (uint32_t)ctx->buffers.recv_stride,
			.lkey = ctx->buffers.mr->lkey};
		ctx->buffers.recv_wr[i] = (struct ibv_recv_wr){
			.wr_id = i, .sg_list = &ctx->buffers.recv_sge[i], .num_sge = 1};
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
	sizes_choose(ctx);
	ctx->buffers.mem_len = ctx->buffers.stride * (1 + ctx->buffers.slots) +
			       ctx->buffers.recv_stride * ctx->buffers.n_recv;
	ctx->buffers.mem = mmap(NULL, ctx->buffers.mem_len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ctx->buffers.mem == MAP_FAILED) {
		ctx->buffers.mem = NULL;
		return perf_set_error(
			ctx, "cannot allocate buffers: %s", strerror(errno));
	}
	/* a hint: failure does not matter */
	madvise(ctx->buffers.mem, ctx->buffers.mem_len, MADV_HUGEPAGE);
	memset(ctx->buffers.mem, 0, ctx->buffers.mem_len); /* avoids page faults later */
	ctx->buffers.mr =
		ibv_reg_mr(ctx->verbs.pd, ctx->buffers.mem, ctx->buffers.mem_len, ACCESS);
	ctx->buffers.recv_wr =
		calloc(ctx->buffers.n_recv + 1, sizeof(*ctx->buffers.recv_wr));
	ctx->buffers.recv_sge =
		calloc(ctx->buffers.n_recv + 1, sizeof(*ctx->buffers.recv_sge));
	if (ctx->buffers.mr == NULL || ctx->buffers.recv_wr == NULL ||
		ctx->buffers.recv_sge == NULL)
		return perf_set_error(ctx, "cannot register memory: %s", strerror(errno));
	ctx->buffers.source = ctx->buffers.mem;
	ctx->buffers.target = ctx->buffers.source + ctx->buffers.stride;
	ctx->buffers.recv =
		ctx->buffers.target + ctx->buffers.slots * ctx->buffers.stride;
	receives_prepare(ctx);
	return 0;
}
