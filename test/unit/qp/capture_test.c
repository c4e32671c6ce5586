/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Against the Linux kernel's driver (test/captures): its requests are played to our
 * responder, and what we answer is compared field by field with what it answered; our
 * requester sends what its application sent, and the frames are compared. Where the
 * kernel differs from the IBA the row says which of section 19's differences it is.
 */
#include <stdio.h>
#include <string.h>

#include "pcap.h"
#include "qp_pair.h"

#define NONE 0xFF

/* An answer of the kernel that we give otherwise. */
struct difference {
	uint8_t answer;   /* from 1 */
	uint8_t syndrome; /* ours instead; NONE: we say nothing */
	uint8_t psn_low;  /* of ours */
	const char *topic;
	uint8_t opcode; /* 0: the same; ours instead, with the same PSN and payload */
	bool extra;     /* ours alone, in front of that answer */
};

struct replay {
	const char *name;
	enum ibv_mtu mtu;
	uint8_t rnr_timer;
	bool srq;
	bool bad_key;      /* of the first receive */
	uint8_t end;       /* stop before this frame; 0: all */
	uint8_t recvs;     /* posted before the first frame */
	uint8_t recv_at;   /* one more is posted before this frame */
	uint8_t lost[5];   /* request frames that the wire took or that are no SEND */
	uint8_t twice[3];  /* that it doubled */
	uint8_t corrupt;   /* that it changed */
	uint16_t recv_len; /* 0: 8192 */
	uint8_t messages;  /* received with the captures' pattern */
	struct difference differences[5];
	/* WRITE, READ and atomics. */
	uint32_t rkey;      /* of the target area; 0: none */
	uint32_t rkey_ro;   /* of the same for READs only */
	uint8_t access;     /* of the QP; 0: all */
	uint8_t depth;      /* 0: 4; NONE: 0 */
	uint32_t set_at[2]; /* words of the target area, */
	uint64_t set_to[2]; /* those that are not 0 */
};

static const struct replay replays[] = {
	{.name = "01-rc-send-only", .recvs = 12, .messages = 10},
	{.name = "02-rc-send-multi", .recvs = 6, .messages = 5},
	{.name = "03-rc-send-imm", .recvs = 6, .messages = 5},
	{.name = "10-rc-mtu256", .mtu = IBV_MTU_256, .end = 6, .recvs = 4, .messages = 1},
	{.name = "11-rc-mtu512", .mtu = IBV_MTU_512, .end = 5, .recvs = 4, .messages = 1},
	{.name = "14-rc-srq", .srq = true, .end = 8, .recvs = 6, .messages = 3},
	{.name = "15-rc-solicited", .end = 8, .recvs = 4, .messages = 3},
	{.name = "18-rc-mtu2048",
		.mtu = IBV_MTU_2048,
		.end = 5,
		.recvs = 4,
		.messages = 1},
	{.name = "19-rc-mtu4096",
		.mtu = IBV_MTU_4096,
		.end = 4,
		.recvs = 4,
		.messages = 1},
	{.name = "26-rc-ipv6-linklocal", .end = 6, .recvs = 4, .messages = 2},
	{.name = "28-rc-dscp-ecn", .end = 4, .recvs = 4, .messages = 1},
	{.name = "30-rc-rnr", .rnr_timer = 24, .recv_at = 7, .messages = 1},
	{.name = "31-rc-rnr-retry-exceeded",
		.rnr_timer = 20,
		.differences = {{2, NONE, 0, "after RNR NAK", 0, 0},
			{4, NONE, 0, "after RNR NAK", 0, 0},
			{6, NONE, 0, "after RNR NAK", 0, 0}}},
	{.name = "34-rc-srq-empty-rnr",
		.rnr_timer = 22,
		.srq = true,
		.recv_at = 5,
		.messages = 1},
	{.name = "42-rc-nak-send-too-long",
		.recvs = 2,
		.recv_len = 100,
		.differences = {{1, AETH_NAK_INV_REQ, 0,
			"SEND longer than the receive WQE", 0, 0}}},
	{.name = "44-rc-nak-recv-lkey", .recvs = 2, .bad_key = true},
	{.name = "50-rc-drop-middle", .recvs = 4, .lost = {3}, .messages = 2},
	{.name = "52-rc-drop-last-timeout", .recvs = 4, .lost = {3}, .messages = 1},
	{.name = "53-rc-drop-ack", .recvs = 4, .messages = 1},
	{.name = "56-rc-drop-nak", .recvs = 4, .lost = {2}, .messages = 1},
	{.name = "64-rc-wire-dup",
		.recvs = 4,
		.twice = {2, 3, 7},
		.messages = 1,
		.rkey = 0x7ef0},
	{.name = "66-rc-corrupt", .recvs = 4, .corrupt = 4, .messages = 1},
	/* FLUSH and ATOMIC WRITE, which that kernel does not know, are left out. */
	{.name = "c0-silent-drops", .recvs = 6, .lost = {13, 14}},
	{.name = "c1-accepted-oddities", .recvs = 8},
	{.name = "c2-opseq-00", .recvs = 2},
	{.name = "c2-opseq-01", .recvs = 2},
	{.name = "c2-opseq-02", .recvs = 2},
	{.name = "c2-opseq-04", .recvs = 2},
	{.name = "c2-opseq-05", .recvs = 2},
	{.name = "c2-opseq-06", .recvs = 2},
	{.name = "c2-opseq-08", .recvs = 2},
#define LENGTHS "SEND packet length rules"
	{.name = "c3-length-00",
		.recvs = 2,
		.differences = {{1, AETH_NAK_INV_REQ, 0, LENGTHS, 0, 0},
			{2, NONE, 0, LENGTHS, 0, 0}, {3, NONE, 0, LENGTHS, 0, 0}}},
	{.name = "c3-length-01",
		.recvs = 2,
		.differences = {{1, AETH_NAK_INV_REQ, 0, LENGTHS, 0, 0},
			{2, NONE, 0, LENGTHS, 0, 0}, {3, NONE, 0, LENGTHS, 0, 0}}},
	{.name = "c3-length-02",
		.recvs = 2,
		.differences = {{2, AETH_NAK_INV_REQ, 1, LENGTHS, 0, 0},
			{3, NONE, 0, LENGTHS, 0, 0}, {4, NONE, 0, LENGTHS, 0, 0}}},
	{.name = "c3-length-03",
		.recvs = 2,
		.differences = {{2, AETH_NAK_INV_REQ, 1, LENGTHS, 0, 0},
			{3, NONE, 0, LENGTHS, 0, 0}}},
	{.name = "c3-length-04",
		.recvs = 2,
		.differences = {{2, AETH_NAK_INV_REQ, 1, LENGTHS, 0, 0},
			{3, NONE, 0, LENGTHS, 0, 0}}},
	{.name = "c4-psn", .recvs = 6},
	{.name = "05-rc-write", .rkey = 0xe39},
	{.name = "06-rc-write-imm", .recvs = 6, .rkey = 0x102e},
	{.name = "07-rc-read", .rkey = 0x12bb},
	{.name = "08-rc-atomic",
		.rkey = 0x1496,
		.set_at = {0, 8},
		.set_to = {0x1111222233334444, 100}},
	{.name = "35-rc-nak-access-write", .recvs = 2, .rkey = 0x441d},
	{.name = "36-rc-nak-access-read", .recvs = 1, .rkey = 0x46b8},
	{.name = "37-rc-nak-access-atomic", .recvs = 1, .rkey = 0x48a9},
	{.name = "38-rc-nak-access-perm", .recvs = 1, .rkey = 0x4a9e, .rkey_ro = 0x4bc0},
	{.name = "40-rc-nak-inv-write", .recvs = 1, .rkey = 0x4e59, .access = 4},
	{.name = "57-rc-read-drop-req",
		.recvs = 4,
		.lost = {1},
		.messages = 0,
		.rkey = 0x70ee},
	{.name = "59-rc-read-drop-middle",
		.rkey = 0x7476,
		.differences = {{.answer = 5,
			.opcode = OPCODE_RC_READ_RESPONSE_FIRST,
			.topic = "partial READ replay"}}},
	{.name = "61-rc-read-drop-only", .rkey = 0x786d},
	{.name = "62-rc-atomic-drop-ack", .rkey = 0x7a35, .set_to = {10}},
	{.name = "67-rc-dup-read-full", .rkey = 0x84a7, .set_at = {0x100}, .set_to = {1}},
	{.name = "c2-opseq-09", .recvs = 2, .rkey = 0xd928},
	{.name = "c2-opseq-10", .recvs = 2, .rkey = 0xdb81},
#define DMA_LENGTHS "WRITE_FIRST with DMALen <= PMTU, WRITE_ONLY with DMALen > PMTU"
	{.name = "c3-length-06", .recvs = 2, .rkey = 0xe90b},
	{.name = "c3-length-07", .recvs = 2, .rkey = 0xeba6},
	{.name = "c3-length-08",
		.recvs = 2,
		.rkey = 0xeda5,
		.differences = {{1, AETH_NAK_INV_REQ, 0, DMA_LENGTHS, 0, 0},
			{2, NONE, 0, DMA_LENGTHS, 0, 0}}},
	{.name = "c3-length-09", .recvs = 2, .rkey = 0xef59},
	{.name = "c3-length-10",
		.recvs = 2,
		.rkey = 0xf1c3,
		.differences = {{1, AETH_NAK_INV_REQ, 0, DMA_LENGTHS, 0, 0},
			{2, NONE, 0, DMA_LENGTHS, 0, 0}}},
	{.name = "c3-length-12", .recvs = 2, .rkey = 0xf5f5},
	{.name = "c3-length-13", .recvs = 2, .rkey = 0xf7bf},
	{.name = "c3-length-14",
		.recvs = 2,
		.rkey = 0xf972,
		.differences = {{1, AETH_NAK_INV_REQ, 0, DMA_LENGTHS, 0, 0},
			{2, NONE, 0, DMA_LENGTHS, 0, 0},
			{3, NONE, 0, DMA_LENGTHS, 0, 0}}},
	{.name = "c3-length-15",
		.recvs = 2,
		.rkey = 0xfb3f,
		.differences = {{1, AETH_NAK_INV_REQ, 0, "DMALen > 2^31", 0, 0}}},
	{.name = "c3-length-16",
		.recvs = 2,
		.rkey = 0xfdf4,
		.differences = {{1, AETH_NAK_INV_REQ, 0, "DMALen > 2^31", 0, 0}}},
	{.name = "c3-length-18", .recvs = 2, .rkey = 0x10154},
	{.name = "c3-length-19", .recvs = 2, .rkey = 0x1031c},
	{.name = "c5-dup-read-atomic",
		.recvs = 4,
		.rkey = 0x10924,
		.rkey_ro = 0x10a01,
		.depth = 2,
		.set_at = {0x4000},
		.set_to = {100},
		.differences = {{.answer = 8,
					.opcode = OPCODE_RC_READ_RESPONSE_FIRST,
					.topic = "partial READ replay"},
			{.answer = 10,
				.opcode = OPCODE_RC_READ_RESPONSE_ONLY,
				.topic = "partial READ replay"},
			{.answer = 11,
				.opcode = OPCODE_RC_READ_RESPONSE_ONLY,
				.extra = true,
				.topic = "READ duplicate of the rest"},
			{.answer = 16,
				.syndrome = AETH_ACK,
				.psn_low = 4,
				.topic = "duplicate SEND behind READs"}}},
	{.name = "c6-atomic-misaligned", .recvs = 1, .rkey = 0x10b7a},
	{.name = "c7-rd-atomic-0", .recvs = 1, .rkey = 0x10d66, .depth = NONE},
	{.name = "c8-qp-access-0", .recvs = 1, .rkey = 0x10fa6, .access = 4},
	{.name = "c8-qp-access-1", .recvs = 1, .rkey = 0x11194, .access = 2},
	{.name = "c8-qp-access-2", .recvs = 1, .rkey = 0x11374, .access = 6},
	{.name = "c9-mr-access-0", .recvs = 1, .rkey = 0x115c7, .rkey_ro = 0x1164f},
	{.name = "c9-mr-access-1", .recvs = 1, .rkey = 0x1179e, .rkey_ro = 0x118e2},
	{.name = "c9-mr-access-2", .recvs = 1, .rkey = 0x119d7, .rkey_ro = 0x11a12},
};

static struct pair p;
static struct pcap_file file;
static const char *running; /* the capture in which a test failed */

static bool
listed(const uint8_t *list, unsigned n, unsigned frame)
{
	for (unsigned i = 0; i < n; i++) {
		if (list[i] == frame)
			return true;
	}
	return false;
}

static void
load(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.pcap", CAPTURES, name);
	if (pcap_file_load(&file, path) != 0)
		fail_msg("%s: cannot be read", path);
}

/* False: not for us to parse (the capture holds wrong frames on purpose). */
static bool
frame_view(unsigned index, struct pkt_view *v)
{
	struct pkt pkt = {.data = (uint8_t *)(uintptr_t)file.frames[index].data,
		.len = (uint16_t)file.frames[index].len};

	return parse(&pkt, 0, v) == DROP_none;
}

/* A response is an ACK that comes from where the first frame of all went to. */
static bool
is_answer(const struct pkt_view *first, const struct pkt_view *v)
{
	unsigned src = v->ip_version == 4 ? 12 : 8, len = v->ip_version == 4 ? 4 : 16;

	return memcmp(v->ip + src, first->ip + src + len, len) == 0;
}

static void
gid_set(uint8_t gid[16], const struct pkt_view *v, bool src)
{
	static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

	memcpy(gid, mapped, 12);
	if (v->ip_version == 4)
		memcpy(gid + 12, v->ip + (src ? 12 : 16), 4);
	else
		memcpy(gid, v->ip + (src ? 8 : 24), 16);
}

/* ---- The target area ---- */

#define TARGET_VA 0x20080000
#define TARGET_BYTES 0x80000

static uint8_t target[TARGET_BYTES] LINE_ALIGNED;

/* An entry with the number that the capture has; key_alloc() chooses its own. */
static void
key_put(uint32_t key, unsigned access)
{
	struct key_entry *e = &p.b.keys.chunks[0][key >> 8];

	assert_true(key >> 8 < KEY_CHUNK);
	*e = (struct key_entry){.va = TARGET_VA,
		.len = access != 0 ? TARGET_BYTES : 0,
		.host = target,
		.key = access != 0 ? key : 0,
		.pd = p.b.qp.pd,
		.access = access & 0xFF};
}

static void
target_init(const struct replay *r)
{
	for (uint32_t i = 0; i < TARGET_BYTES; i++)
		target[i] = (uint8_t)(0x80 + (i ^ (i >> 8)));
	for (unsigned i = 0; i < 2; i++) {
		if (r->set_to[i] != 0)
			memcpy(target + r->set_at[i], &r->set_to[i], 8);
	}
	if (r->rkey != 0)
		key_put(r->rkey, IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE);
	if (r->rkey_ro != 0)
		key_put(r->rkey_ro, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

static void
target_fini(const struct replay *r)
{
	if (r->rkey != 0)
		key_put(r->rkey, 0);
	if (r->rkey_ro != 0)
		key_put(r->rkey_ro, 0);
}

/* h becomes the QP whose frames are in the capture: own says which side's addresses. */
static void
take_place(struct host *h, uint32_t qpn, uint32_t dest_qpn, const struct pkt_view *v,
	bool responder, uint8_t rnr_timer)
{
	struct qp_attr attr = host_attr(h);
	struct path_addr addr = {
		.udp_sport = roce_udp_sport(0, qpn, dest_qpn), .hop_limit = 64};

	h->qp.qpn = qpn;
	gid_set(attr.path.sgid, v, !responder);
	gid_set(attr.path.dgid, v, responder);
	attr.dest_qpn = dest_qpn;
	attr.min_rnr_timer = rnr_timer;
	attr.state = IBV_QPS_INIT;
	assert_int_equal(qp_modify(&h->qp, &attr, MASK_INIT, IBV_MTU_4096), 0);
	attr.state = IBV_QPS_RTR;
	assert_int_equal(qp_modify(&h->qp, &attr, MASK_RTR, IBV_MTU_4096), 0);
	memcpy(addr.src_gid, attr.path.sgid, 16);
	memcpy(addr.dst_gid, attr.path.dgid, 16);
	qp_set_headers(&h->qp, &addr);
	attr.state = IBV_QPS_RTS;
	assert_int_equal(qp_modify(&h->qp, &attr, MASK_RTS, IBV_MTU_4096), 0);
}

static void
fields_compare(const struct pkt_view *ours, const struct pkt_view *theirs)
{
	unsigned addrs = ours->ip_version == 4 ? 12 : 8;
	unsigned end = ours->ip_version == 4 ? 20 : 40;

	assert_int_equal(ours->ip_version, theirs->ip_version);
	assert_memory_equal(ours->ip + addrs, theirs->ip + addrs, end - addrs);
	assert_memory_equal(ours->ip + end, theirs->ip + end, 6); /* UDP: ports, length */
	assert_int_equal(ours->opcode, theirs->opcode);
	assert_int_equal(ours->pkey, theirs->pkey);
	assert_int_equal(ours->dest_qpn, theirs->dest_qpn);
	assert_int_equal(ours->psn, theirs->psn);
	assert_int_equal(ours->ack_req, theirs->ack_req);
	assert_int_equal(ours->solicited, theirs->solicited);
	assert_int_equal(ours->pad, theirs->pad);
	assert_int_equal(ours->payload_len, theirs->payload_len);
	assert_memory_equal(ours->payload, theirs->payload, ours->payload_len);
}

/* ---- The responder ---- */

static void
recv_post(const struct replay *r, unsigned i)
{
	struct sge sge = host_sge(&p.b, 8192 * i, r->recv_len != 0 ? r->recv_len : 8192);

	sge.lkey = r->bad_key && i == 0 ? 0xBAD00 : p.b.recv_key;
	assert_int_equal(host_post_recv(&p.b, i, &sge, 1), 0);
}

/* Of one that we give otherwise, what is the same all the same. */
static void
difference_check(const struct difference *d, const struct pkt_view *ours,
	const struct pkt_view *theirs)
{
	assert_int_equal(ours->dest_qpn, theirs->dest_qpn);
	if (d->opcode != 0) {
		assert_int_equal(ours->opcode, d->opcode);
		assert_int_equal(ours->psn, theirs->psn);
		assert_int_equal(ours->payload_len, theirs->payload_len);
		assert_memory_equal(ours->payload, theirs->payload, ours->payload_len);
		return;
	}
	assert_int_equal(ours->opcode, OPCODE_RC_ACKNOWLEDGE);
	assert_int_equal(view_aeth(ours)->syndrome, d->syndrome);
	assert_int_equal(ours->psn & 0xFF, d->psn_low);
}

static unsigned
answer_compare(const struct difference *d, const struct replay *r, unsigned number,
	const struct pkt_view *theirs)
{
	struct pkt_view ours;

	if (d->topic != NULL && d->syndrome == NONE)
		return 0;
	if (p.b.wire_count == 0)
		fail_msg("%s: no answer %u", r->name, number);
	ours = wire_view(&p.b, 0);
	if (d->topic != NULL) {
		difference_check(d, &ours, theirs);
	} else {
		fields_compare(&ours, theirs);
		assert_memory_equal(ours.ext, theirs->ext, ours.op->ext_len);
	}
	wire_drop(&p.b, 0);
	return 1;
}

/* The kernel's next answer against the frame that waits on b's wire, if there should be
 * one. */
static unsigned
answer_check(const struct replay *r, unsigned number, const struct pkt_view *theirs)
{
	const struct difference *d = r->differences;

	while (d->topic != NULL && d->answer != number)
		d++;
	if (d->topic != NULL && d->extra) {
		assert_true(p.b.wire_count != 0);
		assert_int_equal(wire_view(&p.b, 0).opcode, d->opcode);
		wire_drop(&p.b, 0);
		while (d->topic != NULL)
			d++;
		return 1 + answer_compare(d, r, number, theirs);
	}
	return answer_compare(d, r, number, theirs);
}

static void
request_take(const struct replay *r, unsigned number, const struct pcap_frame *frame)
{
	static uint8_t copy[5000];

	if (listed(r->lost, RTE_DIM(r->lost), number))
		return;
	assert_true(frame->len <= sizeof(copy));
	memcpy(copy, frame->data, frame->len);
	if (r->corrupt == number)
		copy[frame->len - 40] ^= 1;
	for (unsigned i = 0; i < 1u + listed(r->twice, RTE_DIM(r->twice), number); i++) {
		host_take(&p.b, copy, frame->len);
		host_pull(&p.b, PULL_ALL); /* an answer each: nothing is coalesced */
	}
}

/* Payload byte i of operation k: (i + 16 k) ^ ((i + 16 k) >> 8). */
static void
messages_check(const struct replay *r)
{
	for (unsigned k = 0; k < r->messages; k++) {
		const uint8_t *at = p.b.mem + 8192 * k;
		struct cqe cqe;

		assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		assert_int_equal(cqe.wr_id, k);
		for (uint32_t i = 0; i < cqe.byte_len; i++)
			assert_int_equal(
				at[i], ((i + 16 * k) ^ ((i + 16 * k) >> 8)) & 0xFF);
	}
}

static void
replay_init(const struct replay *r)
{
	struct pair_conf conf = pair_defaults();
	uint32_t peer_qpn = 0x777;
	struct pkt_view first, v;

	load(r->name);
	conf.unconnected = true;
	conf.srq = r->srq;
	conf.mtu = r->mtu != 0 ? r->mtu : IBV_MTU_1024;
	conf.mem_bytes = 16 * 8192;
	if (r->rkey != 0)
		conf.access = r->access != 0 ? r->access : ACCESS_REMOTE;
	conf.max_dest_rd = r->depth == NONE ? 0 : r->depth != 0 ? r->depth : 4;
	pair_init(&p, &conf);
	target_init(r);
	/* The first frame of c0 has a wrong ICRC. */
	assert_true(frame_view(0, &first) || frame_view(8, &first));
	for (unsigned i = 0; i < file.count; i++) {
		if (frame_view(i, &v) && is_answer(&first, &v))
			peer_qpn = v.dest_qpn;
	}
	take_place(&p.b, first.dest_qpn, peer_qpn, &first, true, r->rnr_timer);
	for (unsigned i = 0; i < r->recvs; i++)
		recv_post(r, i);
}

static void
replay_run(const struct replay *r)
{
	unsigned end = r->end != 0 ? r->end - 1u : (unsigned)file.count;
	struct pkt_view first, v;
	unsigned answers = 0, given = 0, wanted = 0;

	assert_true(frame_view(0, &first) || frame_view(8, &first));
	/* All requests, then all answers: tcpdump may have crossed them. */
	for (unsigned i = 0; i < end; i++) {
		if (r->recv_at == i + 1)
			recv_post(r, 0);
		if (!frame_view(i, &v) || !is_answer(&first, &v))
			request_take(r, i + 1, &file.frames[i]);
	}
	given = p.b.wire_count;
	for (unsigned i = 0; i < end; i++) {
		if (frame_view(i, &v) && is_answer(&first, &v))
			wanted += answer_check(r, ++answers, &v);
	}
	if (given != wanted)
		fail_msg("%s: %u answers, wanted %u", r->name, given, wanted);
}

static void
test_responder(void **state)
{
	struct event_record event;
	struct cqe cqe;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(replays); i++) {
		const struct replay *r = &replays[i];

		running = r->name;
		replay_init(r);
		replay_run(r);
		messages_check(r);
		while (host_poll(&p.b, &p.b.recv_cq, &cqe) ||
			event_next(&p.b.events, &event) == 0)
			; /* of receives that failed: receive_test.c */
		target_fini(r);
		pair_fini(&p);
		pcap_file_unload(&file);
	}
	running = NULL;
}

/* ---- The requester ---- */

struct sender {
	const char *name;
	enum ibv_mtu mtu;
	unsigned ops;
	uint32_t len[10];
	uint32_t imm[10]; /* with imm_ops: as the application gave it, in host order */
	unsigned imm_ops; /* bit per operation */
	unsigned solicited_ops;
	/* WRITE, READ and atomics; 0: IBV_WR_SEND, of all operations but atomics. */
	enum ibv_wr_opcode opcode;
	uint32_t rkey;
	uint32_t at[10]; /* in the target area */
	uint64_t operand[4], compare[4];
};

static const struct sender senders[] = {
	{.name = "01-rc-send-only",
		.mtu = IBV_MTU_1024,
		.ops = 10,
		.len = {0, 1, 2, 3, 4, 5, 255, 256, 1023, 1024}},
	{.name = "02-rc-send-multi",
		.mtu = IBV_MTU_1024,
		.ops = 5,
		.len = {1025, 2048, 2049, 3072, 4098}},
	{.name = "03-rc-send-imm",
		.mtu = IBV_MTU_1024,
		.ops = 5,
		.len = {0, 5, 1024, 1030, 3000},
		.imm = {0x11223344, 0xdeadbeef, 1, 2, 0xffffffff},
		.imm_ops = 0x1F},
	{.name = "10-rc-mtu256", .mtu = IBV_MTU_256, .ops = 1, .len = {1000}},
	{.name = "11-rc-mtu512", .mtu = IBV_MTU_512, .ops = 1, .len = {1500}},
	{.name = "15-rc-solicited",
		.mtu = IBV_MTU_1024,
		.ops = 3,
		.len = {8, 8, 2000},
		.imm = {0, 0, 3},
		.imm_ops = 4,
		.solicited_ops = 6},
	{.name = "18-rc-mtu2048", .mtu = IBV_MTU_2048, .ops = 1, .len = {5000}},
	{.name = "19-rc-mtu4096", .mtu = IBV_MTU_4096, .ops = 1, .len = {8192}},
	{.name = "26-rc-ipv6-linklocal",
		.mtu = IBV_MTU_1024,
		.ops = 2,
		.len = {5, 1500},
		.imm = {0, 1},
		.imm_ops = 2},
	{.name = "05-rc-write",
		.mtu = IBV_MTU_1024,
		.ops = 6,
		.len = {0, 1, 7, 1024, 1025, 3001},
		.opcode = WR_RDMA_WRITE,
		.rkey = 0xe39,
		.at = {0, 3, 0x11, 0x1000, 0x4000, 0}},
	{.name = "06-rc-write-imm",
		.mtu = IBV_MTU_1024,
		.ops = 5,
		.len = {0, 1, 1024, 1027, 3001},
		.imm = {0x0a0b0c0d, 1, 2, 3, 4},
		.imm_ops = 0x1F,
		.opcode = WR_RDMA_WRITE,
		.rkey = 0x102e,
		.at = {0, 3, 0x1000, 0x4000, 0}},
	{.name = "07-rc-read",
		.mtu = IBV_MTU_1024,
		.ops = 7,
		.len = {0, 1, 6, 1024, 1025, 2048, 3001},
		.opcode = IBV_WR_RDMA_READ,
		.rkey = 0x12bb,
		.at = {0, 5, 0x21, 0x1000, 0x4000, 0, 7}},
	{.name = "08-rc-atomic",
		.mtu = IBV_MTU_1024,
		.ops = 4,
		.len = {8, 8, 8, 8},
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.rkey = 0x1496,
		.at = {0, 0, 8, 8},
		.operand = {0xaaaabbbbccccdddd, 2, 5, UINT64_MAX},
		.compare = {0x1111222233334444, 1}},
};

/* Operation k of s, from local memory at 8192 k; what it is beyond its opcode. */
static void
sender_remote(const struct sender *s, unsigned k, struct send_req *req)
{
	if (s->opcode == 0)
		return;
	req->opcode = s->opcode;
	req->remote_va = TARGET_VA + s->at[k];
	req->rkey = s->rkey;
	if (s->opcode == WR_RDMA_WRITE && (s->imm_ops >> k & 1) != 0)
		req->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	if (s->opcode != IBV_WR_ATOMIC_CMP_AND_SWP)
		return;
	req->compare_add = k < 2 ? s->compare[k] : s->operand[k];
	req->swap = s->operand[k];
	if (k >= 2)
		req->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* What READs and atomics brought, against the kernel's memory. */
static void
sender_check(const struct sender *s)
{
	static const uint64_t old[] = {
		0x1111222233334444, 0xaaaabbbbccccdddd, 0x64, 0x69};

	for (unsigned k = 0; k < s->ops; k++) {
		const uint8_t *at = p.a.mem + 8192 * k;

		if (s->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
			assert_memory_equal(at, &old[k], 8);
		for (uint32_t i = 0; s->opcode == IBV_WR_RDMA_READ && i < s->len[k];
			i++) {
			uint32_t from = s->at[k] + i;

			assert_int_equal(at[i], (uint8_t)(0x80 + (from ^ (from >> 8))));
		}
	}
}

static void
sender_post(const struct sender *s)
{
	for (unsigned k = 0; k < s->ops; k++) {
		struct sge sge = host_sge(&p.a, 8192 * k, s->len[k]);
		bool imm = (s->imm_ops >> k & 1) != 0;
		struct send_req req = {
			.wr_id = k,
			.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
			.imm = __builtin_bswap32(s->imm[k]),
			.flags = IBV_SEND_SIGNALED |
				 (s->solicited_ops >> k & 1 ? (unsigned)IBV_SEND_SOLICITED
							    : 0),
			.sge = &sge,
			.num_sge = s->len[k] != 0,
		};

		sender_remote(s, k, &req);

		for (uint32_t i = 0; i < s->len[k]; i++)
			p.a.mem[8192 * k + i] =
				(uint8_t)((i + 16 * k) ^ ((i + 16 * k) >> 8));
		assert_int_equal(host_post_send(&p.a, &req), 0);
	}
}

static void
test_requester(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RTE_DIM(senders); i++) {
		const struct sender *s = &senders[i];
		struct pair_conf conf = pair_defaults();
		struct pkt_view first, v, ours;

		running = s->name;
		load(s->name);
		conf.unconnected = true;
		conf.mtu = s->mtu;
		conf.mem_bytes = 10 * 8192;
		conf.max_rd = 4;
		pair_init(&p, &conf);
		assert_true(frame_view(0, &first));
		/* Both QPs of these captures have the same number. */
		take_place(&p.a, first.dest_qpn, first.dest_qpn, &first, false, 0);
		sender_post(s);
		host_pull(&p.a, PULL_ALL);
		for (unsigned k = 0; p.a.qp.req.una_idx != s->ops; k++) {
			assert_true(k < file.count && frame_view(k, &v));
			if (is_answer(&first, &v)) {
				host_take(&p.a, file.frames[k].data, file.frames[k].len);
				continue;
			}
			if (p.a.wire_count == 0) /* max_rd_atomic held it back */
				host_pull(&p.a, PULL_ALL);
			ours = wire_view(&p.a, 0);
			fields_compare(&ours, &v);
			assert_memory_equal(ours.ext, v.ext, v.op->ext_len);
			wire_drop(&p.a, 0);
		}
		for (unsigned k = 0; k < s->ops; k++)
			expect_sent(&p.a, k, IBV_WC_SUCCESS);
		sender_check(s);
		pair_fini(&p);
		pcap_file_unload(&file);
	}
	running = NULL;
}

static int
teardown(void **state)
{
	(void)state;
	if (running != NULL)
		print_error("in %s\n", running);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_responder, teardown),
		cmocka_unit_test_teardown(test_requester, teardown),
	};

	return cmocka_run_group_tests_name("qp capture", tests, NULL, NULL);
}
