/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA READ, both sides (docs/protocol.md 6 to 8; IBA 9.4.4, 9.7.5.1.9): requests,
 * responses, order of acknowledgements. Refused requests: read_refused_test.c.
 * Duplicates: read_dup_test.c. */
#include <sys/mman.h>
#include <unistd.h>

#include <rte_byteorder.h>

#include "read_fixture.h"

#define GUARD 64

/* Opcode of packet i of count. */
static uint8_t
response_opcode(uint32_t i, uint32_t count)
{
	if (count == 1)
		return OPCODE_RC_READ_RESPONSE_ONLY;
	if (i == 0)
		return OPCODE_RC_READ_RESPONSE_FIRST;
	return i + 1 == count ? OPCODE_RC_READ_RESPONSE_LAST
			      : OPCODE_RC_READ_RESPONSE_MIDDLE;
}

/* ---- Sizes ---- */

/* A READ leaves as one request per chunk, each with its RETH. Each is answered in packets
 * of the MTU that have its PSNs and the MSN after it. */
static void
size_run(uint32_t len, uint32_t chunk)
{
	uint32_t mtu = mtu_bytes(p.conf.mtu), count = RTE_MAX((len + mtu - 1) / mtu, 1u);
	uint32_t base = REMOTE, done = 0, msn = 0;

	memset(p.a.mem, UNTOUCHED, len + 2 * GUARD);
	bytes_fill(p.b.mem + base, len, len);
	host_read(&p.a, 1, GUARD, base, len);
	while (done < count) {
		uint32_t want = RTE_MIN(chunk, count - done), n;
		struct pkt_view v;

		if (p.a.wire_count == 0)
			host_pull(&p.a, PULL_ALL);
		expect_frame(&p.a, 0, OPCODE_RC_READ_REQUEST, psn_add(PSN_A, done), 1);
		v = wire_view(&p.a, 0);
		assert_int_equal(v.payload_len, 0);
		assert_int_equal(rte_be_to_cpu_64(view_reth(&v)->va),
			(uintptr_t)p.b.mem + base + (uint64_t)done * mtu);
		assert_int_equal(rte_be_to_cpu_32(view_reth(&v)->rkey), p.b.rkey);
		assert_int_equal(rte_be_to_cpu_32(view_reth(&v)->len),
			RTE_MIN(len - done * mtu, want * mtu));
		wire_deliver(&p.a, 0);
		n = host_pull(&p.b, PULL_ALL);
		assert_int_equal(n, want);
		msn++;
		for (uint32_t i = 0; i < n; i++)
			expect_response(&p.b, i, response_opcode(i, n),
				psn_add(PSN_A, done + i), msn,
				RTE_MIN(len - (done + i) * mtu, mtu));
		wire_deliver_all(&p.b);
		done += n;
	}
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_true(bytes_match(p.a.mem + GUARD, len, len));
	for (uint32_t i = 0; i < GUARD; i++) {
		assert_int_equal(p.a.mem[i], UNTOUCHED);
		assert_int_equal(p.a.mem[GUARD + len + i], UNTOUCHED);
	}
	assert_int_equal(p.a.qp.req.reads, 0);
	assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	qp_link_fini(&p);
}

TEST(read_sizes)
{
	for (int variant = 0; variant < 10; variant++) {
		enum ibv_mtu mtu = (enum ibv_mtu)(IBV_MTU_256 + variant / 2);
		uint32_t m = mtu_bytes(mtu);
		const uint32_t lens[] = {
			0, 1, 6, m - 1, m, m + 1, 2 * m, 2 * m + 1, 3 * m - 1, 3 * m + 5};

		for (unsigned i = 0; i < RTE_DIM(lens); i++) {
			struct qp_link_conf conf = qp_link_defaults_rdma();

			conf.mtu = mtu;
			conf.ipv6 = variant % 2;
			qp_link_init(&p, &conf);
			size_run(lens[i], 32);
		}
	}
}

/* A long READ leaves in chunks: one at a time if the peer answers one READ, several if it
 * answers more. Never more are outstanding than max_rd_atomic and the window allow. */
TEST(long_read_is_split)
{
	static const struct {
		uint8_t max_rd;
		uint32_t chunk, outstanding;
	} rows[] = {{1, 64, 1}, {2, 64, 2}, {3, 64, 2}, {4, 32, 4}, {16, 32, 4}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		static const uint32_t lens[] = {128 * 256, 128 * 256 + 1, 300 * 256 + 7};

		for (unsigned k = 0; k < RTE_DIM(lens); k++) {
			struct qp_link_conf conf = qp_link_defaults_rdma();

			conf.mtu = IBV_MTU_256;
			conf.mem_bytes = 1 << 18;
			conf.max_rd = conf.max_dest_rd = rows[i].max_rd;
			qp_link_init(&p, &conf);
			size_run(lens[k], rows[i].chunk);
		}
		read_init(rows[i].max_rd, rows[i].max_rd);
		for (unsigned k = 0; k < 20; k++)
			host_read(&p.a, k, 0, REMOTE, 8);
		assert_int_equal(host_pull(&p.a, PULL_ALL), rows[i].max_rd);
		qp_link_drain(&p);
		for (unsigned k = 0; k < 20; k++)
			expect_sent(&p.a, k, IBV_WC_SUCCESS);
		qp_link_fini(&p);
	}
}

/* Several SGEs at the requester, cut anywhere. */
TEST(response_is_scattered)
{
	struct sge list[4];
	struct send_req req;

	read_init(4, 4);
	memset(p.a.mem, UNTOUCHED, 0x8000);
	req = host_rdma(&p.a, &list[0], 1, IBV_WR_RDMA_READ, 0, REMOTE, 1);
	list[1] = host_sge(&p.a, 0x1000, 2047);
	list[2] = host_sge(&p.a, 0x2000, 0);
	list[3] = host_sge(&p.a, 0x3000, 952);
	req.num_sge = 4;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 1);
	assert_memory_equal(p.a.mem + 0x1000, p.b.mem + REMOTE + 1, 2047);
	assert_memory_equal(p.a.mem + 0x3000, p.b.mem + REMOTE + 2048, 952);
	assert_int_equal(p.a.mem[1], UNTOUCHED);
	assert_int_equal(p.a.mem[0x1000 + 2047], UNTOUCHED);
	assert_int_equal(p.a.mem[0x3000 + 952], UNTOUCHED);
	qp_link_fini(&p);
}

/* A READ of 0 bytes gets an empty RESPONSE_ONLY; its R_Key is not checked. */
TEST(read_of_0_bytes)
{
	read_init(4, 4);
	inject_read(PSN_A, UINT64_MAX, 0xDEADBE00, 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_response(&p.b, 0, OPCODE_RC_READ_RESPONSE_ONLY, PSN_A, 1, 0);
	wire_drop_all(&p.b);
	expect_idle(&p.b);
	qp_link_fini(&p);
}

/* ---- 2^31 bytes ---- */

#define HUGE_BYTES (UINT64_C(1) << 31)
#define HUGE_STEP (UINT64_C(1) << 21) /* the same memory is mapped repeatedly */

static uint8_t *
huge_map(void)
{
	int fd = memfd_create("huge", 0);
	uint8_t *at = mmap(NULL, HUGE_BYTES, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(fd >= 0 && at != MAP_FAILED);
	assert_int_equal(ftruncate(fd, (off_t)HUGE_STEP), 0);
	for (uint64_t i = 0; i < HUGE_BYTES; i += HUGE_STEP)
		assert_ptr_equal(mmap(at + i, HUGE_STEP, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_FIXED, fd, 0),
			at + i);
	close(fd);
	return at;
}

static uint32_t
huge_key(struct host *h, uint8_t *at)
{
	uint32_t key;

	assert_int_equal(key_alloc(&h->keys, h->qp.pd, 0, at, HUGE_BYTES,
				 IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE, &key),
		0);
	return key;
}

TEST(read_of_2_31_bytes)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	uint8_t *from = huge_map(), *to = huge_map();
	struct send_req req;
	struct sge sge;

	conf.mtu = IBV_MTU_4096;
	conf.psn[0] = 0xFFFF00;
	qp_link_init(&p, &conf);
	bytes_fill(from, HUGE_STEP, 3);
	req = host_rdma(&p.a, &sge, 1, IBV_WR_RDMA_READ, 0, 0, 1);
	sge = (struct sge){0, (uint32_t)HUGE_BYTES, huge_key(&p.a, to)};
	req.remote_va = 0;
	req.rkey = huge_key(&p.b, from);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.una_psn, psn_add(0xFFFF00, HUGE_BYTES >> 12));
	assert_true(bytes_match(to, HUGE_STEP, 3));
	assert_int_equal(key_free(&p.a.keys, sge.lkey), 0);
	assert_int_equal(key_free(&p.b.keys, req.rkey), 0);
	qp_link_fini(&p);
	munmap(from, HUGE_BYTES);
	munmap(to, HUGE_BYTES);
}

/* One request at the smallest MTU has half of all PSNs. PSNs before it are still
 * duplicates, and so are PSNs in it. */
TEST(read_request_of_2_31_bytes)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	uint8_t *from = huge_map();
	uint32_t key;

	conf.mtu = IBV_MTU_256;
	qp_link_init(&p, &conf);
	key = huge_key(&p.b, from);
	inject_read(PSN_A, 0, key, (uint32_t)HUGE_BYTES);
	assert_int_equal(p.b.qp.resp.epsn, psn_add(PSN_A, 1 << 23));
	assert_int_equal(host_pull(&p.b, 3), 3);
	expect_response(&p.b, 2, OPCODE_RC_READ_RESPONSE_MIDDLE, PSN_A + 2, 1, 256);
	wire_drop_all(&p.b);
	p.b.qp.resp.res[0].next = (1 << 23) - 2; /* as if that much had been sent */
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	expect_response(&p.b, 1, OPCODE_RC_READ_RESPONSE_LAST,
		psn_add(PSN_A, (1 << 23) - 1), 1, 256);
	wire_drop_all(&p.b);
	inject_read(psn_add(PSN_A, (1 << 23) - 2), HUGE_BYTES - 512, key, 512);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	expect_response(&p.b, 0, OPCODE_RC_READ_RESPONSE_FIRST,
		psn_add(PSN_A, (1 << 23) - 2), 1, 256);
	wire_drop_all(&p.b);
	/* A SEND behind it, then its duplicate. */
	for (int i = 0; i < 2; i++) {
		host_recv(&p.b, 1, 0, 8);
		inject_request(&p.b, OPCODE_RC_SEND_ONLY, psn_add(PSN_A, 1 << 23), 8);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
		expect_ack(&p.b, 0, AETH_ACK, psn_add(PSN_A, 1 << 23), 2);
		wire_drop_all(&p.b);
	}
	expect_received(&p.b, 1, 8);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	qp_link_fini_discard(&p);
	munmap(from, HUGE_BYTES);
}

/* ---- Order ---- */

/* Responses leave in PSN order (docs/protocol.md 8.5): an ACK behind an unfinished READ
 * waits for its response, and the READ response replaces an ACK before it. One packet per
 * call. */
TEST(ack_waits_for_read)
{
	read_init(4, 4);
	host_recv(&p.b, 0, 0, 8);
	host_recv(&p.b, 1, 0, 8);
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A, 8);
	inject_read(PSN_A + 1, read_va(0), p.b.rkey, 3000);
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A + 4, 8);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(host_pull(&p.b, 1), 1);
	assert_int_equal(host_pull(&p.b, 1), 0);
	for (unsigned i = 0; i < 3; i++)
		expect_response(&p.b, i, response_opcode(i, 3), PSN_A + 1 + i, 2,
			i == 2 ? 952 : 1024);
	expect_ack(&p.b, 3, AETH_ACK, PSN_A + 4, 3);
	wire_drop_all(&p.b);
	expect_received(&p.b, 0, 8);
	expect_received(&p.b, 1, 8);
	qp_link_fini(&p);
}

/* A NAK for a gap behind a READ also waits for the READ response, and names ePSN. */
TEST(nak_waits_for_read)
{
	read_init(4, 4);
	inject_read(PSN_A, read_va(0), p.b.rkey, 3000);
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A + 4, 8);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	expect_frame(&p.b, 2, LAST, PSN_A + 2, 0);
	expect_ack(&p.b, 3, AETH_NAK_SEQ, PSN_A + 3, 1);
	wire_drop_all(&p.b);
	/* The next READ fills the gap. Its response replaces the ACK. */
	inject_read(PSN_A + 3, read_va(0), p.b.rkey, 8);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_response(&p.b, 0, ONLY, PSN_A + 3, 2, 8);
	wire_drop_all(&p.b);
	qp_link_fini(&p);
}

/* A READ response acknowledges the requests before it, unsignaled ones, too. The SENDs
 * behind it are completed by their ACK. */
TEST(read_response_acknowledges_earlier_requests)
{
	read_init(4, 4);
	for (unsigned i = 0; i < 3; i++)
		host_recv(&p.b, i, 0x1000, 8);
	host_send(&p.a, 0, 0, 8, IBV_SEND_SIGNALED);
	host_send(&p.a, 1, 0, 8, 0);
	host_read(&p.a, 2, 0x2000, REMOTE, 8);
	host_send(&p.a, 3, 0, 8, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	wire_deliver(&p.b, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	expect_idle(&p.a);
	wire_deliver(&p.b, 0);
	expect_sent(&p.a, 3, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 3; i++)
		expect_received(&p.b, i, 8);
	qp_link_fini(&p);
}

/* A later completion proves that the data of an earlier READ is in memory. */
TEST(later_completion_covers_read)
{
	struct send_req req;
	struct sge sge;

	read_init(4, 4);
	host_recv(&p.b, 0, 0x1000, 8);
	memset(p.a.mem, UNTOUCHED, 8192);
	req = host_rdma(&p.a, &sge, 1, IBV_WR_RDMA_READ, 0, REMOTE, 3000);
	req.flags = 0;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	host_send(&p.a, 2, 0x6000, 8, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	assert_int_equal(p.b.wire_count, 4);
	for (unsigned i = 0; i < 3; i++) {
		wire_deliver(&p.b, 0);
		expect_idle(&p.a);
	}
	wire_deliver(&p.b, 0);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 3000);
	assert_int_equal(p.a.mem[3000], UNTOUCHED);
	expect_received(&p.b, 0, 8);
	qp_link_fini(&p);
}

/* A fence waits for all READs and atomics before it (docs/protocol.md 7.2), also when
 * they are resent. */
TEST(fence_waits_for_reads)
{
	read_init(4, 4);
	host_recv(&p.b, 0, 0x1000, 8);
	host_read(&p.a, 1, 0x2000, REMOTE, 3000);
	host_atomic(&p.a, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, 0x3000, REMOTE, 0, 0);
	/* without a fence: overtakes the READ */
	host_write(&p.a, 3, 0, REMOTE + 0x4000, 8);
	host_send(&p.a, 4, 0, 8, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	/* behind the fenced request: waits, too */
	host_write(&p.a, 5, 0, REMOTE + 0x4000, 8);
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
		if (round == 0) {
			wire_drop_all(&p.a);
			qp_link_advance(&p, 68 * NS_PER_MS);
		}
	}
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 5);
	for (unsigned i = 0; i < 3; i++) {
		wire_deliver(&p.b, 0);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	}
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	wire_deliver(&p.b, 0); /* the atomic */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A + 5, -1);
	qp_link_drain(&p);
	for (unsigned i = 2; i < 6; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	expect_received(&p.b, 0, 8);
	qp_link_fini(&p);
}

/* READ responses and requests share the budget: a flood of READs starves no requests. */
TEST(reads_do_not_starve_requests)
{
	read_init(4, 4);
	for (unsigned i = 0; i < 4; i++)
		inject_read(PSN_A + 32 * i, read_va(0), p.b.rkey, 0x8000);
	host_write(&p.b, 1, 0, REMOTE, 0x4000);
	assert_int_equal(host_pull(&p.b, 8), 8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(op_is_response(wire_view(&p.b, i).op), i < 4);
	qp_link_fini_discard(&p);
}
