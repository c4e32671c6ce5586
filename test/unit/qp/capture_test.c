/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replay against the Linux kernel's driver (test/captures). Our responder receives the
 * requests of the kernel's requester. Its responses are compared field by field with the
 * kernel's, its receive completions with those in the log (runs.tsv). Where the kernel
 * differs from the IBA, the capture's row (struct capture_case) names the topic of
 * docs/protocol.md 19. Any other difference fails. The requester's half is
 * capture_requester_test.c. test/captures/replayed.tsv lists both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "capture_fixture.h"

#define LENGTHS "SEND packet length rules"
#define READ_PAYLOAD "READ request with payload"
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
static const struct capture_case entries[] = {
	{.name = "01-rc-send-only"},
	{.name = "02-rc-send-multi"},
	{.name = "03-rc-send-imm"},
	/* rxe's receive completions have IP_CSUM_OK in the place of WITH_INV. */
	{.name = "04-rc-send-inv", .recv_at = 7},
	{.name = "05-rc-write"},
	{.name = "06-rc-write-imm"},
	{.name = "07-rc-read"},
	{.name = "08-rc-atomic"},
	{.name = "09-rc-pipeline"},
	{.name = "10-rc-mtu256"},
	{.name = "11-rc-mtu512"},
	{.name = "12-rc-psn-wrap"},
	{.name = "13-rc-psn-wrap-read"},
	{.name = "14-rc-srq"},
	{.name = "15-rc-solicited"},
	{.name = "16-rc-inline-unaligned"},
	{.name = "17-rc-long-ackreq"},
	{.name = "17b-rc-long-loss"},
	{.name = "18-rc-mtu2048"},
	{.name = "19-rc-mtu4096"},
	{.name = "19b-ud-mtu4096"},
	{.name = "20-uc"},
	{.name = "21-ud"},
	{.name = "22-ud-ipv6"},
	{.name = "23-ud-too-long",
		.wcs = {{"UD buffer too small", 0, NO_WC, 0}, {"UD buffer too small", 1, NO_WC, 0}}},
	{.name = "24-ud-mcast"},
	{.name = "25-uc-ipv6"},
	{.name = "26-rc-ipv6-linklocal"},
	{.name = "27-rc-ipv6-global"},
	{.name = "28-rc-dscp-ecn"},
	{.name = "29-rc-vlan"},
	{.name = "30-rc-rnr", .recv_at = 7},
	{.name = "31-rc-rnr-retry-exceeded",
		.differences = {SILENT(2, "after RNR NAK"), SILENT(4, "after RNR NAK"),
			SILENT(6, "after RNR NAK")}},
	{.name = "32-rc-rnr-multi", .recv_at = 19,
		.differences = {SILENT(2, "after RNR NAK"), SILENT(4, "after RNR NAK")}},
	{.name = "33-rc-rnr-write-imm", .recv_at = 11},
	{.name = "34-rc-srq-empty-rnr", .recv_at = 5},
	{.name = "35-rc-nak-access-write"},
	{.name = "36-rc-nak-access-read"},
	{.name = "37-rc-nak-access-atomic"},
	{.name = "38-rc-nak-access-perm"},
	{.name = "39-rc-nak-access-range"},
	{.name = "40-rc-nak-inv-write"},
	{.name = "42-rc-nak-send-too-long",
		.differences = {NAK_INV(1, 0, TOO_LONG)},
		.wcs = {{TOO_LONG, 0, IBV_WC_LOC_LEN_ERR, 0}}},
	{.name = "43-rc-nak-send-too-long-multi",
		.differences = {NAK_INV(1, 1, TOO_LONG)},
		.wcs = {{TOO_LONG, 0, IBV_WC_LOC_LEN_ERR, 0}}},
	{.name = "44-rc-nak-recv-lkey", .wcs = {{RECV_SGE, 0, IBV_WC_LOC_PROT_ERR, 0}}},
	{.name = "47-rc-nak-mw-invalidated"},
	{.name = "48-rc-remote-err"},
	{.name = "49-rc-remote-destroyed"},
	{.name = "50-rc-drop-middle"},
	{.name = "51-rc-drop-two"},
	{.name = "52-rc-drop-last-timeout"},
	{.name = "53-rc-drop-ack"},
	{.name = "54-rc-drop-ack-coalesced"},
	{.name = "55-rc-retry-exceeded"},
	{.name = "56-rc-drop-nak"},
	{.name = "57-rc-read-drop-req"},
	{.name = "58-rc-read-drop-first"},
	{.name = "59-rc-read-drop-middle",
		.differences = {{.response = 5,
			.opcode = OPCODE_RC_READ_RESPONSE_FIRST,
			.topic = "partial READ replay"}}},
	{.name = "60-rc-read-drop-last",
		.differences = {{.response = 6,
			.opcode = OPCODE_RC_READ_RESPONSE_ONLY,
			.topic = "partial READ replay"}}},
	{.name = "61-rc-read-drop-only"},
	{.name = "62-rc-atomic-drop-ack"},
	{.name = "63-rc-atomic-drop-ack-pipelined"},
	{.name = "64-rc-wire-dup"},
	{.name = "65-rc-wire-reorder"},
	{.name = "66-rc-corrupt"},
	{.name = "67-rc-dup-read-full"},
	{.name = "68-rc-drop-ack-delay"},
	{.name = "70-uc-drop",
		.wcs = {{UC_AFTER, 1, IBV_WC_SUCCESS, 20}, {UC_AFTER, 2, IBV_WC_SUCCESS, 30}}},
	{.name = "71-uc-drop-only"},
	{.name = "72-uc-drop-last",
		.wcs = {{UC_AFTER, 1, IBV_WC_SUCCESS, 20}, {UC_AFTER, 2, IBV_WC_SUCCESS, 30}}},
	{.name = "73-uc-no-recv", .recv_at = 2},
	/* FLUSH and ATOMIC WRITE, which that kernel does not know, are left out. */
	{.name = "c0-silent-drops", .left_out = {13, 14}},
	{.name = "c1-accepted-oddities"},
	{.name = "c2-opseq-03"},
	{.name = "c2-opseq-07"},
	{.name = "c3-length-05",
		.differences = {NAK_INV(1, 0, LENGTHS), SILENT(2, LENGTHS)},
		.wcs = {{LENGTHS, 0, IBV_WC_WR_FLUSH_ERR, 0}, {LENGTHS, 1, IBV_WC_WR_FLUSH_ERR, 0}}},
	{.name = "c3-length-11"},
	{.name = "c3-length-17",
		.differences = {NAK_INV(1, 0, READ_PAYLOAD), SILENT(2, READ_PAYLOAD)},
		.wcs = {{READ_PAYLOAD, 0, IBV_WC_WR_FLUSH_ERR, 0}}},
	{.name = "c5b-dup-read-subset",
		.differences = {{.response = 8,
					.opcode = OPCODE_RC_READ_RESPONSE_FIRST,
					.topic = "partial READ replay"},
			{.response = 10,
				.opcode = OPCODE_RC_READ_RESPONSE_FIRST,
				.extra = 3,
				.topic = "READ duplicate of the rest"}}},
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
		.differences = {{.response = 8,
					.opcode = OPCODE_RC_READ_RESPONSE_FIRST,
					.topic = "partial READ replay"},
			{.response = 10,
				.opcode = OPCODE_RC_READ_RESPONSE_ONLY,
				.topic = "partial READ replay"},
			{.response = 11,
				.opcode = OPCODE_RC_READ_RESPONSE_ONLY,
				.extra = 1,
				.topic = "READ duplicate of the rest"},
			{.response = 16,
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
#define PROGRAM(capture, number, left, ackreq_differs) {.name = capture, .qpn = number, .left_out = {left}},
#include "capture_programs.def"
#undef PROGRAM
};
/* clang-format on */

struct qp_link p;
struct replay replay;
struct replay_run run;
static const char *running; /* the capture in which a test failed */
static uint32_t recvs;      /* posted */
/* ---- The commands of the run ---- */

static void
recv_post(uint32_t len, bool bad_key)
{
	struct sge sge = host_sge(&p.b, REPLAY_SLOT * recvs, len);

	sge.lkey = bad_key ? 0xBAD00 : p.b.recv_key;
	assert_int_equal(host_post_recv(&p.b, recvs, &sge, 1), 0);
	recvs++;
}

/* Runs the commands before the first frame, or (late) those after the sleep. */
static void
commands_run(bool late)
{
	char text[sizeof(run.commands)], *rest = text, *word;
	bool slept = false;

	snprintf(text, sizeof(text), "%s", run.commands);
	while ((word = strsep(&rest, " ")) != NULL) {
		unsigned n = 1, len = 4096;
		uint64_t at, value;

		/* Commands after a wait for completions are late, too. */
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
			capture_mw_rebind();
		} else if (strcmp(word, "err") == 0) {
			assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
		} else if (strcmp(word, "destroy") == 0) {
			assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
		}
	}
}

/* ---- Replay ---- */

static void
request_deliver(const struct capture_case *entry, unsigned frame)
{
	static uint8_t copy[5000];
	const struct pcap_frame *f = &replay.file.frames[frame];
	struct pkt_view v;

	for (unsigned i = 0; i < RTE_DIM(entry->left_out); i++) {
		if (entry->left_out[i] == frame + 1)
			return;
	}
	if (replay.wire[frame] == 'd')
		return;
	if (entry->qpn != 0 && replay_view(&replay, frame, &v)) {
		if (v.op->kind == OP_READ)
			memory_fill_from_responses(entry, frame, &v);
		else if (v.op->kind == OP_FETCH_ADD)
			memory_fill_from_atomic(entry, frame, &v);
	}
	assert_true(f->len <= sizeof(copy));
	memcpy(copy, f->data, f->len);
	for (unsigned i = 0; i < binds; i++)
		replay_rkey_replace(copy, f->len, run.mw[i], mw_keys[i]);
	if (replay.wire[frame] == 'c')
		copy[f->len - 40] ^= 1;
	for (unsigned i = 0; i < 1u + (replay.wire[frame] == '2'); i++) {
		host_rx(&p.b, copy, f->len);
		/* one response per request: none is coalesced */
		host_pull(&p.b, PULL_ALL);
	}
	if (entry->qpn != 0 && replay_view(&replay, frame, &v))
		message_expect(&v);
}

static void
entry_init(const struct capture_case *entry)
{
	struct qp_link_conf conf = qp_link_defaults();

	replay_load(&replay, entry->name);
	if (!replay_run(entry->name, 'S', 'R', &run))
		assert_int_equal(
			replay_run(entry->name, 'P', 'R', &run), entry->qpn == 0);
	if (entry->qpn != 0) {
		run.type = program_type(entry);
		run.rd_atomic = QP_MAX_RD_ATOMIC;
	}
	first_request_find(entry);
	conf.type = run.type;
	conf.unconnected = true;
	conf.srq = run.srq;
	conf.mtu = run.mtu;
	/* Scripts begin with other PSNs on purpose. */
	conf.psn[0] = entry->name[0] == 'c' ? PSN_A : first_request.psn;
	conf.mem_bytes = REPLAY_SLOTS * REPLAY_SLOT;
	conf.access = run.access;
	conf.max_dest_rd = run.rd_atomic;
	conf.min_rnr_timer = run.rnr_timer;
	qp_link_init(&p, &conf);
	p.b.shared.cnp_off = true; /* the kernel's driver sends no CNPs */
	target_init(entry);
	replay_host_connect(&replay, &p.b, &run,
		first_request.dest_qpn == PSN_MASK ? run.qpn : first_request.dest_qpn,
		peer_qpn, &first_request, false);
	recvs = binds = invalidated = 0;
	memset(&expected, 0, sizeof(expected));
	for (unsigned i = 0; i < REPLAY_SLOTS && entry->qpn != 0; i++)
		recv_post(REPLAY_SLOT, false);
	commands_run(false);
}

static void
frames_replay(const struct capture_case *entry)
{
	unsigned answers = 0, given, wanted = 0;
	struct pkt_view v;

	/* All requests first, then all responses: tcpdump may have recorded them out of
	 * order. */
	for (unsigned i = 0; i < replay.file.count; i++) {
		if (entry->recv_at == i + 1)
			commands_run(true);
		if (i != 0 && replay.wire[i - 1] == 's')
			continue;
		if (replay.wire[i] == 's')
			request_deliver(entry, i + 1);
		if (is_request(entry, i))
			request_deliver(entry, i);
	}
	given = p.b.wire_count;
	for (unsigned i = 0; i < replay.file.count; i++) {
		if (replay_view(&replay, i, &v) && is_response(entry, &v))
			wanted += response_check(entry, ++answers, &v);
	}
	if (given != wanted)
		fail_msg("%s: %u answers, wanted %u", entry->name, given, wanted);
}

static int
teardown(void **state)
{
	if (running != NULL)
		print_error("in %s\n", running);
	return 0;
}

TEST_WITH(responder_answers_as_kernel, NULL, teardown)
{
	struct event_record event;

	for (unsigned i = 0; i < RTE_DIM(entries); i++) {
		const struct capture_case *entry = &entries[i];

		running = entry->name;
		entry_init(entry);
		frames_replay(entry);
		if (entry->qpn == 0)
			completions_check(entry);
		else
			assert_int_not_equal(expected.messages, 0);
		capture_mw_destroy();
		while (event_next(&p.b.events, &event) == 0)
			/* checked by write_key_test.c, read_refused_test.c,
			 * atomic_test.c */
			;
		for (unsigned k = 0; k < 2; k++) {
			if (keys[k] != 0)
				replay_key_drop(&p.b, keys[k]);
		}
		qp_link_fini(&p);
		replay_unload(&replay);
	}
	running = NULL;
}
