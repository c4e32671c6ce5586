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
receives(const struct plan *plan)
{
	return plan->mode == MODE_SEND || plan->mode == MODE_PINGPONG;
}

/* Both ends compute the same sizes, as they have the same plan. */
static void
sizes_choose(struct bed *bed)
{
	struct plan *plan = &bed->plan;
	uint64_t queues = plan->rq ? plan->qps : 1;
	uint64_t fit;

	bed->stride = (plan->size + 63) & ~UINT64_C(63);
	if (bed->stride == 0)
		bed->stride = 64;
	bed->recv_stride = bed->stride + (plan->ud ? GRH_ROOM : 0);
	bed->slots = TARGET_MEM_MAX / bed->stride;
	if (bed->slots > plan->qps)
		bed->slots = plan->qps;
	if (bed->slots == 0)
		bed->slots = 1;
	if (plan->depth == 0) {
		fit = RECV_MEM_MAX / bed->recv_stride / queues;
		plan->depth = fit == 0 ? 1 : fit < 1024 ? fit : 1024;
	}
	bed->n_recv = receives(plan) ? plan->depth * queues : 0;
}

static void
receives_prepare(struct bed *bed)
{
	for (uint64_t i = 0; i < bed->n_recv; i++) {
		bed->recv_sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)(bed->recv + i * bed->recv_stride),
			.length = (uint32_t)bed->recv_stride,
			.lkey = bed->mr->lkey};
		bed->recv_wr[i] = (struct ibv_recv_wr){
			.wr_id = i, .sg_list = &bed->recv_sge[i], .num_sge = 1};
	}
}

uint64_t
memory_in_use(void)
{
	struct rte_malloc_socket_stats stats;
	struct mallinfo2 heap = mallinfo2();
	uint64_t bytes = heap.uordblks + heap.hblkhd;

	for (int socket = 0; rte_malloc_get_socket_stats(socket, &stats) == 0; socket++)
		bytes += stats.heap_allocsz_bytes;
	return bytes;
}

int
bed_memory(struct bed *bed)
{
	sizes_choose(bed);
	bed->mem_len = bed->stride * (1 + bed->slots) + bed->recv_stride * bed->n_recv;
	bed->mem = mmap(NULL, bed->mem_len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bed->mem == MAP_FAILED) {
		bed->mem = NULL;
		bed_blame(bed, "cannot allocate buffers: %s", strerror(errno));
		return -1;
	}
	/* a hint: failure does not matter */
	madvise(bed->mem, bed->mem_len, MADV_HUGEPAGE);
	memset(bed->mem, 0, bed->mem_len); /* avoids page faults later */
	bed->mr = ibv_reg_mr(bed->pd, bed->mem, bed->mem_len, ACCESS);
	bed->recv_wr = calloc(bed->n_recv + 1, sizeof(*bed->recv_wr));
	bed->recv_sge = calloc(bed->n_recv + 1, sizeof(*bed->recv_sge));
	if (bed->mr == NULL || bed->recv_wr == NULL || bed->recv_sge == NULL) {
		bed_blame(bed, "cannot register memory: %s", strerror(errno));
		return -1;
	}
	bed->source = bed->mem;
	bed->target = bed->source + bed->stride;
	bed->recv = bed->target + bed->slots * bed->stride;
	receives_prepare(bed);
	return 0;
}
