/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Against the Linux kernel's driver (test/captures): what its requester sent is played to
 * our responder. What we answer is compared field by field with what it answered, our
 * receive completions with those in its log. Where the kernel differs from the IBA the
 * row says by which of section 19's topics in rules.tsv; any other difference fails. The
 * requester's half is capture_requester_test.c; test/captures/played.tsv lists both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "mem/window.h"
#include "replay.h"

#define NONE 0xFF
#define NO_WC UINT8_MAX /* a completion that we do not give */

/* An answer of the kernel that we give otherwise. */
struct difference {
	const char *topic;
	uint8_t answer;   /* from 1 */
	uint8_t syndrome; /* ours instead; NONE: we say nothing */
	uint8_t psn_low;  /* of ours */
	uint8_t opcode;   /* 0: the same; ours instead, with the same PSN and payload */
	bool extra;       /* ours alone, in front of that answer */
};

/* A completion likewise. */
struct wc_difference {
	const char *topic;
	uint8_t wr_id;
	uint8_t status; /* ours instead */
	uint32_t len;   /* of a success */
};

struct play {
	const char *name;
	uint32_t qpn;     /* of a program that is no traffic generator: which QP takes */
	uint8_t recv_at;  /* receives posted late come before this frame */
	uint8_t leave[3]; /* frames that are no requests to this service */
	struct difference differences[5];
	struct wc_difference wcs[3];
};

#define LENGTHS "SEND packet length rules"
#define DMA_LENGTHS "WRITE_FIRST with DMALen <= PMTU, WRITE_ONLY with DMALen > PMTU"
#define TOO_LONG "SEND longer than the receive WQE"
#define BAD_INV "SEND with invalidate of a bad R_Key"
#define UC_AFTER "UC FIRST/ONLY after an incomplete message"
#define RECV_SGE "receive SGE violation"
#define NAK_INV(number, psn, topic)                                                      \
	{                                                                                \
		topic, number, AETH_NAK_INV_REQ, psn, 0, 0                               \
	}
#define SILENT(number, topic)                                                            \
	{                                                                                \
		topic, number, NONE, 0, 0, 0                                             \
	}

/* clang-format off */
static const struct play plays[] = {
	{.name = "01-rc-send-only"},
	{.name = "02-rc-send-multi"},
	{.name = "03-rc-send-imm"},
	/* rxe's receive completions say IP_CSUM_OK instead of WITH_INV. */
	{.name = "04-rc-send-inv", .recv_at = 7},
	{.name = "05-rc-write"},
	{.name = "06-rc-write-imm"},
	{.name = "07-rc-read"},
	{.name = "08-rc-atomic"},
	{.name = "10-rc-mtu256"},
	{.name = "11-rc-mtu512"},
	{.name = "14-rc-srq"},
	{.name = "15-rc-solicited"},
	{.name = "17-rc-long-ackreq"},
	{.name = "18-rc-mtu2048"},
	{.name = "19-rc-mtu4096"},
	{.name = "19b-ud-mtu4096"},
	{.name = "20-uc"},
	{.name = "21-ud"},
	{.name = "23-ud-too-long",
		.wcs = {{"UD buffer too small", 0, NO_WC, 0}, {"UD buffer too small", 1, NO_WC, 0}}},
	{.name = "24-ud-mcast"},
	{.name = "25-uc-ipv6"},
	{.name = "26-rc-ipv6-linklocal"},
	{.name = "28-rc-dscp-ecn"},
	{.name = "29-rc-vlan"},
	{.name = "30-rc-rnr", .recv_at = 7},
	{.name = "31-rc-rnr-retry-exceeded",
		.differences = {SILENT(2, "after RNR NAK"), SILENT(4, "after RNR NAK"),
			SILENT(6, "after RNR NAK")}},
	{.name = "34-rc-srq-empty-rnr", .recv_at = 5},
	{.name = "35-rc-nak-access-write"},
	{.name = "36-rc-nak-access-read"},
	{.name = "37-rc-nak-access-atomic"},
	{.name = "38-rc-nak-access-perm"},
	{.name = "40-rc-nak-inv-write"},
	{.name = "42-rc-nak-send-too-long",
		.differences = {NAK_INV(1, 0, TOO_LONG)},
		.wcs = {{TOO_LONG, 0, IBV_WC_LOC_LEN_ERR, 0}}},
	{.name = "44-rc-nak-recv-lkey", .wcs = {{RECV_SGE, 0, IBV_WC_LOC_PROT_ERR, 0}}},
	{.name = "47-rc-nak-mw-invalidated"},
	{.name = "48-rc-remote-err"},
	{.name = "49-rc-remote-destroyed"},
	{.name = "50-rc-drop-middle"},
	{.name = "52-rc-drop-last-timeout"},
	{.name = "53-rc-drop-ack"},
	{.name = "55-rc-retry-exceeded"},
	{.name = "56-rc-drop-nak"},
	{.name = "57-rc-read-drop-req"},
	{.name = "59-rc-read-drop-middle",
		.differences = {{.answer = 5,
			.opcode = OPCODE_RC_READ_RESPONSE_FIRST,
			.topic = "partial READ replay"}}},
	{.name = "61-rc-read-drop-only"},
	{.name = "62-rc-atomic-drop-ack"},
	{.name = "64-rc-wire-dup"},
	{.name = "66-rc-corrupt"},
	{.name = "67-rc-dup-read-full"},
	{.name = "70-uc-drop",
		.wcs = {{UC_AFTER, 1, IBV_WC_SUCCESS, 20}, {UC_AFTER, 2, IBV_WC_SUCCESS, 30}}},
	{.name = "71-uc-drop-only"},
	{.name = "73-uc-no-recv", .recv_at = 2},
	/* FLUSH and ATOMIC WRITE, which that kernel does not know, are left out. */
	{.name = "c0-silent-drops", .leave = {13, 14}},
	{.name = "c1-accepted-oddities"},
	{.name = "c10-ud-checks"},
	{.name = "c2-opseq-00"},
	{.name = "c2-opseq-01"},
	{.name = "c2-opseq-02"},
	{.name = "c2-opseq-04"},
	{.name = "c2-opseq-05"},
	{.name = "c2-opseq-06"},
	{.name = "c2-opseq-08"},
	{.name = "c2-opseq-09"},
	{.name = "c2-opseq-10"},
	{.name = "c3-length-00",
		.differences = {NAK_INV(1, 0, LENGTHS), SILENT(2, LENGTHS), SILENT(3, LENGTHS)},
		.wcs = {{LENGTHS, 0, IBV_WC_WR_FLUSH_ERR, 0}, {LENGTHS, 1, IBV_WC_WR_FLUSH_ERR, 0}}},
	{.name = "c3-length-01",
		.differences = {NAK_INV(1, 0, LENGTHS), SILENT(2, LENGTHS), SILENT(3, LENGTHS)},
		.wcs = {{LENGTHS, 0, IBV_WC_WR_FLUSH_ERR, 0}, {LENGTHS, 1, IBV_WC_WR_FLUSH_ERR, 0}}},
	{.name = "c3-length-02",
		.differences = {NAK_INV(2, 1, LENGTHS), SILENT(3, LENGTHS), SILENT(4, LENGTHS)},
		.wcs = {{LENGTHS, 0, IBV_WC_REM_INV_REQ_ERR, 0}, {LENGTHS, 1, IBV_WC_WR_FLUSH_ERR, 0}}},
	{.name = "c3-length-03",
		.differences = {NAK_INV(2, 1, LENGTHS), SILENT(3, LENGTHS)},
		.wcs = {{LENGTHS, 0, IBV_WC_REM_INV_REQ_ERR, 0}, {LENGTHS, 1, IBV_WC_WR_FLUSH_ERR, 0}}},
	{.name = "c3-length-04",
		.differences = {NAK_INV(2, 1, LENGTHS), SILENT(3, LENGTHS)},
		.wcs = {{LENGTHS, 0, IBV_WC_REM_INV_REQ_ERR, 0}, {LENGTHS, 1, IBV_WC_WR_FLUSH_ERR, 0}}},
	{.name = "c3-length-06"},
	{.name = "c3-length-07"},
	{.name = "c3-length-08",
		.differences = {NAK_INV(1, 0, DMA_LENGTHS), SILENT(2, DMA_LENGTHS)}},
	{.name = "c3-length-09"},
	{.name = "c3-length-10",
		.differences = {NAK_INV(1, 0, DMA_LENGTHS), SILENT(2, DMA_LENGTHS)},
		.wcs = {{DMA_LENGTHS, 0, IBV_WC_WR_FLUSH_ERR, 0}}},
	{.name = "c3-length-12"},
	{.name = "c3-length-13"},
	{.name = "c3-length-14",
		.differences = {NAK_INV(1, 0, DMA_LENGTHS), SILENT(2, DMA_LENGTHS),
			SILENT(3, DMA_LENGTHS)},
		.wcs = {{DMA_LENGTHS, 0, IBV_WC_WR_FLUSH_ERR, 0}}},
	{.name = "c3-length-15", .differences = {NAK_INV(1, 0, "DMALen > 2^31")}},
	{.name = "c3-length-16", .differences = {NAK_INV(1, 0, "DMALen > 2^31")}},
	{.name = "c3-length-18"},
	{.name = "c3-length-19"},
	{.name = "c3-length-20",
		.differences = {{BAD_INV, 1, AETH_NAK_ACCESS, 0, 0, 0}}},
	{.name = "c4-psn"},
	{.name = "c5-dup-read-atomic",
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
	{.name = "c6-atomic-misaligned"},
	{.name = "c7-rd-atomic-0"},
	{.name = "c8-qp-access-0"},
	{.name = "c8-qp-access-1"},
	{.name = "c8-qp-access-2"},
	{.name = "c9-mr-access-0"},
	{.name = "c9-mr-access-1"},
	{.name = "c9-mr-access-2"},
	/* Programs, each QP of them. */
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
	/* Its last message comes to a peer that disconnects already. */
	{.name = "96-cm-rstream", .qpn = 0x6e, .leave = {38}},
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
	{.name = "a4-app-ib-send-bw", .qpn = 0x77},
	{.name = "a5-app-ib-write-bw", .qpn = 0x78},
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
static uint32_t recvs;      /* posted */
static uint32_t peer_qpn;
static struct pkt_view first; /* the first request */

/* ---- Whose frame it is ---- */

static bool
from_responder(const struct pkt_view *v)
{
	unsigned src = v->ip_version == 4 ? 12 : 8, len = v->ip_version == 4 ? 4 : 16;

	return memcmp(v->ip + src, first.ip + src + len, len) == 0;
}

static bool
is_answer(const struct play *play, const struct pkt_view *v)
{
	return from_responder(v) &&
	       (play->qpn == 0 || (op_is_response(v->op) && v->dest_qpn == peer_qpn));
}

/* Everything else goes to the QP of a generator's run, for it to drop what is not its. */
static bool
is_request(const struct play *play, unsigned frame)
{
	struct pkt_view v;

	if (!replay_view(&replay, frame, &v))
		return play->qpn == 0;
	if (play->qpn == 0)
		return !from_responder(&v);
	return !from_responder(&v) && !op_is_response(v.op) && v.dest_qpn == play->qpn;
}

static enum ibv_qp_type
program_type(const struct play *play)
{
	struct pkt_view v;

	for (unsigned i = 0; i < replay.file.count; i++) {
		if (replay_view(&replay, i, &v) && v.dest_qpn == play->qpn)
			return v.op->service == SERVICE_UC   ? IBV_QPT_UC
			       : v.op->service == SERVICE_UD ? IBV_QPT_UD
							     : IBV_QPT_RC;
	}
	fail_msg("%s: no QP 0x%x", play->name, play->qpn);
	return IBV_QPT_RC;
}

/* An answer to one of the first requests. rdma_cm gives both sides a flow label of its
 * own making, and with it the UDP port. */
static void
peer_found(const struct play *play, const struct pkt_view *v)
{
	const uint8_t *udp = (const uint8_t *)v->bth - 8;

	peer_qpn = v->dest_qpn;
	if (play->qpn != 0)
		run.udp_sport = (uint16_t)(udp[0] << 8 | udp[1]);
}

static void
first_find(const struct play *play)
{
	uint32_t qpn = play->qpn != 0 ? play->qpn : run.qpn;
	struct pkt_view v;
	unsigned i = 0;

	while (i < replay.file.count &&
		(!replay_view(&replay, i, &first) || op_is_response(first.op) ||
			(first.dest_qpn != qpn && first.dest_qpn != PSN_MASK) ||
			first.op->service != (run.type == IBV_QPT_UC ? SERVICE_UC
						     : run.type == IBV_QPT_UD
							     ? SERVICE_UD
							     : SERVICE_RC)))
		i++;
	assert_true(i < replay.file.count);
	peer_qpn = 0x777;
	for (; i < replay.file.count && peer_qpn == 0x777; i++) {
		if (replay_view(&replay, i, &v) && from_responder(&v) &&
			op_is_response(v.op) && psn_diff(v.psn, first.psn) >= 0 &&
			psn_diff(v.psn, first.psn) < 256)
			peer_found(play, &v);
	}
}

/* ---- Memory ---- */

static uint32_t keys[2];
static uint64_t bases[2]; /* of the keys: the page of the first address */

/* Where in the target area a request of a program goes. */
static uint64_t
memory_offset(const struct pkt_view *v)
{
	uint32_t key = rte_be_to_cpu_32(view_reth(v)->rkey);

	return rte_be_to_cpu_64(view_reth(v)->va) - bases[key != keys[0]];
}

static void
memory_keys(const struct play *play)
{
	struct pkt_view v;

	for (unsigned i = 0; i < replay.file.count; i++) {
		uint32_t key;

		if (!is_request(play, i) || !replay_view(&replay, i, &v) ||
			(v.op->hdrs & HDR_RETH) == 0 || view_reth(&v)->len == 0)
			continue;
		key = rte_be_to_cpu_32(view_reth(&v)->rkey);
		if (key == keys[0] || key == keys[1])
			continue;
		assert_int_equal(keys[1], 0);
		bases[keys[0] != 0] =
			rte_be_to_cpu_64(view_reth(&v)->va) & ~UINT64_C(0xFFF);
		replay_key_put(&replay, &p.b, key, bases[keys[0] != 0], ACCESS_REMOTE);
		keys[keys[0] != 0] = key;
	}
}

/* What a READ will bring is there before it: the program's bytes. */
static void
memory_learn(const struct play *play, unsigned frame, const struct pkt_view *read)
{
	uint64_t off = memory_offset(read);
	uint32_t len = rte_be_to_cpu_32(view_reth(read)->len);
	struct pkt_view v;

	for (unsigned i = frame + 1; i < replay.file.count; i++) {
		uint32_t at;

		if (!replay_view(&replay, i, &v) || !is_answer(play, &v) ||
			v.op->kind != OP_READ_RESP)
			continue;
		at = (uint32_t)psn_diff(v.psn, read->psn) * 1024;
		if (at < len)
			memcpy(replay.target + off + at, v.payload, v.payload_len);
	}
}

#define TARGET_VA 0x20080000

static void
target_init(const struct play *play)
{
	memset(keys, 0, sizeof(keys));
	replay_target_fill(&replay);
	if (play->qpn != 0) {
		memory_keys(play);
		return;
	}
	keys[0] = run.rkey;
	keys[1] = run.rkey_ro;
	replay_key_put(&replay, &p.b, run.rkey, TARGET_VA,
		IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE);
	replay_key_put(&replay, &p.b, run.rkey_ro, TARGET_VA,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

/* ---- The memory window ---- */

static struct window *window;
static uint32_t region, window_keys[2];
static unsigned binds, invalidated;

/* With the next key, over the first 64 KiB of the target area, as the generator does. */
static void
window_rebind(void)
{
	struct send_req req = {.wr_id = 1,
		.opcode = IBV_WR_BIND_MW,
		.flags = IBV_SEND_SIGNALED,
		.remote_va = TARGET_VA,
		.compare_add = 0x10000};
	unsigned rights = ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

	if (window == NULL) {
		assert_int_equal(key_alloc(&p.b.keys, p.b.qp.pd, TARGET_VA, replay.target,
					 REPLAY_TARGET_BYTES, rights, &region),
			0);
		window = host_window(&p.b, true);
	}
	req.rkey = ibv_inc_rkey(window->rkey);
	req.swap = (uint64_t)(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ) << 32 |
		   region;
	assert_int_equal(host_post_send(&p.b, &req), 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	expect_sent(&p.b, 1, IBV_WC_SUCCESS);
	window_keys[binds++] = req.rkey;
}

static void
window_end(void)
{
	if (window == NULL)
		return;
	assert_int_equal(invalidated, binds);
	window_destroy(&p.b.keys, window);
	assert_int_equal(key_free(&p.b.keys, region), 0);
	window = NULL;
}

/* A SEND with invalidate says so, and which key it was. */
static void
invalidate_check(const struct cqe *cqe)
{
	if ((cqe->wc_flags & IBV_WC_WITH_INV) == 0)
		return;
	replay_topic_check("receive WC of SEND with invalidate");
	assert_true(invalidated < binds);
	assert_int_equal(cqe->imm, window_keys[invalidated]);
	invalidated++;
}

/* ---- The commands of the run ---- */

static void
recv_post(uint32_t len, bool bad_key)
{
	struct sge sge = host_sge(&p.b, REPLAY_SLOT * recvs, len);

	sge.lkey = bad_key ? 0xBAD00 : p.b.recv_key;
	assert_int_equal(host_post_recv(&p.b, recvs, &sge, 1), 0);
	recvs++;
}

/* Those before the first frame, or those behind the sleep. */
static void
commands_run(bool late)
{
	char text[sizeof(run.commands)], *rest = text, *word;
	bool slept = false;

	snprintf(text, sizeof(text), "%s", run.commands);
	while ((word = strsep(&rest, " ")) != NULL) {
		unsigned n = 1, len = 4096;
		uint64_t at, value;

		/* What stands behind a wait for completions is late as well. */
		slept |= strncmp(word, "sleep:", 6) == 0 || strncmp(word, "rq:", 3) == 0;
		if (strcmp(word, "wait") == 0)
			break;
		if (slept != late)
			continue;
		if (sscanf(word, "recvs:%u:%u", &n, &len) >= 1 ||
			sscanf(word, "recv:%u", &len) == 1) {
			while (n-- != 0)
				recv_post(len, strstr(word, ",l") != NULL);
		} else if (sscanf(word, "set64:%li:%li", (long *)&at, (long *)&value) ==
			   2) {
			memcpy(replay.target + at, &value, 8);
		} else if (strcmp(word, "bindmw") == 0) {
			window_rebind();
		} else if (strcmp(word, "err") == 0) {
			assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
		} else if (strcmp(word, "destroy") == 0) {
			assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
		}
	}
}

/* ---- Answers ---- */

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
answer_compare(const struct difference *d, const struct play *play, unsigned number,
	const struct pkt_view *theirs)
{
	struct pkt_view ours;

	if (d->topic != NULL && d->syndrome == NONE)
		return 0;
	if (p.b.wire_count == 0)
		fail_msg("%s: no answer %u", play->name, number);
	ours = wire_view(&p.b, 0);
	if (d->topic != NULL)
		difference_check(d, &ours, theirs);
	else
		replay_frames_equal(&ours, theirs);
	wire_drop(&p.b, 0);
	return 1;
}

/* The kernel's next answer against the frame that waits on b's wire, if there should be
 * one. */
static unsigned
answer_check(const struct play *play, unsigned number, const struct pkt_view *theirs)
{
	static const struct difference same;
	const struct difference *d = &same;

	for (unsigned i = 0; i < RTE_DIM(play->differences); i++) {
		if (play->differences[i].topic != NULL &&
			play->differences[i].answer == number)
			d = &play->differences[i];
	}
	if (d->topic != NULL)
		replay_topic_check(d->topic);
	if (d->extra) {
		assert_true(p.b.wire_count != 0);
		assert_int_equal(wire_view(&p.b, 0).opcode, d->opcode);
		wire_drop(&p.b, 0);
		return 1 + answer_compare(&same, play, number, theirs);
	}
	return answer_compare(d, play, number, theirs);
}

/* The 40 bytes before a datagram: zeros and the IPv4 header of a frame, or its IPv6
 * header. */
static void
grh_check(const uint8_t *at)
{
	unsigned len = first.ip_version == 4 ? 20 : 40, i = 0;
	struct pkt_view v;

	for (unsigned k = 0; k < 40 - len; k++)
		assert_int_equal(at[k], 0);
	while (i < replay.file.count &&
		(!replay_view(&replay, i, &v) || memcmp(v.ip, at + 40 - len, len) != 0))
		i++;
	assert_true(i < replay.file.count);
}

/* ---- Messages of programs: what the frames brought is what the receive has ---- */

static struct {
	uint8_t bytes[REPLAY_SLOT];
	uint32_t len;
	uint64_t va; /* in the target area */
	unsigned messages;
} expected;

static void
request_expect(const struct pkt_view *v)
{
	uint32_t grh = v->op->service == SERVICE_UD ? 40 : 0;
	struct cqe cqe;

	if (op_is_first(v->op))
		expected.len = 0;
	assert_true(expected.len + v->payload_len <= sizeof(expected.bytes));
	memcpy(expected.bytes + expected.len, v->payload, v->payload_len);
	expected.len += v->payload_len;
	if (v->op->kind == OP_WRITE && op_is_first(v->op))
		expected.va = memory_offset(v);
	if (!op_is_last(v->op))
		return;
	expected.messages++;
	if (v->op->kind == OP_WRITE && expected.len != 0)
		assert_memory_equal(
			replay.target + expected.va, expected.bytes, expected.len);
	if (v->op->kind != OP_SEND && (v->op->hdrs & HDR_IMM) == 0)
		return;
	assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
	assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	assert_int_equal(cqe.byte_len, expected.len + grh);
	if (grh != 0)
		grh_check(p.b.mem + REPLAY_SLOT * cqe.wr_id);
	if (v->op->kind == OP_SEND)
		assert_memory_equal(p.b.mem + REPLAY_SLOT * cqe.wr_id + grh,
			expected.bytes, expected.len);
}

/* ---- Play ---- */

static void
request_take(const struct play *play, unsigned frame)
{
	static uint8_t copy[5000];
	const struct pcap_frame *f = &replay.file.frames[frame];
	struct pkt_view v;

	for (unsigned i = 0; i < RTE_DIM(play->leave); i++) {
		if (play->leave[i] == frame + 1)
			return;
	}
	if (replay.wire[frame] == 'd')
		return;
	if (play->qpn != 0 && replay_view(&replay, frame, &v) && v.op->kind == OP_READ)
		memory_learn(play, frame, &v);
	assert_true(f->len <= sizeof(copy));
	memcpy(copy, f->data, f->len);
	for (unsigned i = 0; i < binds; i++)
		replay_rekey(copy, f->len, run.mw[i], window_keys[i]);
	if (replay.wire[frame] == 'c')
		copy[f->len - 40] ^= 1;
	for (unsigned i = 0; i < 1u + (replay.wire[frame] == '2'); i++) {
		host_take(&p.b, copy, f->len);
		host_pull(&p.b, PULL_ALL); /* an answer each: nothing is coalesced */
	}
	if (play->qpn != 0 && replay_view(&replay, frame, &v))
		request_expect(&v);
}

static void
play_init(const struct play *play)
{
	struct pair_conf conf = pair_defaults();

	replay_load(&replay, play->name);
	if (!replay_run(play->name, 'S', 'R', &run))
		assert_int_equal(replay_run(play->name, 'P', 'R', &run), play->qpn == 0);
	if (play->qpn != 0) {
		run.type = program_type(play);
		run.rd_atomic = QP_MAX_RD_ATOMIC;
	}
	first_find(play);
	conf.type = run.type;
	conf.unconnected = true;
	conf.srq = run.srq;
	conf.mtu = run.mtu;
	conf.psn[0] = play->qpn != 0 ? first.psn : PSN_A;
	conf.mem_bytes = REPLAY_SLOTS * REPLAY_SLOT;
	conf.access = run.access;
	conf.max_dest_rd = run.rd_atomic;
	conf.min_rnr_timer = run.rnr_timer;
	pair_init(&p, &conf);
	target_init(play);
	replay_take_place(&replay, &p.b, &run,
		first.dest_qpn == PSN_MASK ? run.qpn : first.dest_qpn, peer_qpn, &first,
		false);
	recvs = binds = invalidated = 0;
	memset(&expected, 0, sizeof(expected));
	for (unsigned i = 0; i < REPLAY_SLOTS && play->qpn != 0; i++)
		recv_post(REPLAY_SLOT, false);
	commands_run(false);
}

static void
play_frames(const struct play *play)
{
	unsigned answers = 0, given, wanted = 0;
	struct pkt_view v;

	/* All requests, then all answers: tcpdump may have crossed them. */
	for (unsigned i = 0; i < replay.file.count; i++) {
		if (play->recv_at == i + 1)
			commands_run(true);
		if (is_request(play, i))
			request_take(play, i);
	}
	given = p.b.wire_count;
	for (unsigned i = 0; i < replay.file.count; i++) {
		if (replay_view(&replay, i, &v) && is_answer(play, &v))
			wanted += answer_check(play, ++answers, &v);
	}
	if (given != wanted)
		fail_msg("%s: %u answers, wanted %u", play->name, given, wanted);
}

/* How many completions the generator waited for. */
static unsigned
polled(void)
{
	char text[sizeof(run.commands)], *rest = text, *word;
	unsigned n, sum = 0;

	snprintf(text, sizeof(text), "%s", run.commands);
	while ((word = strsep(&rest, " ")) != NULL)
		sum += sscanf(word, "rq:%u", &n) == 1 ? n : 0;
	return sum;
}

/* Receives complete in order: number i of the log, and behind its end. */
static const struct wc_difference *
difference_of(const struct play *play, unsigned i)
{
	for (unsigned k = 0; k < RTE_DIM(play->wcs); k++) {
		const struct wc_difference *d = &play->wcs[k];

		if (d->topic != NULL && d->wr_id == i) {
			replay_topic_check(d->topic);
			return d;
		}
	}
	return NULL;
}

/* The completions of the log, in order, each but for a difference with a topic. Where the
 * generator waited for more than came, what it misses can only be flushed. */
static void
completions_check(const struct play *play)
{
	struct replay_wc none = {.status = IBV_WC_WR_FLUSH_ERR};
	struct cqe cqe;

	for (unsigned i = 0; i < run.wc_count + RTE_DIM(play->wcs); i++) {
		const struct wc_difference *d = difference_of(play, i);

		if (d != NULL && d->status == NO_WC)
			continue;
		if (d == NULL && i >= run.wc_count)
			break;
		assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
		if (cqe.wc_flags & IBV_WC_GRH)
			grh_check(p.b.mem + REPLAY_SLOT * cqe.wr_id);
		invalidate_check(&cqe);
		if (d == NULL) {
			replay_wc_equal(
				&cqe, &run.wcs[i], p.b.mem + REPLAY_SLOT * cqe.wr_id);
			continue;
		}
		assert_int_equal(cqe.wr_id, d->wr_id);
		assert_int_equal(cqe.status, d->status);
		if (d->status == IBV_WC_SUCCESS)
			assert_int_equal(cqe.byte_len, d->len);
	}
	while (host_poll(&p.b, &p.b.recv_cq, &cqe)) {
		if (polled() == run.wc_count)
			continue;
		none.wr_id = cqe.wr_id;
		replay_wc_equal(&cqe, &none, NULL);
	}
}

static void
test_responder(void **state)
{
	struct event_record event;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(plays); i++) {
		const struct play *play = &plays[i];

		running = play->name;
		play_init(play);
		play_frames(play);
		if (play->qpn == 0)
			completions_check(play);
		else
			assert_int_not_equal(expected.messages, 0);
		window_end();
		while (event_next(&p.b.events, &event) == 0)
			; /* which one: write_key_test.c, read_refused_test.c, atomic_test.c */
		for (unsigned k = 0; k < 2; k++) {
			if (keys[k] != 0)
				replay_key_drop(&p.b, keys[k]);
		}
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
		print_error("in %s\n", running);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_responder, teardown),
	};

	return cmocka_run_group_tests_name("qp capture", tests, NULL, NULL);
}
