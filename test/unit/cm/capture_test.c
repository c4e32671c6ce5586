/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares this CM with the kernel's: it sends the same bytes for the same calls and
 * messages, except the ids that each side chooses and the ACK delay of its QPs. */
#include <string.h>

#include "case.h"
#include "cm_pair.h"
#include "mads.h"
#include "wire/pkt_parse.h"

static const uint64_t now = NS_PER_SEC;

static struct cm *
cm_with(uint64_t guid)
{
	struct cm_conf conf;
	struct cm *cm;

	cm_conf_default(&conf);
	conf.ca_guid = guid;
	conf.random.word[0] = 7;
	assert_int_equal(cm_create(&conf, now, &cm), 0);
	return cm;
}

static struct mad
next_mad(struct cm *cm)
{
	struct cm_path path;
	struct mad mad;

	assert_true(cm_tx(cm, &mad, &path));
	return mad;
}

static enum cm_drop
deliver(struct cm *cm, const struct mad *mad, const struct captured_mad *c)
{
	struct cm_path path = {.local = false};

	memcpy(path.sgid, c->dst, 16);
	memcpy(path.dgid, c->src, 16);
	return cm_rx(cm, (const uint8_t *)mad, MAD_LEN, &path, now);
}

/* Returns the first MAD of this attribute with the same TID in the same capture, or
 * NULL. */
static const struct captured_mad *
answer_of(const struct captured_mad *c, enum mad_attr attr)
{
	for (unsigned i = 0; i < mad_count; i++)
		if (strcmp(mads[i].frame->capture, c->frame->capture) == 0 &&
			mad_attr_of(&mads[i].mad) == attr &&
			mads[i].mad.tid == c->mad.tid)
			return &mads[i];
	return NULL;
}

/* ---- Active ---- */

static struct cm_request
request_of(const struct captured_mad *c)
{
	const struct mad *m = &c->mad;
	bool sidr = mad_attr_of(m) == MAD_SIDR_REQ;
	struct cm_request r = {
		.service_id =
			mad_get(m, sidr ? MAD_SIDR_REQ_service_id : MAD_REQ_service_id),
		.private_len = sidr ? CMA_SIDR_PRIVATE : CMA_REQ_PRIVATE,
	};
	struct cma_hdr hdr;
	size_t len;

	assert_int_equal(cma_get(m, &hdr), 0);
	r.sport = hdr.sport;
	r.private = mad_private(m, &len) + CMA_HDR_LEN;
	memcpy(r.path.sgid, c->src, 16);
	memcpy(r.path.dgid, c->dst, 16);
	if (!sidr)
		r.qp = (struct cm_qp){
			.qpn = (uint32_t)mad_get(m, MAD_REQ_local_qpn),
			.psn = (uint32_t)mad_get(m, MAD_REQ_starting_psn),
			.responder_resources =
				(uint8_t)mad_get(m, MAD_REQ_responder_resources),
			.initiator_depth = (uint8_t)mad_get(m, MAD_REQ_initiator_depth),
			.rnr_retry = (uint8_t)mad_get(m, MAD_REQ_rnr_retry_count),
			.retry_count = (uint8_t)mad_get(m, MAD_REQ_retry_count),
			.path_mtu = (uint8_t)mad_get(m, MAD_REQ_path_mtu),
			.srq = mad_get(m, MAD_REQ_srq) != 0,
			.flow_control = mad_get(m, MAD_REQ_flow_control) != 0,
		};
	return r;
}

TEST(requests_equal_the_kernels)
{
	unsigned found = 0;

	for (unsigned i = 0; i < mad_count; i++) {
		const struct mad *want = &mads[i].mad;
		bool sidr = mad_attr_of(want) == MAD_SIDR_REQ;
		struct cm_request r;
		struct cm_conn *conn;
		struct mad mad;
		struct cm *cm;

		if (mad_attr_of(want) != MAD_REQ && !sidr)
			continue;
		cm = cm_with(sidr ? 1 : mad_get(want, MAD_REQ_ca_guid));
		r = request_of(&mads[i]);
		assert_int_equal(sidr ? cm_sidr_request(cm, &r, NULL, now, &conn)
				      : cm_connect(cm, &r, NULL, now, &conn),
			0);
		mad = next_mad(cm);
		memcpy(mad.data, want->data, 4);
		mad.tid = want->tid;
		assert_memory_equal(&mad, want, MAD_LEN);
		cm_destroy(cm);
		found++;
	}
	assert_int_equal(found, 22);
}

/* An active connection gets the captured REP: its RTU equals the captured one. */
static void
active_through(const struct captured_mad *c, const struct captured_mad *rep)
{
	struct cm *cm = cm_with(mad_get(&c->mad, MAD_REQ_ca_guid));
	const struct captured_mad *rtu = answer_of(c, MAD_RTU);
	struct cm_request r = request_of(c);
	struct mad mad = rep->mad, ours;
	struct cm_event e;
	struct cm_conn *conn;

	assert_int_equal(cm_connect(cm, &r, NULL, now, &conn), 0);
	ours = next_mad(cm);
	mad_put(&mad, MAD_REP_remote_id, mad_local_id(&ours));
	assert_int_equal(deliver(cm, &mad, rep), CM_DROP_none);
	assert_true(cm_next_event(cm, &e));
	assert_int_equal(e.type, CM_EVENT_REPLY);
	assert_int_equal(e.qp.qpn, mad_get(&mad, MAD_REP_local_qpn));
	assert_int_equal(cm_confirm(conn, NULL, 0, now), 0);
	ours = next_mad(cm);
	if (rtu != NULL) { /* the captured RTU has the TID of the REQ */
		memcpy(ours.data, rtu->mad.data, 4);
		ours.tid = rtu->mad.tid;
		assert_memory_equal(&ours, &rtu->mad, MAD_LEN);
	}
	cm_destroy(cm);
}

/* ---- Passive ---- */

static void
passive_through(const struct captured_mad *c, const struct captured_mad *rep)
{
	const struct mad *want = &rep->mad;
	struct cm *cm = cm_with(mad_get(want, MAD_REP_ca_guid));
	const struct captured_mad *rtu = answer_of(c, MAD_RTU),
				  *dreq = answer_of(c, MAD_DREQ);
	struct cm_listener *listener;
	struct cm_qp qp = {
		.qpn = (uint32_t)mad_get(want, MAD_REP_local_qpn),
		.psn = (uint32_t)mad_get(want, MAD_REP_starting_psn),
		.responder_resources =
			(uint8_t)mad_get(want, MAD_REP_responder_resources),
		.initiator_depth = (uint8_t)mad_get(want, MAD_REP_initiator_depth),
		.rnr_retry = (uint8_t)mad_get(want, MAD_REP_rnr_retry_count),
		.srq = mad_get(want, MAD_REP_srq) != 0,
		.flow_control = mad_get(want, MAD_REP_flow_control) != 0,
	};
	size_t len;
	const uint8_t *private = mad_private(want, &len);
	struct cm_event e;
	struct mad mad;

	assert_int_equal(cm_listen(cm, mad_get(&c->mad, MAD_REQ_service_id), c->dst, 1,
				 NULL, &listener),
		0);
	assert_int_equal(deliver(cm, &c->mad, c), CM_DROP_none);
	assert_true(cm_next_event(cm, &e));
	assert_int_equal(e.type, CM_EVENT_REQUEST);
	assert_int_equal(cm_accept(e.conn, &qp, private, len, now), 0);
	mad = next_mad(cm);
	memcpy(mad.data, want->data, 4);
	mad_put(&mad, MAD_REP_target_ack_delay, mad_get(want, MAD_REP_target_ack_delay));
	assert_memory_equal(&mad, want, MAD_LEN);
	if (rtu != NULL) {
		mad = rtu->mad;
		mad_put(&mad, MAD_RTU_remote_id, e.conn->local_id);
		assert_int_equal(deliver(cm, &mad, rtu), CM_DROP_none);
		assert_string_equal(cm_state_name(e.conn), "ESTABLISHED");
	}
	if (rtu != NULL && dreq != NULL && memcmp(dreq->src, c->src, 16) == 0) {
		mad = dreq->mad;
		mad_put(&mad, MAD_DREQ_remote_id, e.conn->local_id);
		assert_int_equal(deliver(cm, &mad, dreq), CM_DROP_none);
		assert_int_equal(cm_disconnect(e.conn, NULL, 0, now), 0);
		mad = next_mad(cm);
		memcpy(mad.data, answer_of(c, MAD_DREP)->mad.data, 4);
		assert_memory_equal(&mad, &answer_of(c, MAD_DREP)->mad, MAD_LEN);
	}
	cm_destroy(cm);
}

TEST(handshakes_equal_the_kernels)
{
	unsigned found = 0;

	for (unsigned i = 0; i < mad_count; i++) {
		const struct captured_mad *rep = answer_of(&mads[i], MAD_REP);

		if (mad_attr_of(&mads[i].mad) != MAD_REQ || rep == NULL)
			continue;
		active_through(&mads[i], rep);
		passive_through(&mads[i], rep);
		found++;
	}
	assert_int_equal(found, 17);
}

/* The receiver of a Starting PSN begins to send with it, not its sender (IBA 12.7.31). */
TEST(starting_psn_is_for_the_receiver)
{
	static const struct {
		unsigned number, mad;
		enum mad_field field;
	} rows[] = {{4, 2, MAD_REP_starting_psn}, {8, 1, MAD_REQ_starting_psn}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		const struct captured *f = mad_captured("83-cm-connect", 1)->frame;
		struct pkt pkt;
		struct pkt_view v;

		f += rows[i].number - 1;
		pkt = (struct pkt){
			.data = (uint8_t *)(uintptr_t)f->data, .len = (uint16_t)f->len};
		assert_int_equal(pkt_parse(&pkt, f->vlan, &v), DROP_none);
		assert_int_equal(v.psn,
			mad_get(mad_of("83-cm-connect", rows[i].mad), rows[i].field));
		assert_int_equal(v.op->kind, OP_SEND);
	}
}

TEST(rejects_equal_the_kernels)
{
	const struct captured_mad *req = mad_captured("81-cm-rej-no-listener", 1);
	const struct captured_mad *sidr = mad_captured("92-cm-sidr-reject", 1);
	struct cm *cm = cm_with(5);
	struct cm_listener *listener;
	struct cm_event e;
	struct mad mad;

	assert_int_equal(deliver(cm, &req->mad, req), CM_DROP_none);
	mad = next_mad(cm);
	assert_memory_equal(&mad, mad_of("81-cm-rej-no-listener", 2), MAD_LEN);
	assert_int_equal(deliver(cm, &sidr->mad, sidr), CM_DROP_none);
	mad = next_mad(cm);
	assert_memory_equal(&mad, mad_of("92-cm-sidr-reject", 2), MAD_LEN);
	req = mad_captured("82-cm-rej-consumer", 1);
	assert_int_equal(cm_listen(cm, SERVICE, NULL, 1, NULL, &listener), 0);
	assert_int_equal(deliver(cm, &req->mad, req), CM_DROP_none);
	assert_true(cm_next_event(cm, &e));
	assert_int_equal(cm_reject(e.conn, CM_REJ_CONSUMER, "goaway", 6, now), 0);
	mad = next_mad(cm);
	memcpy(mad.data, mad_of("82-cm-rej-consumer", 2)->data, 4);
	assert_memory_equal(&mad, mad_of("82-cm-rej-consumer", 2), MAD_LEN);
	cm_destroy(cm);
}

/* A user that takes 12 s to accept: the MRA equals the kernel's. */
TEST(mra_equals_the_kernels)
{
	const struct captured_mad *req = mad_captured("89-cm-mra", 1);
	struct cm *cm = cm_with(5);
	struct cm_listener *listener;
	struct mad mad;

	assert_int_equal(cm_listen(cm, SERVICE, NULL, 1, NULL, &listener), 0);
	assert_int_equal(deliver(cm, &req->mad, req), CM_DROP_none);
	req = mad_captured("89-cm-mra", 2);
	assert_int_equal(deliver(cm, &req->mad, req), CM_DROP_none);
	mad = next_mad(cm);
	memcpy(mad.data, mad_of("89-cm-mra", 3)->data, 4);
	assert_memory_equal(&mad, mad_of("89-cm-mra", 3), MAD_LEN);
	cm_destroy(cm);
}

TEST_GROUP(mads_load, mads_unload)
