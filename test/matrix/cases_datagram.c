/* SPDX-License-Identifier: BSD-3-Clause */
/* UD: multicast, replies to the address in the GRH, header fields, receives that are too
 * short. */
#include <string.h>

#include "host.h"

#define ALL_QPNS 0xFFFFFF
#define ANSWER_LEN 233

static const struct link_conf ud = {.type = IBV_QPT_UD};

static const char *
need_mcast(struct matrix *t, const void *arg)
{
	(void)arg;
	return t->device.orig_attr.max_mcast_grp == 0 ? "the device has no multicast"
						      : NULL;
}

static const char *
datagram_send(
	struct matrix *t, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)link_source(t, 0), len, t->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 7,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey},
	};
	struct ibv_wc wc;

	TRY(link_send(t, &wr));
	return link_done(t, t->send_cq, 7, &wc);
}

/* Waits for a datagram and checks it. Sets *arrived if one came in time. */
static const char *
datagram_wait(
	struct matrix *t, uint32_t len, unsigned slot, struct ibv_wc *wc, bool *arrived)
{
	int got = link_await_lossy(t, t->recv_cq, wc);

	*arrived = got == 1;
	if (got == 0)
		return NULL;
	NEED(t, got == 1 && wc->status == IBV_WC_SUCCESS);
	NEED(t, wc->byte_len == MATRIX_GRH + len);
	return data_check(t, link_target(t, wc->wr_id) + MATRIX_GRH, len, slot);
}

/* ---- Multicast ---- */

/* A group of the address family that the connection uses. */
static union ibv_gid
group_gid(const struct matrix *t, unsigned n)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	union ibv_gid gid = {{0}};

	if (memcmp(t->gid.raw, mapped, 12) == 0) {
		memcpy(gid.raw, mapped, 12);
		gid.raw[12] = 239;
		gid.raw[13] = 77;
	} else {
		gid.raw[0] = 0xff;
		/* link-local scope, transient: not a well-known group */
		gid.raw[1] = 0x12;
		gid.raw[12] = 0x77;
	}
	gid.raw[14] = (uint8_t)(t->seed >> 8);
	gid.raw[15] = (uint8_t)(2 * t->seed + n);
	return gid;
}

struct mcast {
	const char *name;
	uint32_t len; /* at most the path MTU */
	/* the active end is a member too; it gets no copy of its own datagrams */
	bool sender;
};

/* The passive end gets one copy. A QP that is not attached gets none. */
static const char *
mcast_sent(struct matrix *t, struct ibv_ah *ah, uint32_t len, bool *arrived)
{
	struct ibv_wc wc;

	TRY(oob_sync(t));
	if (t->active)
		TRY(datagram_send(t, ah, ALL_QPNS, MATRIX_QKEY, len));
	TRY(oob_sync(t));
	*arrived = true;
	if (!t->active) {
		TRY(datagram_wait(t, len, 3, &wc, arrived));
		NEED(t, !*arrived || wc.src_qp == t->peer.qpn);
	}
	return link_idle(t, t->recv_cq);
}

/* The datagram arrives while the passive end is attached, and not once it is detached. */
static const char *
mcast_once(struct matrix *t, const struct mcast *m, struct ibv_ah *ah, union ibv_gid *gid,
	bool *arrived)
{
	uint32_t len = m->len <= t->mtu ? m->len : t->mtu;
	/* a second copy is a duplicate of the wire, or wrong */
	unsigned receives = t->copies ? 1 : 2;
	uint8_t mine, theirs;
	const char *why;

	data_fill(t, link_source(t, 0), len, 3);
	for (unsigned i = 0; i < receives; i++) {
		data_clear(link_target(t, i), MATRIX_GRH + len);
		TRY(link_recv(t, i, link_target(t, i), MATRIX_GRH + len));
	}
	if (!t->active || m->sender) {
		TRY(host_join(gid, t->ifindex));
		NEED(t, ibv_attach_mcast(t->qp, gid, 0) == 0);
		/* attaching twice has no effect */
		NEED(t, ibv_attach_mcast(t->qp, gid, 0) == 0);
	}
	why = mcast_sent(t, ah, len, arrived);
	if (!t->active || m->sender)
		NEED(t, ibv_detach_mcast(t->qp, gid, 0) == 0);
	TRY(why);
	mine = *arrived;
	TRY(oob_swap(t, &mine, &theirs, 1));
	*arrived = mine && theirs;
	if (t->active)
		TRY(datagram_send(t, ah, ALL_QPNS, MATRIX_QKEY, len));
	TRY(oob_sync(t));
	return link_idle(t, t->recv_cq);
}

static const char *
mcast_case(struct matrix *t, const void *arg)
{
	for (unsigned i = 0; i < link_sends(t); i++) {
		union ibv_gid gid = group_gid(t, 0);
		bool arrived = false;
		struct ibv_ah *ah;
		const char *why;

		TRY(link_open(t, &ud));
		ah = link_ah(t, gid.raw);
		NEED(t, ah != NULL);
		why = mcast_once(t, arg, ah, &gid, &arrived);
		host_leave();
		if (ibv_destroy_ah(ah) != 0 && why == NULL)
			why = case_fail(t, "ibv_destroy_ah()");
		TRY(why);
		link_close(t);
		if (arrived)
			return NULL;
	}
	return case_fail(t, "lost %u times", link_sends(t));
}

/* Replies */

/* The passive end replies to the source in the 40-byte GRH area. */
static const char *
reply_send(struct matrix *t, const struct ibv_wc *wc)
{
	struct ibv_wc copy = *wc;
	struct ibv_ah *ah = ibv_create_ah_from_wc(
		t->pd, &copy, (struct ibv_grh *)(void *)link_target(t, wc->wr_id), 1);
	const char *why;

	NEED(t, ah != NULL);
	why = datagram_send(t, ah, wc->src_qp, MATRIX_QKEY, ANSWER_LEN);
	ibv_destroy_ah(ah);
	return why;
}

static const char *
reply_once(struct matrix *t, uint32_t qkey, bool *arrived)
{
	uint8_t mine, theirs;
	struct ibv_wc wc;

	data_fill(t, link_source(t, 0), ANSWER_LEN, 1);
	data_clear(link_target(t, 0), MATRIX_GRH + ANSWER_LEN);
	TRY(link_recv(t, 0, link_target(t, 0), MATRIX_GRH + ANSWER_LEN));
	TRY(oob_sync(t));
	if (t->active)
		TRY(datagram_send(t, t->ah, t->peer.qpn, qkey, ANSWER_LEN));
	TRY(datagram_wait(t, ANSWER_LEN, 1, &wc, arrived));
	if (!t->active && *arrived)
		TRY(reply_send(t, &wc));
	mine = *arrived;
	TRY(oob_swap(t, &mine, &theirs, 1));
	*arrived = mine && theirs;
	return NULL;
}

static const char *
answer_case(struct matrix *t, const void *arg)
{
	for (unsigned i = 0; i < link_sends(t); i++) {
		bool arrived;

		TRY(link_open(t, &ud));
		TRY(reply_once(t, *(const uint32_t *)arg, &arrived));
		link_close(t);
		if (arrived)
			return NULL;
	}
	return case_fail(t, "lost %u times", link_sends(t));
}

/* Header fields */

#define HOPS 17
#define CLASS 0x48
#define FLOW 0x12345

/* The 40 bytes have the values of the sender's address handle. */
static const char *
header_check(struct matrix *t, const uint8_t *at)
{
	if (at[0] >> 4 == 6) {
		NEED(t, ((at[0] & 0xF) << 4 | at[1] >> 4) == CLASS);
		NEED(t, ((at[1] & 0xF) << 16 | at[2] << 8 | at[3]) == FLOW);
		NEED(t, at[7] == HOPS);
		return NULL;
	}
	NEED(t, at[20] == 0x45 && at[21] == CLASS);
	NEED(t, at[28] == HOPS);
	return NULL;
}

static const char *
header_once(struct matrix *t, bool *arrived)
{
	struct ibv_wc wc;
	const char *why;

	data_fill(t, link_source(t, 0), 50, 1);
	data_clear(link_target(t, 0), MATRIX_GRH + 50);
	TRY(link_recv(t, 0, link_target(t, 0), MATRIX_GRH + 50));
	TRY(oob_sync(t));
	if (t->active) {
		struct ibv_ah *ah = link_ah_of(t, t->peer.gid, HOPS, CLASS, FLOW);

		NEED(t, ah != NULL);
		why = datagram_send(t, ah, t->peer.qpn, MATRIX_QKEY, 50);
		ibv_destroy_ah(ah);
		return why;
	}
	TRY(datagram_wait(t, 50, 1, &wc, arrived));
	return *arrived ? header_check(t, link_target(t, 0)) : NULL;
}

/* Receives that are too short */

/* The datagram, or message of UC, is dropped and its receive takes the next (IBA 9.8.3.2,
 * 9.9.3.1.5). */
static const char *
short_once(struct matrix *t, bool *arrived)
{
	uint32_t head = t->qp->qp_type == IBV_QPT_UD ? MATRIX_GRH : 0;
	struct ibv_sge sge = {(uintptr_t)link_source(t, 1), t->mtu, t->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 6,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	if (head != 0) {
		wr.wr.ud.ah = t->ah;
		wr.wr.ud.remote_qpn = t->peer.qpn;
		wr.wr.ud.remote_qkey = MATRIX_QKEY;
	}
	data_fill(t, link_source(t, 0), 20, 1);
	TRY(link_recv(t, 0, link_target(t, 0), head + t->mtu - 1));
	TRY(oob_sync(t));
	if (t->active) {
		TRY(link_send(t, &wr));
		TRY(link_done(t, t->send_cq, 6, &wc));
		sge = (struct ibv_sge){(uintptr_t)link_source(t, 0), 20, t->mr->lkey};
		TRY(link_send(t, &wr));
		return link_done(t, t->send_cq, 6, &wc);
	}
	*arrived = link_await_lossy(t, t->recv_cq, &wc) == 1;
	if (!*arrived)
		return NULL;
	if (wc.status != IBV_WC_SUCCESS)
		return case_fail(t, "\"%s\"", ibv_wc_status_str(wc.status));
	NEED(t, wc.wr_id == 0 && wc.byte_len == head + 20);
	for (unsigned i = 0; i < 20; i++)
		NEED(t, link_target(t, 0)[head + i] == data_byte(t, i, 1));
	return NULL;
}

struct once {
	const char *name;
	struct link_conf conf;
	const char *(*fn)(struct matrix *t, bool *arrived);
};

static const char *
once_case(struct matrix *t, const void *arg)
{
	const struct once *once = arg;

	for (unsigned i = 0; i < link_sends(t); i++) {
		uint8_t mine = 1, theirs;
		bool arrived = true;

		TRY(link_open(t, &once->conf));
		TRY(once->fn(t, &arrived));
		mine = arrived;
		TRY(oob_swap(t, &mine, &theirs, 1));
		link_close(t);
		if (mine && theirs)
			return NULL;
	}
	return case_fail(t, "lost %u times", link_sends(t));
}

void
cases_datagram(struct matrix *t)
{
	static const struct once onces[] = {
		{"UD header fields of the address handle", {.type = IBV_QPT_UD},
			header_once},
		{"UD SEND longer than its receive", {.type = IBV_QPT_UD}, short_once},
		{"UC SEND longer than its receive", {.type = IBV_QPT_UC}, short_once},
	};

	static const struct mcast list[] = {
		{"UD multicast 0", 0, false},
		{"UD multicast 1", 1, false},
		{"UD multicast 255", 255, false},
		{"UD multicast path MTU", 65536, false},
		{"UD multicast by a member", 255, true},
	};
	static const uint32_t given = MATRIX_QKEY, own = 0x80000000;

	for (unsigned i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		matrix_case(t, list[i].name, need_mcast, mcast_case, &list[i]);
	for (unsigned i = 0; i < sizeof(onces) / sizeof(onces[0]); i++)
		matrix_case(t, onces[i].name, need_nothing, once_case, &onces[i]);
	matrix_case(
		t, "UD reply to the header's source", need_nothing, answer_case, &given);
	matrix_case(t, "UD with the QP's own Q_Key", need_nothing, answer_case, &own);
}
