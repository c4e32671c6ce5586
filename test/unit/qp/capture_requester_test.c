/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Against the Linux kernel's driver (test/captures): our requester posts what the traffic
 * generator posted and is answered with what the kernel, or a script, answered. Each
 * frame that we send is compared with the one that the kernel sent, each completion with
 * the log's. Where the kernel differs from the IBA the row says by which of section 19's
 * topics in rules.tsv; any other difference fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "replay.h"

/* A completion that the kernel does not give, or gives otherwise. */
struct wc_difference {
	const char *topic;
	uint8_t wr_id;
	uint8_t status;
};

struct play {
	const char *name;
	uint32_t qpn;      /* of a program: the QP that it sends to */
	const char *topic; /* of end, skip and silent */
	uint8_t end;       /* the kernel's frames from here on are its own */
	bool open;         /* and we go on otherwise: the capture says nothing of it */
	uint8_t skip[2];   /* frames that we do not send */
	bool ackreq;       /* FIRST and MIDDLE ask for answers elsewhere */
	bool crossed;      /* answers that came before a request stand behind it */
	bool shared;       /* its READs have one buffer, looked at in the end */
	struct wc_difference wcs[1];
};

#define ACK_FOR_READ "requester: plain ACK for a READ/ATOMIC PSN"
#define RESERVED "requester: reserved syndrome, READ MIDDLE first"
#define NAK_CODES "requester: NAK 0x64 and reserved NAK codes"
#define READ_SHORT "requester: READ response too short"
#define MTU_OF_PORT "UD message longer than the port MTU"

/* clang-format off */
static const struct play plays[] = {
	{.name = "01-rc-send-only"},
	{.name = "02-rc-send-multi"},
	{.name = "03-rc-send-imm"},
	{.name = "04-rc-send-inv"},
	{.name = "05-rc-write"},
	{.name = "06-rc-write-imm"},
	{.name = "07-rc-read"},
	{.name = "08-rc-atomic"},
	{.name = "10-rc-mtu256"},
	{.name = "11-rc-mtu512"},
	{.name = "14-rc-srq"},
	{.name = "15-rc-solicited"},
	/* Its READ of 79 packets is several of ours. */
	{.name = "17-rc-long-ackreq", .topic = "AckReq inside a long message",
		.ackreq = true, .crossed = true, .end = 200, .open = true},
	{.name = "18-rc-mtu2048"},
	{.name = "19-rc-mtu4096"},
	{.name = "19b-ud-mtu4096"},
	{.name = "20-uc"},
	{.name = "21-ud"},
	/* ibv_post_send() refuses it: test/verbs/ud_test.c, test_refused. */
	{.name = "23-ud-too-long", .topic = MTU_OF_PORT, .end = 2, .open = true},
	{.name = "24-ud-mcast"},
	{.name = "25-uc-ipv6"},
	{.name = "26-rc-ipv6-linklocal"},
	{.name = "28-rc-dscp-ecn"},
	{.name = "29-rc-vlan"},
	{.name = "30-rc-rnr"},
	{.name = "31-rc-rnr-retry-exceeded"},
	{.name = "34-rc-srq-empty-rnr"},
	{.name = "35-rc-nak-access-write"},
	{.name = "36-rc-nak-access-read"},
	{.name = "37-rc-nak-access-atomic"},
	{.name = "38-rc-nak-access-perm"},
	{.name = "40-rc-nak-inv-write"},
	{.name = "42-rc-nak-send-too-long"},
	{.name = "44-rc-nak-recv-lkey"},
	{.name = "45-rc-local-prot",
		.wcs = {{"lkey error at the requester", 1, IBV_WC_LOC_PROT_ERR}}},
	{.name = "47-rc-nak-mw-invalidated"},
	{.name = "48-rc-remote-err"},
	{.name = "49-rc-remote-destroyed"},
	{.name = "50-rc-drop-middle"},
	{.name = "52-rc-drop-last-timeout"},
	{.name = "53-rc-drop-ack"},
	{.name = "55-rc-retry-exceeded"},
	{.name = "56-rc-drop-nak"},
	{.name = "57-rc-read-drop-req"},
	{.name = "59-rc-read-drop-middle"},
	{.name = "61-rc-read-drop-only"},
	{.name = "62-rc-atomic-drop-ack"},
	{.name = "64-rc-wire-dup"},
	{.name = "66-rc-corrupt"},
	{.name = "67-rc-dup-read-full", .shared = true},
	{.name = "70-uc-drop"},
	{.name = "71-uc-drop-only"},
	{.name = "73-uc-no-recv"},
	{.name = "d0-req-syndrome-0"},
	{.name = "d0-req-syndrome-1"},
	{.name = "d0-req-syndrome-2"},
	{.name = "d0-req-syndrome-3", .wcs = {{NAK_CODES, 1, IBV_WC_BAD_RESP_ERR}}},
	{.name = "d0-req-syndrome-4", .wcs = {{NAK_CODES, 1, IBV_WC_BAD_RESP_ERR}}},
	{.name = "d0-req-syndrome-5", .wcs = {{NAK_CODES, 1, IBV_WC_BAD_RESP_ERR}}},
	{.name = "d0-req-syndrome-6", .wcs = {{RESERVED, 1, IBV_WC_BAD_RESP_ERR}}},
	{.name = "d0-req-syndrome-7", .wcs = {{RESERVED, 1, IBV_WC_BAD_RESP_ERR}}},
	{.name = "d1-req-credits"},
	{.name = "d2-req-ack-coalesce"},
	{.name = "d3-req-ack-future"},
	{.name = "d4-req-ack-old"},
	{.name = "d5-req-read-short", .wcs = {{READ_SHORT, 1, IBV_WC_BAD_RESP_ERR}}},
	{.name = "d6-req-read-long",
		.wcs = {{"requester: READ response too long", 1, IBV_WC_BAD_RESP_ERR}}},
	{.name = "d7-req-read-only-for-multi", .topic = READ_SHORT, .end = 3,
		.wcs = {{READ_SHORT, 1, IBV_WC_BAD_RESP_ERR}}},
	{.name = "d8-req-read-middle-first", .wcs = {{RESERVED, 1, IBV_WC_BAD_RESP_ERR}}},
	/* Its log ends before its timeout; we ask for the rest at once. */
	{.name = "d9-req-read-gap", .open = true},
	{.name = "d10-req-read-acked", .topic = ACK_FOR_READ, .open = true},
	{.name = "d11-req-send-answered-by-read-resp",
		.wcs = {{"requester: SEND answered by READ response", 1, IBV_WC_BAD_RESP_ERR}}},
	{.name = "d13-req-rnr-partial", .topic = "RNR wait: the ACK timer runs on",
		.skip = {7, 8}},
	{.name = "d14-req-nak-access-partial"},
	{.name = "d16-req-atomic-ack-by-ack", .topic = ACK_FOR_READ, .open = true},
	/* Programs: what they posted is what the frames brought. */
	{.name = "80-cm-rping", .qpn = 0x70},
	{.name = "80-cm-rping", .qpn = 0x73},
	{.name = "83-cm-connect", .qpn = 0x61},
	{.name = "83-cm-connect", .qpn = 0x63},
	{.name = "84-cm-drop-req", .qpn = 0x62},
	{.name = "84-cm-drop-req", .qpn = 0x64},
	{.name = "85-cm-drop-rep", .qpn = 0x63},
	{.name = "85-cm-drop-rep", .qpn = 0x65},
	{.name = "88-cm-drop-drep", .qpn = 0x66},
	{.name = "88-cm-drop-drep", .qpn = 0x68},
	{.name = "89-cm-mra", .qpn = 0x67},
	{.name = "89-cm-mra", .qpn = 0x69},
	{.name = "91-cm-sidr-udaddy", .qpn = 0x69},
	{.name = "91-cm-sidr-udaddy", .qpn = 0x6b},
	{.name = "94-cm-ucmatose", .qpn = 0x6b},
	{.name = "94-cm-ucmatose", .qpn = 0x6c},
	{.name = "94-cm-ucmatose", .qpn = 0x6e},
	{.name = "94-cm-ucmatose", .qpn = 0x6f},
	{.name = "95-cm-rdma-server", .qpn = 0x6d},
	{.name = "95-cm-rdma-server", .qpn = 0x70},
	{.name = "96-cm-rstream", .qpn = 0x6e},
	{.name = "96-cm-rstream", .qpn = 0x71},
	{.name = "97-cm-mckey", .qpn = 0xffffff},
	{.name = "a0-app-rc-pingpong", .qpn = 0x72},
	{.name = "a0-app-rc-pingpong", .qpn = 0x75},
	{.name = "a1-app-uc-pingpong", .qpn = 0x73},
	{.name = "a1-app-uc-pingpong", .qpn = 0x76},
	{.name = "a2-app-ud-pingpong", .qpn = 0x74},
	{.name = "a2-app-ud-pingpong", .qpn = 0x77},
	{.name = "a3-app-srq-pingpong", .qpn = 0x75},
	{.name = "a3-app-srq-pingpong", .qpn = 0x76},
	{.name = "a3-app-srq-pingpong", .qpn = 0x78},
	{.name = "a3-app-srq-pingpong", .qpn = 0x79},
	{.name = "a4-app-ib-send-bw", .qpn = 0x77,
		.topic = "AckReq inside a long message", .ackreq = true},
	{.name = "a5-app-ib-write-bw", .qpn = 0x78,
		.topic = "AckReq inside a long message", .ackreq = true},
	{.name = "a6-app-ib-read-bw", .qpn = 0x79},
	{.name = "a8-app-ib-write-lat", .qpn = 0x7b},
	{.name = "a8-app-ib-write-lat", .qpn = 0x7e},
	{.name = "a9-app-ib-send-bw-cm", .qpn = 0x7c},
	{.name = "a9-app-ib-send-bw-cm", .qpn = 0x7f},
};
/* clang-format on */

static struct pair p;
static struct replay replay;
static struct replay_run run;
static const char *running; /* the capture in which a test failed */
static struct pkt_view first;
static uint32_t server_rkey; /* what requests name if the capture has none */
static unsigned next_frame, posted, polled;
static bool mcast;
static struct cqe cqes[32];

/* Requests come from where the run's side is. */
static bool
is_request(const struct pkt_view *v)
{
	unsigned src = v->ip_version == 4 ? 12 : 8, len = v->ip_version == 4 ? 4 : 16;

	return memcmp(v->ip + src, first.ip + src, len) == 0;
}

/* ---- Posting what the generator posted ---- */

#define CLIENT_TARGET 0x10080000
#define SERVER_TARGET 0x20080000

/* The rkey of the next request frame of that kind: what the flags k, o and m made of it.
 */
static uint32_t
rkey_ahead(unsigned hdrs, uint64_t va)
{
	struct pkt_view v;

	for (unsigned i = next_frame; i < replay.file.count; i++) {
		const struct reth *reth;

		if (!replay_view(&replay, i, &v) || !is_request(&v) ||
			(v.op->hdrs & hdrs) == 0)
			continue;
		reth = view_reth(&v); /* an AtomicETH begins alike */
		if (hdrs == HDR_IETH)
			return rte_be_to_cpu_32(view_imm_be(&v));
		if (rte_be_to_cpu_64(reth->va) == va)
			return rte_be_to_cpu_32(reth->rkey);
	}
	return server_rkey;
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	unsigned hdrs;
} operations[] = {
	{"sendinv:", IBV_WR_SEND_WITH_INV, HDR_IETH},
	{"sendimm:", IBV_WR_SEND_WITH_IMM, 0},
	{"send:", IBV_WR_SEND, 0},
	{"writeimm:", IBV_WR_RDMA_WRITE_WITH_IMM, HDR_RETH},
	{"write:", WR_RDMA_WRITE, HDR_RETH},
	{"read:", IBV_WR_RDMA_READ, HDR_RETH},
	{"cas:", IBV_WR_ATOMIC_CMP_AND_SWP, HDR_ATOMIC},
	{"fadd:", IBV_WR_ATOMIC_FETCH_AND_ADD, HDR_ATOMIC},
};

static void
request_numbers(struct send_req *req, struct sge *sge, const uint64_t n[3])
{
	uint64_t offset = n[1];

	sge->len = (uint32_t)n[0];
	if (req->opcode == IBV_WR_SEND_WITH_IMM)
		req->imm = rte_cpu_to_be_32((uint32_t)n[1]);
	if (req->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		req->imm = rte_cpu_to_be_32((uint32_t)n[2]);
	if (req->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		req->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		offset = n[0];
		sge->len = 8;
		req->compare_add = n[1];
		req->swap = n[2];
	}
	req->num_sge = sge->len != 0;
	req->remote_va = offset;
}

/* False: not a word that posts. */
static bool
word_post(const char *word)
{
	struct sge sge = host_sge(&p.a, REPLAY_SLOT * posted, 0);
	struct ud_dest dest = {.hop_limit = 64};
	struct send_req req = {
		.wr_id = posted + 1, .flags = IBV_SEND_SIGNALED, .sge = &sge};
	const char *flags = strchr(word, ',');
	uint64_t n[3] = {0};
	unsigned op = 0;

	while (op < RTE_DIM(operations) &&
		strncmp(word, operations[op].name, strlen(operations[op].name)) != 0)
		op++;
	if (op == RTE_DIM(operations))
		return false;
	req.opcode = operations[op].opcode;
	word = strchr(word, ':');
	for (unsigned i = 0; i < 3 && word != NULL; i++, word = strchr(word + 1, ':'))
		n[i] = strtoull(word + 1, NULL, 0);
	request_numbers(&req, &sge, n);
	if (operations[op].hdrs == HDR_IETH) {
		req.imm = rte_cpu_to_be_32(rkey_ahead(HDR_IETH, 0));
	} else if (operations[op].hdrs != 0) {
		/* A script's peer has the client's target area. */
		req.remote_va += p.a.qp.dest_qpn == 0x777 ? CLIENT_TARGET : SERVER_TARGET;
		req.rkey = rkey_ahead(operations[op].hdrs, req.remote_va);
	}
	if (flags != NULL && strchr(flags, 's') != NULL)
		req.flags |= IBV_SEND_SOLICITED;
	if (flags != NULL && strchr(flags, 'l') != NULL)
		sge.lkey ^= 0x5A;
	if (run.type == IBV_QPT_UD) {
		dest.qpn = mcast ? PSN_MASK : first.dest_qpn;
		dest.qkey = flags != NULL && strchr(flags, 'q') != NULL ? 0x22222222
									: 0x11111111;
		req.dest = &dest;
	}
	replay_payload(p.a.mem + REPLAY_SLOT * posted, posted, sge.len);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	posted++;
	return true;
}

/* ---- The wire ---- */

static void
completions_take(void)
{
	while (polled < RTE_DIM(cqes) && host_poll(&p.a, &p.a.send_cq, &cqes[polled]))
		polled++;
}

/* Until we send something, or have nothing left to wait for. */
static void
wait_sent(void)
{
	for (unsigned i = 0; i < 100 && p.a.wire_count == 0; i++) {
		uint64_t deadline;

		host_pull(&p.a, PULL_ALL);
		deadline = qp_deadline(&p.a.qp);
		if (p.a.wire_count != 0 || deadline == TIME_NEVER)
			break;
		pair_advance(&p, deadline - RTE_MIN(deadline, p.now));
	}
}

/* The next answer of the capture, now. */
static void
answer_ahead(void)
{
	struct pkt_view v;

	for (unsigned i = next_frame; i < replay.file.count; i++) {
		assert_true(replay_view(&replay, i, &v));
		if (is_request(&v) || replay.wire[i] == 'd')
			continue;
		host_take(&p.a, replay.file.frames[i].data, replay.file.frames[i].len);
		replay.wire[i] = 'd';
		host_pull(&p.a, PULL_ALL);
		return;
	}
}

static void
request_compare(const struct play *play, const struct pkt_view *theirs)
{
	struct pkt_view ours;

	if (p.a.wire_count == 0)
		host_pull(&p.a, PULL_ALL);
	if (p.a.wire_count == 0 && play->crossed)
		answer_ahead();
	if (p.a.wire_count == 0)
		wait_sent();
	if (p.a.wire_count == 0)
		fail_msg("%s: frame %u is not sent", replay.name, next_frame);
	ours = wire_view(&p.a, 0);
	if (play->ackreq && !op_is_last(ours.op)) {
		replay_topic_check(play->topic);
		ours.ack_req = theirs->ack_req;
	}
	replay_frames_equal(&ours, theirs);
	wire_drop(&p.a, 0);
}

static bool
skipped(const struct play *play, unsigned frame)
{
	if (frame != play->skip[0] && frame != play->skip[1])
		return false;
	replay_topic_check(play->topic);
	return true;
}

/* Plays frames until n more completions are there. */
static void
exchange(const struct play *play, unsigned n)
{
	unsigned end = play->end != 0 ? play->end - 1u : (unsigned)replay.file.count;
	unsigned want = polled + n;
	struct pkt_view v;

	while (polled < want && next_frame < end) {
		unsigned frame = next_frame++;

		assert_true(replay_view(&replay, frame, &v));
		if (skipped(play, frame + 1))
			continue;
		if (is_request(&v))
			request_compare(play, &v);
		else if (replay.wire[frame] != 'd')
			host_take(&p.a, replay.file.frames[frame].data,
				replay.file.frames[frame].len);
		completions_take();
	}
	/* The rest is not the peer's to say: retries that are spent, a local error. */
	for (unsigned i = 0; i < 20 && polled < want && !play->open; i++) {
		host_pull(&p.a, PULL_ALL);
		if (p.a.wire_count != 0)
			fail_msg("%s: a frame more than the kernel's", play->name);
		if (qp_deadline(&p.a.qp) != TIME_NEVER)
			pair_advance(&p, qp_deadline(&p.a.qp) - p.now);
		completions_take();
	}
}

static void
commands_play(const struct play *play)
{
	char text[sizeof(run.commands)], *rest = text, *word;
	unsigned n;

	snprintf(text, sizeof(text), "%s", run.commands);
	while ((word = strsep(&rest, " ")) != NULL) {
		if (word_post(word))
			continue;
		if (sscanf(word, "sq:%u", &n) == 1)
			exchange(play, n);
	}
	/* What completes when it is sent stands on the wire still. */
	exchange(play, RTE_DIM(cqes));
	if (!play->open)
		return;
	/* What was owed is on the wire now and again later: not with this peer. */
	if (play->topic != NULL)
		replay_topic_check(play->topic);
	wait_sent();
	assert_int_not_equal(p.a.wire_count, 0);
	wire_drop_all(&p.a);
	completions_take();
	assert_true(polled < posted || run.type == IBV_QPT_UD);
}

/* ---- Completions ---- */

static void
completions_check(const struct play *play)
{
	const struct wc_difference *d = &play->wcs[0];
	unsigned extra = 0;

	for (unsigned i = 0; i < run.wc_count; i++) {
		struct replay_wc wc = run.wcs[i];

		if (play->open && i == polled)
			break;

		if (d->topic != NULL && d->wr_id == wc.wr_id) {
			replay_topic_check(d->topic);
			wc.status = (enum ibv_wc_status)d->status;
		}
		assert_true(i < polled);
		wc.has_crc &= !play->shared;
		replay_wc_equal(
			&cqes[i], &wc, p.a.mem + REPLAY_SLOT * (cqes[i].wr_id - 1));
	}
	if (run.wc_count == 0 && d->topic != NULL) {
		replay_topic_check(d->topic);
		assert_int_equal(cqes[0].wr_id, d->wr_id);
		assert_int_equal(cqes[0].status, d->status);
		extra = 1;
	}
	if (!play->open)
		assert_int_equal(polled, run.wc_count + extra);
}

/* ---- Programs ---- */

static const enum ibv_wr_opcode kinds[] = {[OP_SEND] = IBV_WR_SEND,
	[OP_WRITE] = WR_RDMA_WRITE,
	[OP_READ] = IBV_WR_RDMA_READ};

static bool
to_program(const struct play *play, unsigned frame, struct pkt_view *v)
{
	return replay_view(&replay, frame, v) && !op_is_response(v->op) &&
	       v->dest_qpn == play->qpn;
}

/* Posts the message that starts at a frame: its bytes, its flags and where it goes. */
static void
message_post(const struct play *play, unsigned frame)
{
	uint8_t *at = p.a.mem + REPLAY_SLOT * posted;
	struct sge sge = host_sge(&p.a, REPLAY_SLOT * posted, 0);
	struct ud_dest dest = {.hop_limit = 64, .qpn = play->qpn};
	struct send_req req = {
		.wr_id = posted + 1, .flags = IBV_SEND_SIGNALED, .sge = &sge};
	struct pkt_view v;

	for (;; frame++) {
		if (!to_program(play, frame, &v))
			continue;
		if (op_is_first(v.op) && v.op->hdrs & HDR_RETH) {
			req.remote_va = rte_be_to_cpu_64(view_reth(&v)->va);
			req.rkey = rte_be_to_cpu_32(view_reth(&v)->rkey);
		}
		if (v.op->hdrs & HDR_DETH)
			dest.qkey = rte_be_to_cpu_32(view_deth(&v)->qkey);
		memcpy(at + sge.len, v.payload, v.payload_len);
		sge.len += v.payload_len;
		if (v.op->kind == OP_READ)
			sge.len = rte_be_to_cpu_32(view_reth(&v)->len);
		if (op_is_last(v.op))
			break;
	}
	req.opcode = kinds[v.op->kind];
	if (v.op->hdrs & HDR_IMM) {
		req.opcode = v.op->kind == OP_SEND ? IBV_WR_SEND_WITH_IMM
						   : IBV_WR_RDMA_WRITE_WITH_IMM;
		req.imm = view_imm_be(&v);
	}
	req.flags |= v.solicited ? IBV_SEND_SOLICITED : 0;
	req.num_sge = sge.len != 0;
	req.dest = run.type == IBV_QPT_UD ? &dest : NULL;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	posted++;
}

static void
program_play(const struct play *play)
{
	unsigned answers = 0;
	struct pkt_view v;

	while (next_frame < replay.file.count) {
		unsigned frame = next_frame++;

		if (to_program(play, frame, &v)) {
			if (op_is_first(v.op))
				message_post(play, frame);
			request_compare(play, &v);
		} else if (replay_view(&replay, frame, &v) && op_is_response(v.op) &&
			   v.dest_qpn == p.a.qp.qpn && !is_request(&v)) {
			host_take(&p.a, replay.file.frames[frame].data,
				replay.file.frames[frame].len);
			answers++;
		}
		completions_take();
	}
	assert_true(posted != 0);
	/* The answer to the last may be missing: the program was gone. */
	assert_true(polled == posted || (polled + 1 == posted && answers != 0));
	for (unsigned i = 0; i < polled; i++) {
		assert_int_equal(cqes[i].wr_id, i + 1);
		assert_int_equal(cqes[i].status, IBV_WC_SUCCESS);
	}
	if (polled != posted)
		assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
}

/* The first request to the QP, and from the answers whose they are. */
static uint32_t
program_find(const struct play *play)
{
	unsigned i = 0;
	struct pkt_view v;
	uint32_t qpn;

	while (!to_program(play, i, &first)) {
		i++;
		assert_true(i < replay.file.count);
	}
	run.type = first.op->service == SERVICE_UC   ? IBV_QPT_UC
		   : first.op->service == SERVICE_UD ? IBV_QPT_UD
						     : IBV_QPT_RC;
	run.udp_sport = (uint16_t)(((const uint8_t *)first.bth)[-8] << 8 |
				   ((const uint8_t *)first.bth)[-7]);
	if (run.type != IBV_QPT_RC)
		return run.type == IBV_QPT_UD ? be24_get(view_deth(&first)->src_qpn)
					      : 0x777;
	for (qpn = 0; qpn == 0; i++) {
		assert_true(i < replay.file.count);
		if (replay_view(&replay, i, &v) && op_is_response(v.op) &&
			!is_request(&v) && psn_diff(v.psn, first.psn) >= 0 &&
			psn_diff(v.psn, first.psn) < 16)
			qpn = v.dest_qpn;
	}
	return qpn;
}

static void
play_init(const struct play *play)
{
	bool script = play->name[0] == 'd';
	struct pair_conf conf = pair_defaults();
	struct replay_run peer;
	uint32_t qpn;

	replay_load(&replay, play->name);
	assert_int_equal(
		replay_run(play->name, script ? 'P' : 'C', 'S', &run), play->qpn == 0);
	qpn = play->qpn != 0 ? program_find(play) : run.qpn;
	server_rkey = replay_run(play->name, 'S', 'R', &peer) ? peer.rkey : 0;
	mcast = strstr(play->name, "mcast") != NULL;
	conf.type = run.type;
	conf.unconnected = true;
	conf.mtu = run.mtu;
	conf.psn[0] = play->qpn != 0 ? first.psn : script ? PSN_B : PSN_A;
	conf.mem_bytes = REPLAY_SLOTS * REPLAY_SLOT;
	conf.access = run.access;
	conf.max_rd = play->qpn != 0 ? QP_MAX_RD_ATOMIC : run.rd_atomic;
	conf.timeout = run.timeout;
	conf.retry_cnt = run.retry;
	conf.rnr_retry = run.rnr_retry;
	pair_init(&p, &conf);
	posted = polled = next_frame = 0;
	if (replay.file.count == 0) { /* 45: any path will do */
		pair_connect(&p);
		return;
	}
	if (play->qpn == 0)
		assert_true(replay_view(&replay, 0, &first));
	if (first.op->service == SERVICE_UD)
		qpn = be24_get(view_deth(&first)->src_qpn);
	replay_take_place(&replay, &p.a, &run, qpn, first.dest_qpn, &first, true);
}

static void
test_requester(void **state)
{
	struct event_record event;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(plays); i++) {
		const struct play *play = &plays[i];

		running = play->name;
		play_init(play);
		if (play->qpn != 0) {
			program_play(play);
		} else {
			commands_play(play);
			completions_check(play);
		}
		while (event_next(&p.a.events, &event) == 0)
			; /* which one: completer_test.c */
		pair_fini(&p);
		replay_unload(&replay);
	}
	running = NULL;
}

static int
teardown(void **state)
{
	(void)state;
	if (running != NULL)
		print_error("in %s, frame %u\n", running, next_frame);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_requester, teardown),
	};

	return cmocka_run_group_tests_name("qp capture requester", tests, NULL, NULL);
}
