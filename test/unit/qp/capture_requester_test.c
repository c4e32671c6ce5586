/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replay against the Linux kernel's driver (test/captures). Our requester posts what the
 * traffic generator posted and receives the responses of the kernel, or of a script. Each
 * frame that our QP sends is compared with the kernel's, each completion with the log's
 * (runs.tsv). Where the kernel differs from the IBA, the capture's row (struct
 * capture_case) names the topic of docs/protocol.md 19. Any other difference fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "capture_requester_fixture.h"

#define LONG "AckReq inside a long message"
#define UNSIGNALED "AckReq of an unsignaled request"
#define ACK_FOR_READ "requester: plain ACK for a READ/ATOMIC PSN"
#define RESERVED "requester: reserved syndrome, READ MIDDLE first"
#define NAK_CODES "requester: NAK 0x64 and reserved NAK codes"
#define READ_SHORT "requester: READ response too short"
#define MTU_OF_PORT "UD message longer than the port MTU"

/* clang-format off */
static const struct capture_case entries[] = {
	{.name = "01-rc-send-only"},
	{.name = "02-rc-send-multi"},
	{.name = "03-rc-send-imm"},
	{.name = "04-rc-send-inv"},
	{.name = "05-rc-write"},
	{.name = "06-rc-write-imm"},
	{.name = "07-rc-read"},
	{.name = "08-rc-atomic"},
	{.name = "09-rc-pipeline", .topic = UNSIGNALED, .ackreq_last = 23},
	{.name = "10-rc-mtu256"},
	{.name = "11-rc-mtu512"},
	{.name = "12-rc-psn-wrap", .topic = LONG, .ackreq = true},
	{.name = "13-rc-psn-wrap-read"},
	{.name = "14-rc-srq"},
	{.name = "15-rc-solicited"},
	/* Our requester splits its READ of 79 packets. */
	{.name = "16-rc-inline-unaligned"},
	{.name = "17-rc-long-ackreq", .topic = LONG,
		.ackreq = true, .reordered = true, .end = 200, .diverges = true},
	/* For the NAK our requester first sends just the missing packet again (7.9). */
	{.name = "17b-rc-long-loss", .topic = LONG, .ackreq = true, .end = 58, .diverges = true},
	{.name = "18-rc-mtu2048"},
	{.name = "19-rc-mtu4096"},
	{.name = "19b-ud-mtu4096"},
	{.name = "20-uc"},
	{.name = "21-ud"},
	/* ibv_post_send() refuses it: test/verbs/ud_test.c. */
	{.name = "22-ud-ipv6"},
	{.name = "23-ud-too-long", .topic = MTU_OF_PORT, .end = 2, .diverges = true},
	{.name = "24-ud-mcast"},
	{.name = "25-uc-ipv6"},
	{.name = "26-rc-ipv6-linklocal"},
	{.name = "27-rc-ipv6-global"},
	{.name = "28-rc-dscp-ecn"},
	{.name = "29-rc-vlan"},
	{.name = "30-rc-rnr"},
	{.name = "31-rc-rnr-retry-exceeded"},
	{.name = "32-rc-rnr-multi"},
	{.name = "33-rc-rnr-write-imm", .topic = "requester: RNR NAK inside a message", .skip = {5, 6}},
	{.name = "34-rc-srq-empty-rnr"},
	{.name = "35-rc-nak-access-write"},
	{.name = "36-rc-nak-access-read"},
	{.name = "37-rc-nak-access-atomic"},
	{.name = "38-rc-nak-access-perm"},
	{.name = "39-rc-nak-access-range"},
	{.name = "40-rc-nak-inv-write"},
	{.name = "42-rc-nak-send-too-long"},
	{.name = "43-rc-nak-send-too-long-multi"},
	{.name = "44-rc-nak-recv-lkey"},
	{.name = "45-rc-local-prot",
		.wcs = {{"lkey error at the requester", 1, IBV_WC_LOC_PROT_ERR}}},
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
	{.name = "59-rc-read-drop-middle"},
	{.name = "60-rc-read-drop-last"},
	{.name = "61-rc-read-drop-only"},
	{.name = "62-rc-atomic-drop-ack"},
	{.name = "63-rc-atomic-drop-ack-pipelined"},
	{.name = "64-rc-wire-dup"},
	{.name = "65-rc-wire-reorder", .topic = "requester: a second sequence NAK", .skip = {7}},
	{.name = "66-rc-corrupt"},
	{.name = "67-rc-dup-read-full", .shared = true},
	{.name = "68-rc-drop-ack-delay"},
	{.name = "70-uc-drop"},
	{.name = "71-uc-drop-only"},
	{.name = "72-uc-drop-last"},
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
	/* The log ends before the timeout; our requester requests the rest at once. */
	{.name = "d9-req-read-gap", .diverges = true},
	{.name = "d10-req-read-acked", .topic = ACK_FOR_READ, .diverges = true},
	{.name = "d11-req-send-answered-by-read-resp",
		.wcs = {{"requester: SEND answered by READ response", 1, IBV_WC_BAD_RESP_ERR}}},
	{.name = "d12-req-seqnak-partial"},
	{.name = "d13-req-rnr-partial", .topic = "RNR wait: the ACK timer runs on",
		.skip = {7, 8}},
	{.name = "d14-req-nak-access-partial"},
	{.name = "d15-req-read-rest-first"},
	{.name = "d16-req-atomic-ack-by-ack", .topic = ACK_FOR_READ, .diverges = true},
	{.name = "d17-req-implied-nak"},
	/* Programs: the posted requests follow from the frames. */
#define PROGRAM(capture, number, left, ackreq_differs)                                             \
	{.name = capture, .qpn = number, .ackreq = ackreq_differs, .topic = ackreq_differs ? LONG : NULL},
#include "capture_programs.def"
#undef PROGRAM
};
/* clang-format on */

struct qp_link p;
struct replay replay;
struct replay_run run;
static const char *running; /* the capture in which a test failed */
struct pkt_view first_request;
uint32_t server_rkey; /* R_Key of requests if the capture has none */
unsigned next_frame, posted;
static unsigned polled;
bool mcast;
static struct cqe cqes[32];

bool
is_request(const struct pkt_view *v)
{
	unsigned src = v->ip_version == 4 ? 12 : 8, len = v->ip_version == 4 ? 4 : 16;

	return memcmp(v->ip + src, first_request.ip + src, len) == 0;
}

/* ---- The wire ---- */

static void
completions_take(void)
{
	while (polled < RTE_DIM(cqes) && host_poll(&p.a, &p.a.send_cq, &cqes[polled]))
		polled++;
}

/* Advances time until the QP sends a frame or has no deadline left. */
static void
wait_sent(void)
{
	for (unsigned i = 0; i < 100 && p.a.wire_count == 0; i++) {
		uint64_t deadline;

		host_pull(&p.a, PULL_ALL);
		deadline = qp_deadline(&p.a.qp);
		if (p.a.wire_count != 0 || deadline == TIME_NEVER)
			break;
		qp_link_advance(&p, deadline - RTE_MIN(deadline, p.now));
	}
}

/* Delivers the next response of the capture now. */
static void
next_response_deliver(void)
{
	struct pkt_view v;

	for (unsigned i = next_frame; i < replay.file.count; i++) {
		assert_true(replay_view(&replay, i, &v));
		if (is_request(&v) || replay.wire[i] == 'd')
			continue;
		host_rx(&p.a, replay.file.frames[i].data, replay.file.frames[i].len);
		replay.wire[i] = 'd';
		host_pull(&p.a, PULL_ALL);
		return;
	}
}

static void
request_compare(const struct capture_case *entry, const struct pkt_view *theirs)
{
	struct pkt_view ours;

	if (p.a.wire_count == 0)
		host_pull(&p.a, PULL_ALL);
	if (p.a.wire_count == 0 && entry->reordered)
		next_response_deliver();
	if (p.a.wire_count == 0)
		wait_sent();
	if (p.a.wire_count == 0)
		fail_msg("%s: frame %u is not sent", replay.name, next_frame);
	ours = wire_view(&p.a, 0);
	if ((entry->ackreq && !op_is_last(ours.op)) ||
		(entry->ackreq_last != 0 && entry->ackreq_last == next_frame)) {
		replay_topic_check(entry->topic);
		ours.ack_req = theirs->ack_req;
	}
	replay_frames_equal(&ours, theirs);
	wire_drop(&p.a, 0);
}

static void
frame_deliver(unsigned frame)
{
	host_rx(&p.a, replay.file.frames[frame].data, replay.file.frames[frame].len);
}

static bool
frame_is_skipped(const struct capture_case *entry, unsigned frame)
{
	if (frame != entry->skip[0] && frame != entry->skip[1])
		return false;
	replay_topic_check(entry->topic);
	return true;
}

/* Replays frames until n more completions have come. */
static void
frames_replay(const struct capture_case *entry, unsigned n)
{
	unsigned end = entry->end != 0 ? entry->end - 1u : (unsigned)replay.file.count;
	unsigned want = polled + n;
	struct pkt_view v;

	while (polled < want && next_frame < end) {
		unsigned frame = next_frame++;

		assert_true(replay_view(&replay, frame, &v));
		if (frame_is_skipped(entry, frame + 1))
			continue;
		if (is_request(&v))
			request_compare(entry, &v);
		else if (replay.wire[frame] == 0)
			frame_deliver(frame);
		/* The delayed one comes now. */
		if (frame != 0 && replay.wire[frame - 1] == 'l')
			frame_deliver(frame - 1);
		completions_take();
	}
	/* The remaining completions depend on no frame of the peer: retries exceeded, a
	 * local error. */
	for (unsigned i = 0; i < 20 && polled < want && !entry->diverges; i++) {
		host_pull(&p.a, PULL_ALL);
		if (p.a.wire_count != 0)
			fail_msg("%s: a frame more than the kernel's", entry->name);
		if (qp_deadline(&p.a.qp) != TIME_NEVER)
			qp_link_advance(&p, qp_deadline(&p.a.qp) - p.now);
		completions_take();
	}
}

static void
commands_run(const struct capture_case *entry)
{
	char text[sizeof(run.commands)], *rest = text, *word;
	unsigned n;

	snprintf(text, sizeof(text), "%s", run.commands);
	while ((word = strsep(&rest, " ")) != NULL) {
		if (word_post(word))
			continue;
		if (sscanf(word, "sq:%u", &n) == 1)
			frames_replay(entry, n);
	}
	/* UC and UD requests are complete when sent: compare the frames still on the
	 * wire. */
	frames_replay(entry, RTE_DIM(cqes));
	if (!entry->diverges)
		return;
	/* Our QP now sends what the capture does not show. */
	if (entry->topic != NULL)
		replay_topic_check(entry->topic);
	wait_sent();
	assert_int_not_equal(p.a.wire_count, 0);
	wire_drop_all(&p.a);
	completions_take();
	assert_true(polled < posted || run.type == IBV_QPT_UD);
}

/* ---- Completions ---- */

static void
completions_check(const struct capture_case *entry)
{
	const struct wc_difference *d = &entry->wcs[0];
	unsigned extra = 0;

	for (unsigned i = 0; i < run.wc_count; i++) {
		struct replay_wc wc = run.wcs[i];

		if (entry->diverges && i == polled)
			break;

		if (d->topic != NULL && d->wr_id == wc.wr_id) {
			replay_topic_check(d->topic);
			wc.status = (enum ibv_wc_status)d->status;
		}
		assert_true(i < polled);
		wc.has_crc &= !entry->shared;
		replay_wc_equal(
			&cqes[i], &wc, p.a.mem + REPLAY_SLOT * (cqes[i].wr_id - 1));
	}
	if (run.wc_count == 0 && d->topic != NULL) {
		replay_topic_check(d->topic);
		assert_int_equal(cqes[0].wr_id, d->wr_id);
		assert_int_equal(cqes[0].status, d->status);
		extra = 1;
	}
	if (!entry->diverges)
		assert_int_equal(polled, run.wc_count + extra);
}

static void
program_run(const struct capture_case *entry)
{
	unsigned answers = 0;
	struct pkt_view v;

	while (next_frame < replay.file.count) {
		unsigned frame = next_frame++;

		if (is_program_request(entry, frame, &v)) {
			if (op_is_first(v.op))
				message_post(entry, frame);
			request_compare(entry, &v);
		} else if (replay_view(&replay, frame, &v) && op_is_response(v.op) &&
			   v.dest_qpn == p.a.qp.qpn && !is_request(&v)) {
			frame_deliver(frame);
			answers++;
		}
		completions_take();
	}
	assert_true(posted != 0);
	/* The response to the last request may be missing: the program had exited. */
	assert_true(polled == posted || (polled + 1 == posted && answers != 0));
	for (unsigned i = 0; i < polled; i++) {
		assert_int_equal(cqes[i].wr_id, i + 1);
		assert_int_equal(cqes[i].status, IBV_WC_SUCCESS);
	}
	if (polled != posted)
		assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
}

/* Finds the first request to the QP; returns the QPN to which its responses go. */
static uint32_t
program_find(const struct capture_case *entry)
{
	unsigned i = 0;
	struct pkt_view v;
	uint32_t qpn;

	while (!is_program_request(entry, i, &first_request)) {
		i++;
		assert_true(i < replay.file.count);
	}
	run.type = replay_type(&first_request);
	run.udp_sport = (uint16_t)(((const uint8_t *)first_request.bth)[-8] << 8 |
				   ((const uint8_t *)first_request.bth)[-7]);
	if (run.type != IBV_QPT_RC)
		return run.type == IBV_QPT_UD
			       ? be24_get(view_deth(&first_request)->src_qpn)
			       : 0x777;
	for (qpn = 0; qpn == 0; i++) {
		assert_true(i < replay.file.count);
		if (replay_view(&replay, i, &v) && op_is_response(v.op) &&
			!is_request(&v) && psn_diff(v.psn, first_request.psn) >= 0 &&
			psn_diff(v.psn, first_request.psn) < 16)
			qpn = v.dest_qpn;
	}
	return qpn;
}

static void
entry_init(const struct capture_case *entry)
{
	bool script = entry->name[0] == 'd';
	struct qp_link_conf conf = qp_link_defaults();
	struct replay_run peer;
	uint32_t qpn;

	replay_load(&replay, entry->name);
	assert_int_equal(
		replay_run(entry->name, script ? 'P' : 'C', 'S', &run), entry->qpn == 0);
	qpn = entry->qpn != 0 ? program_find(entry) : run.qpn;
	if (entry->qpn == 0 && replay.file.count != 0)
		assert_true(replay_view(&replay, 0, &first_request));
	server_rkey = replay_run(entry->name, 'S', 'R', &peer) ? peer.rkey : 0;
	mcast = strstr(entry->name, "mcast") != NULL;
	conf.type = run.type;
	conf.unconnected = true;
	conf.mtu = run.mtu;
	conf.psn[0] = replay.file.count != 0 ? first_request.psn : PSN_A;
	conf.mem_bytes = REPLAY_SLOTS * REPLAY_SLOT;
	conf.access = run.access;
	conf.max_rd = entry->qpn != 0 ? QP_MAX_RD_ATOMIC : run.rd_atomic;
	conf.timeout = run.timeout;
	conf.retry_cnt = run.retry;
	conf.rnr_retry = run.rnr_retry;
	qp_link_init(&p, &conf);
	p.a.shared.tlp_off = true; /* the kernel's driver sends no probes */
	posted = polled = next_frame = 0;
	if (replay.file.count == 0) { /* 45: any path will do */
		qp_link_connect(&p);
		return;
	}
	if (first_request.op->service == SERVICE_UD)
		qpn = be24_get(view_deth(&first_request)->src_qpn);
	replay_host_connect(
		&replay, &p.a, &run, qpn, first_request.dest_qpn, &first_request, true);
}

static int
teardown(void **state)
{
	if (running != NULL)
		print_error("in %s, frame %u\n", running, next_frame);
	return 0;
}

TEST_WITH(requester_sends_as_kernel, NULL, teardown)
{
	struct event_record event;

	for (unsigned i = 0; i < RTE_DIM(entries); i++) {
		const struct capture_case *entry = &entries[i];

		running = entry->name;
		entry_init(entry);
		if (entry->qpn != 0) {
			program_run(entry);
		} else {
			commands_run(entry);
			completions_check(entry);
		}
		while (event_next(&p.a.events, &event) == 0)
			; /* completer_test.c checks the events */
		qp_link_fini(&p);
		replay_unload(&replay);
	}
	running = NULL;
}
