/* SPDX-License-Identifier: BSD-3-Clause */
/* A pointer that is NULL: what the functions of the installed headers return (rocade.h).
 * headers_test.py finds functions that are missing here. */
#include <errno.h>
#include <string.h>

#include <rocade/flush.h>
#include <rocade/latencies.h>
#include <rocade/mbuf.h>
#include <rocade/shared.h>

#include "case.h"
#include "cm_fixture.h"

/* The call returns EINVAL, and the text begins with these words. */
#define REFUSED(words, call)                                                             \
	do {                                                                             \
		error_change();                                                          \
		refused(#call, words, call);                                             \
	} while (0)
/* Words of an argument's name. */
#define MISSING(name, call) REFUSED(name " is NULL: expected", call)
/* The call returns this number, and sets a text that names the argument. */
#define NOTHING(name, none, call)                                                        \
	do {                                                                             \
		error_change();                                                          \
		nothing(#call, name " is NULL: expected", none, call);                   \
	} while (0)

/* The text is one that no case expects: not that of the call before. */
static void
error_change(void)
{
	struct rocade_cc_conf cc;

	assert_int_equal(rocade_cc_parse("nonsense", &cc), EINVAL);
}

static void
refused(const char *call, const char *words, int err)
{
	if (err != EINVAL || strncmp(rocade_error(), words, strlen(words)) != 0)
		fail_msg("%s returned %d, \"%s\"; expected EINVAL, \"%s\"", call, err,
			rocade_error(), words);
}

static void
nothing(const char *call, const char *words, int none, int got)
{
	if (got != none || strncmp(rocade_error(), words, strlen(words)) != 0)
		fail_msg("%s returned %d, \"%s\"; expected %d, \"%s\"", call, got,
			rocade_error(), none, words);
}

static void
line_ignore(const char *text, void *arg)
{
	(void)text;
	(void)arg;
}

static int
objects_setup(void **state)
{
	(void)state;
	cm_pair_open(&(struct verbs_pair_conf){.srq_wr = 4, .flight_recorder = true});
	return 0;
}

static int
request_setup(void **state)
{
	(void)state;
	cm_pair_listen(1);
	return 0;
}

TEST(opening)
{
	const struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]), .addresses = "192.0.2.1/24"},
		{.size = sizeof(conf[0]), .addresses = "192.0.2.2/24"}};
	const struct rocade_shared_conf shared = {.size = sizeof(shared)};
	struct rocade_port *ports[2] = {NULL, NULL};
	struct rocade_cc_conf cc;

	MISSING("ports", rocade_open_loop(conf, NULL));
	MISSING("port", rocade_open_port(conf, NULL));
	MISSING("port", rocade_open_shared(conf, &shared, NULL));
	REFUSED("no configuration", rocade_open_loop(NULL, ports));
	REFUSED("no configuration", rocade_open_port(NULL, ports));
	REFUSED("no configuration", rocade_open_shared(NULL, &shared, ports));
	REFUSED("no configuration of the shared port",
		rocade_open_shared(conf, NULL, ports));
	REFUSED("addresses: missing",
		rocade_open_port(
			&(struct rocade_port_conf){.size = sizeof(conf[0])}, ports));
	REFUSED("no struct rocade_cc_conf", rocade_cc_parse("off", NULL));
	assert_int_equal(rocade_cc_parse(NULL, &cc), 0);
	assert_null(ports[0]);
	assert_null(ports[1]);
}

TEST_WITH(port_functions, objects_setup, cm_pair_close)
{
	struct rocade_port *port = pair.a.port;
	const struct rocade_impair none = {.seed = 1};
	const struct rocade_port_dump_conf no_file = {.size = sizeof(no_file)};
	struct rocade_impair_stats stats;
	union ibv_gid gid;
	char text[46];

	MISSING("port", rocade_close_port(NULL));
	NOTHING("port", true, rocade_port_device(NULL) == NULL);
	MISSING("port", rocade_port_resolve(NULL, &pair.b.gid));
	MISSING("gid", rocade_port_resolve(port, NULL));
	MISSING("port", rocade_port_set_addresses(NULL, "192.0.2.9/24", NULL, NULL));
	assert_int_equal(rocade_port_set_addresses(port, NULL, NULL, NULL), 0);
	NOTHING("port", false, rocade_port_link_up(NULL));
	MISSING("port", rocade_port_set_link(NULL, true));
	MISSING("gid", rocade_gid_parse("192.0.2.1", NULL));
	REFUSED("invalid address", rocade_gid_parse(NULL, &gid));
	NOTHING("gid", true, rocade_gid_format(NULL, text, sizeof(text)) == NULL);
	NOTHING("buf", true, rocade_gid_format(&pair.a.gid, NULL, 46) == NULL);
	MISSING("port", rocade_port_impair(NULL, &none));
	REFUSED("no struct rocade_impair", rocade_port_impair(port, NULL));
	MISSING("port", rocade_port_impair_tx(NULL, &none));
	REFUSED("no struct rocade_impair", rocade_port_impair_tx(port, NULL));
	MISSING("port", rocade_port_impair_stats(NULL, &stats));
	MISSING("stats", rocade_port_impair_stats(port, NULL));
	MISSING("port", rocade_port_impair_tx_stats(NULL, &stats));
	MISSING("stats", rocade_port_impair_tx_stats(port, NULL));
	MISSING("port", rocade_port_dump(NULL, &no_file));
	REFUSED("no configuration of the dump", rocade_port_dump(port, NULL));
	REFUSED("file is NULL", rocade_port_dump(port, &no_file));
	MISSING("port", rocade_port_dump_stop(NULL, NULL));
	assert_int_equal(rocade_port_dump_stop(port, NULL), ENOENT);
}

TEST_WITH(rows_are_counted, objects_setup, cm_pair_close)
{
	struct rocade_port *port = pair.a.port;
	struct rocade_stat rows[2];
	struct rocade_neigh neighs[2];
	struct rocade_peer peers[2];
	struct rocade_latency latencies[2];
	struct rocade_slow_request slow[2];

	NOTHING("port", 0, (int)rocade_port_stats(NULL, -1, rows, 2));
	NOTHING("qp", 0, (int)rocade_qp_stats(NULL, rows, 2));
	NOTHING("port", 0, (int)rocade_port_neighs(NULL, neighs, 2));
	NOTHING("port", 0, (int)rocade_port_peers(NULL, peers, 2));
	NOTHING("port", 0, (int)rocade_port_latencies(NULL, latencies, 2));
	NOTHING("port", 0, (int)rocade_port_slowest(NULL, slow, 2));
	NOTHING("cm", 0, (int)rocade_cm_stats(NULL, rows, 2));
	assert_int_equal(rocade_port_stats(port, -1, NULL, 2),
		rocade_port_stats(port, -1, rows, 2));
	assert_int_equal(rocade_qp_stats(pair.a.qp[0], NULL, 2),
		rocade_qp_stats(pair.a.qp[0], rows, 2));
	assert_int_equal(rocade_cm_stats(cm_a, NULL, 2), rocade_cm_stats(cm_a, rows, 2));
	/* There are a neighbour and, of the connected QP, a peer. */
	assert_int_equal(rocade_port_resolve(port, &pair.b.gid), EAGAIN);
	assert_in_range(rocade_port_neighs(port, NULL, 2), 1, 8);
	assert_in_range(rocade_port_peers(port, NULL, 2), 1, 8);
	assert_int_equal(rocade_port_latencies(port, NULL, 2), 18);
	assert_int_equal(
		rocade_port_slowest(port, NULL, 2), rocade_port_slowest(port, NULL, 0));
}

TEST_WITH(engine_functions, objects_setup, cm_pair_close)
{
	struct rocade_engine *engine = rocade_port_engine(pair.a.port, 0);
	struct rocade_shared_stats stats;
	int fd;

	assert_non_null(engine);
	NOTHING("port", true, rocade_port_engine(NULL, 0) == NULL);
	NOTHING("port", 0, (int)rocade_port_engine_count(NULL));
	MISSING("engine", rocade_engine_fd(NULL, &fd));
	MISSING("fd", rocade_engine_fd(engine, NULL));
	MISSING("engine", rocade_engine_arm(NULL));
	rocade_engine_disarm(NULL);
	MISSING("engine", rocade_engine_launch(NULL, 1));
	MISSING("engine", rocade_engine_stop(NULL));
	MISSING("context", rocade_context_set_engine(NULL, 0));
	MISSING("engine", rocade_shared_stats(NULL, &stats));
	MISSING("stats", rocade_shared_stats(engine, NULL));
}

TEST_WITH(objects_of_verbs, objects_setup, cm_pair_close)
{
	const struct rocade_srq_mbufs mbufs = {.size = sizeof(mbufs)};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct ibv_qp *qp = pair.a.qp[0];
	struct rocade_qp_info qp_info;
	struct rocade_srq_info srq_info;
	struct rocade_cq_info cq_info;

	MISSING("qp", rocade_qp_info(NULL, &qp_info));
	MISSING("info", rocade_qp_info(qp, NULL));
	MISSING("qp", rocade_qp_events(NULL, line_ignore, NULL));
	MISSING("line", rocade_qp_events(qp, NULL, NULL));
	assert_int_equal(rocade_qp_events(qp, line_ignore, NULL), 0);
	MISSING("srq", rocade_srq_info(NULL, &srq_info));
	MISSING("info", rocade_srq_info(pair.a.srq, NULL));
	MISSING("cq", rocade_cq_info(NULL, &cq_info));
	MISSING("info", rocade_cq_info(pair.a.send_cq, NULL));
	REFUSED("the SRQ is not", rocade_srq_set_mbufs(NULL, &mbufs));
	/* This port has no mbufs, whatever is given. */
	assert_int_equal(rocade_srq_set_mbufs(pair.a.srq, NULL), EOPNOTSUPP);
	REFUSED("the QP, the request or the mbuf",
		rocade_post_send_mbuf(NULL, &wr, (struct rte_mbuf *)&wr));
	REFUSED("the QP, the request or the mbuf",
		rocade_post_send_mbuf(qp, NULL, (struct rte_mbuf *)&wr));
	REFUSED("the QP, the request or the mbuf", rocade_post_send_mbuf(qp, &wr, NULL));
	MISSING("qp", rocade_wr_flush(NULL, 1, 0, 0, ROCADE_FLUSH_GLOBAL, 0));
}

TEST_WITH(connection_managers, objects_setup, cm_pair_close)
{
	struct rocade_cm_listener *out;
	struct rocade_cm_event event;
	struct rocade_cm *cm;

	MISSING("context", rocade_cm_open(NULL, &cm));
	MISSING("cm", rocade_cm_open(pair.a.context, NULL));
	rocade_cm_close(NULL);
	MISSING("cm", rocade_cm_listen(NULL, CM_PORT, 1, NULL, &out));
	MISSING("listener", rocade_cm_listen(cm_a, CM_PORT, 1, NULL, NULL));
	MISSING("cm", rocade_cm_ud_listen(NULL, CM_PORT, 1, NULL, &out));
	MISSING("listener", rocade_cm_ud_listen(cm_a, CM_PORT, 1, NULL, NULL));
	rocade_cm_unlisten(NULL);
	NOTHING("cm", -1, rocade_cm_fd(NULL));
	MISSING("cm", rocade_cm_next_event(NULL, &event));
	MISSING("event", rocade_cm_next_event(cm_a, NULL));
}

TEST_WITH(connections, request_setup, cm_pair_close)
{
	const struct rocade_cm_param no_data = {
		.size = sizeof(no_data), .private_len = 4};
	struct rocade_cm_id *id = NULL;
	struct rocade_cm_event e;
	struct ibv_qp *qp = pair.a.qp[0];
	const union ibv_gid *peer = &pair.b.gid;

	MISSING("cm", rocade_cm_connect(NULL, qp, peer, CM_PORT, NULL, NULL, &id));
	MISSING("qp", rocade_cm_connect(cm_a, NULL, peer, CM_PORT, NULL, NULL, &id));
	MISSING("peer", rocade_cm_connect(cm_a, qp, NULL, CM_PORT, NULL, NULL, &id));
	MISSING("id", rocade_cm_connect(cm_a, qp, peer, CM_PORT, NULL, NULL, NULL));
	MISSING("private_data",
		rocade_cm_connect(cm_a, qp, peer, CM_PORT, &no_data, NULL, &id));
	assert_null(id);
	assert_int_equal(rocade_cm_connect(cm_a, qp, peer, CM_PORT, NULL, NULL, &id), 0);
	e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
	MISSING("id", rocade_cm_accept(NULL, pair.b.qp[0], NULL, NULL));
	MISSING("qp", rocade_cm_accept(e.id, NULL, NULL, NULL));
	MISSING("private_data", rocade_cm_accept(e.id, pair.b.qp[0], &no_data, NULL));
	MISSING("id", rocade_cm_reject(NULL, NULL, 0));
	MISSING("private_data", rocade_cm_reject(e.id, NULL, 4));
	MISSING("id", rocade_cm_disconnect(NULL));
	rocade_cm_release(NULL);
	/* The request is still pending. */
	assert_int_equal(rocade_cm_accept(e.id, pair.b.qp[0], NULL, NULL), 0);
	cm_expect_event(cm_a, ROCADE_CM_ESTABLISHED);
	rocade_cm_release(e.id);
	rocade_cm_release(id);
}

TEST_WITH(datagram_services, request_setup, cm_pair_close)
{
	const struct rocade_cm_ud_param no_data = {
		.size = sizeof(no_data), .private_len = 4};
	struct rocade_cm_listener *service;
	struct rocade_cm_id *id = NULL;
	struct rocade_cm_event e;
	const union ibv_gid *peer = &pair.b.gid;

	assert_int_equal(rocade_cm_ud_listen(cm_b, CM_PORT, 4, NULL, &service), 0);
	MISSING("cm", rocade_cm_ud_resolve(NULL, peer, CM_PORT, NULL, NULL, &id));
	MISSING("peer", rocade_cm_ud_resolve(cm_a, NULL, CM_PORT, NULL, NULL, &id));
	MISSING("id", rocade_cm_ud_resolve(cm_a, peer, CM_PORT, NULL, NULL, NULL));
	MISSING("private_data",
		rocade_cm_ud_resolve(cm_a, peer, CM_PORT, &no_data, NULL, &id));
	assert_null(id);
	assert_int_equal(rocade_cm_ud_resolve(cm_a, peer, CM_PORT, NULL, NULL, &id), 0);
	e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
	MISSING("id", rocade_cm_ud_answer(NULL, pair.b.qp[0], NULL));
	MISSING("qp", rocade_cm_ud_answer(e.id, NULL, NULL));
	MISSING("private_data", rocade_cm_ud_answer(e.id, pair.b.qp[0], &no_data));
	MISSING("id", rocade_cm_ud_reject(NULL, 1, NULL));
	MISSING("private_data", rocade_cm_ud_reject(e.id, 1, &no_data));
	/* The request is still pending. */
	assert_int_equal(rocade_cm_ud_reject(e.id, 1, NULL), 0);
	cm_expect_event(cm_a, ROCADE_CM_REJECTED);
	rocade_cm_release(e.id);
	rocade_cm_release(id);
	rocade_cm_unlisten(service);
}
