/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests of the two hosts, and the expected completions and events. */
#include <errno.h>
#include <string.h>

#include "qp_link.h"

int
host_post_send(struct host *h, const struct send_req *req)
{
	struct send_req full = *req;

	full.flags |= h->qp.sq.always;
	if (qp_link_is_xrc(h->link) && full.srqn == 0)
		full.srqn = h->other->srq.srqn;
	return sq_post(&h->qp.sq, &full);
}

struct sge
host_sge(const struct host *h, uint32_t offset, uint32_t len)
{
	return (struct sge){
		.addr = (uintptr_t)h->mem + offset, .len = len, .lkey = h->lkey};
}

void
host_send(struct host *h, uint64_t wr_id, uint32_t offset, uint32_t len, unsigned flags)
{
	struct sge sge = host_sge(h, offset, len);
	struct send_req req = {
		.wr_id = wr_id, .flags = flags, .sge = &sge, .num_sge = len != 0};

	assert_int_equal(host_post_send(h, &req), 0);
}

uint32_t
host_key(struct host *h, uint32_t offset, uint32_t len, unsigned access)
{
	uint32_t key;

	assert_int_equal(key_alloc(&h->keys, h->qp.pd, (uintptr_t)h->mem + offset,
				 h->mem + offset, len, access, &key),
		0);
	return key;
}

struct mw *
host_mw(struct host *h, bool type2)
{
	struct mw *w;

	assert_int_equal(mw_create(&h->keys, h->qp.pd, type2, &w), 0);
	return w;
}

void
host_bind(struct host *h, uint64_t wr_id, unsigned flags, uint32_t rkey, uint32_t region,
	uint32_t offset, uint32_t len, unsigned access)
{
	struct send_req req = {
		.wr_id = wr_id,
		.opcode = IBV_WR_BIND_MW,
		.flags = flags,
		.remote_va = (uintptr_t)h->mem + offset,
		.rkey = rkey,
		.bind_len = len,
		.bind_parent = region,
		.bind_access = access,
	};

	assert_int_equal(host_post_send(h, &req), 0);
}

void
host_local_inv(struct host *h, uint64_t wr_id, unsigned flags, uint32_t rkey)
{
	struct send_req req = {
		.wr_id = wr_id, .opcode = IBV_WR_LOCAL_INV, .flags = flags, .rkey = rkey};

	assert_int_equal(host_post_send(h, &req), 0);
}

struct send_req
host_rdma(struct host *h, struct sge *sge, uint64_t wr_id, enum ibv_wr_opcode opcode,
	uint32_t offset, uint32_t remote, uint32_t len)
{
	*sge = host_sge(h, offset, len);
	return (struct send_req){
		.wr_id = wr_id,
		.opcode = opcode,
		.flags = IBV_SEND_SIGNALED,
		.sge = sge,
		.num_sge = len != 0,
		.remote_va = (uintptr_t)h->other->mem + remote,
		.rkey = h->other->rkey,
	};
}

void
host_write(struct host *h, uint64_t wr_id, uint32_t offset, uint32_t remote, uint32_t len)
{
	struct sge sge;
	struct send_req req =
		host_rdma(h, &sge, wr_id, WR_RDMA_WRITE, offset, remote, len);

	assert_int_equal(host_post_send(h, &req), 0);
}

void
host_read(struct host *h, uint64_t wr_id, uint32_t offset, uint32_t remote, uint32_t len)
{
	struct sge sge;
	struct send_req req =
		host_rdma(h, &sge, wr_id, IBV_WR_RDMA_READ, offset, remote, len);

	assert_int_equal(host_post_send(h, &req), 0);
}

void
host_atomic(struct host *h, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t offset,
	uint32_t remote, uint64_t operand, uint64_t compare)
{
	struct sge sge;
	struct send_req req = host_rdma(h, &sge, wr_id, opcode, offset, remote, 8);
	bool add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

	/* ibv_post_send(3): compare_add is what to add or what to compare with. */
	req.compare_add = add ? operand : compare;
	req.swap = add ? 0 : operand;
	assert_int_equal(host_post_send(h, &req), 0);
}

int
host_post_recv(struct host *h, uint64_t wr_id, const struct sge *sge, unsigned num_sge)
{
	return ring_post(host_has_srq(h) ? &h->srq.ring : h->qp.rq, wr_id, sge, num_sge);
}

void
host_recv(struct host *h, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct sge sge = host_sge(h, offset, len);

	sge.lkey = h->recv_key;
	assert_int_equal(host_post_recv(h, wr_id, &sge, len != 0), 0);
}

bool
host_poll(struct host *h, struct cq *cq, struct cqe *out)
{
	return cq_take(cq, &h->qp.sq, out);
}

/* ---- Expectations ---- */

#define EQUAL(a, b) _assert_int_equal((uintmax_t)(a), (uintmax_t)(b), file, line)

void
expect_cqe_at(struct host *h, struct cq *cq, uint64_t wr_id, enum ibv_wc_status status,
	uint32_t vendor_or_len, const char *file, int line)
{
	struct cqe cqe;

	if (!host_poll(h, cq, &cqe)) {
		print_error("no completion, wanted %#lx\n", (unsigned long)wr_id);
		_fail(file, line);
	}
	EQUAL(cqe.wr_id, wr_id);
	EQUAL(cqe.status, status);
	EQUAL(cqe.qpn, h->qp.qpn);
	if (vendor_or_len != ANY)
		EQUAL(cqe.byte_len, vendor_or_len);
	EQUAL(cqe.opcode >= IBV_WC_RECV, cq == &h->recv_cq);
}

void
expect_idle_at(struct host *h, const char *file, int line)
{
	struct event_record event;
	struct cqe cqe;

	if (host_poll(h, &h->send_cq, &cqe) || host_poll(h, &h->recv_cq, &cqe)) {
		print_error("completion of %#lx, status %u\n", (unsigned long)cqe.wr_id,
			cqe.status);
		_fail(file, line);
	}
	if (event_next(&h->events, &event) == 0) {
		print_error("event %d\n", (int)event.type);
		_fail(file, line);
	}
}

void
expect_event_at(struct host *h, enum ibv_event_type type, const char *file, int line)
{
	struct event_record event;

	EQUAL(event_next(&h->events, &event), 0);
	EQUAL(event.type, type);
	EQUAL((uintptr_t)event.object, (uintptr_t)h);
}
