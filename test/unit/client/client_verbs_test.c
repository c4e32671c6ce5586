/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of the daemon from the program's side: device, traffic, end of the daemon, fork,
 * status. */
#include "client_fixture.h"
#include "client_messages.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../../lib/emulated.h"

static bool
device_listed(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;

	for (unsigned i = 0; list != NULL && list[i] != NULL; i++)
		found |= strcmp(ibv_get_device_name(list[i]), "rocade0") == 0;
	if (list != NULL)
		ibv_free_device_list(list);
	return found;
}

TEST(device_exists_while_the_daemon_does)
{
	struct client_fixture f;
	char name[ROCADE_NAME_MAX];

	fixture_open(&f);
	assert_false(device_listed());
	daemon_begin(&f, NULL);
	assert_true(device_listed());
	assert_int_equal(rocade_device_name(NULL, name), 0);
	assert_string_equal(name, "rocade0");
	daemon_end(&f);
	assert_false(device_listed());
	fixture_close(&f);
}

TEST(messages_pass_through_the_daemon)
{
	struct client_fixture f;
	struct ibv_cq *cq;
	struct end e;
	void *context;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	end_open(&e);
	assert_int_equal(end_connect(&e), 0);
	assert_int_equal(messages_pass(&e, 100), 0);
	/* Asleep on the completion channel: the progress thread receives the message. */
	assert_int_equal(ibv_req_notify_cq(e.cq, 0), 0);
	assert_int_equal(recv_post(&e, 0), 0);
	assert_int_equal(send_post(&e, DEPTH), 0);
	assert_int_equal(ibv_get_cq_event(e.channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(end_close(&e), 0);
	fixture_close(&f);
}

/* Writes 64 bytes to the region's memory at offset. Returns the status. */
static enum ibv_wc_status
region_write(struct end *e, const struct ibv_mr *to, size_t offset)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->buf, .length = 64, .lkey = e->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)to->addr + offset, to->rkey}};
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(e->cq, &wc), 0);
	return wc.status;
}

/* An unmodified program does not ask for the handler. */
TEST(unmapped_region_is_refused)
{
	const size_t bytes = 2 * 65536;
	struct sigaction before[2], now;
	struct client_fixture f;
	struct ibv_qp *peer;
	struct ibv_mr *mr;
	struct end e;
	void *memory;
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     (*state != NULL ? IBV_ACCESS_ON_DEMAND : 0);

	sigaction(SIGSEGV, NULL, &before[0]);
	sigaction(SIGBUS, NULL, &before[1]);
	fixture_open(&f);
	daemon_begin(&f, NULL);
	end_open(&e);
	peer = qp_make(&e, IBV_QPT_RC, NULL);
	assert_int_equal(qp_init(peer), 0);
	assert_int_equal(qp_connect(peer, e.qp->qp_num), 0);
	assert_int_equal(qp_init(e.qp), 0);
	assert_int_equal(qp_connect(e.qp, peer->qp_num), 0);
	memory = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	mr = ibv_reg_mr(e.pd, memory, bytes, access);
	assert_int_equal(region_write(&e, mr, 0), IBV_WC_SUCCESS);
	assert_int_equal(munmap(memory, bytes), 0);
	if (*state == NULL) /* else the first one is refused */
		assert_int_equal(region_write(&e, mr, 0), IBV_WC_SUCCESS);
	assert_int_equal(region_write(&e, mr, 65536), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(peer), 0);
	assert_int_equal(end_close(&e), 0);
	sigaction(SIGSEGV, NULL, &now);
	assert_ptr_equal(now.sa_handler, before[0].sa_handler);
	sigaction(SIGBUS, NULL, &now);
	assert_ptr_equal(now.sa_handler, before[1].sa_handler);
	fixture_close(&f);
}

static int
on_demand(void **state)
{
	*state = "on demand";
	return 0;
}

TEST_ADD(on_demand_region, unmapped_region_is_refused, on_demand, NULL)

static struct ibv_qp *
datagram_qp_make(const struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 5};
	struct ibv_qp *qp = qp_make(e, IBV_QPT_UD, NULL);

	assert_non_null(qp);
	/* The daemon's user is privileged. */
	attr.qkey |= 0x80000000;
	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
		0);
	attr.qkey = 5;
	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
		0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return qp;
}

TEST(datagrams_reach_a_group)
{
	union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 1, 1}};
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = group, .hop_limit = 1}};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND,
					 .num_sge = 1,
					 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr *bad_recv, recv = {.num_sge = 1};
	struct ibv_qp *sender, *member;
	struct client_fixture f;
	struct ibv_wc wc;
	struct ibv_sge sge;
	struct end e;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	end_open(&e);
	sender = datagram_qp_make(&e);
	member = datagram_qp_make(&e);
	assert_int_equal(ibv_attach_mcast(member, &group, 0), 0);
	wr.wr.ud.ah = ibv_create_ah(e.pd, &to);
	assert_non_null(wr.wr.ud.ah);
	wr.wr.ud.remote_qpn = 0xffffff;
	wr.wr.ud.remote_qkey = 5;
	sge = (struct ibv_sge){
		.addr = (uintptr_t)e.buf, .length = 1000, .lkey = e.mr->lkey};
	wr.sg_list = recv.sg_list = &sge;
	assert_int_equal(ibv_post_recv(member, &recv, &bad_recv), 0);
	sge.length = 100;
	assert_int_equal(ibv_post_send(sender, &wr, &bad), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wc_wait(e.cq, &wc), 0);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(
			wc.byte_len, wc.opcode == IBV_WC_RECV ? 140 : wc.byte_len);
	}
	assert_int_equal(ibv_detach_mcast(member, &group, 0), 0);
	assert_int_equal(ibv_destroy_ah(wr.wr.ud.ah), 0);
	assert_int_equal(ibv_destroy_qp(member), 0);
	assert_int_equal(ibv_destroy_qp(sender), 0);
	assert_int_equal(end_close(&e), 0);
	fixture_close(&f);
}

TEST(daemon_limits_are_reported)
{
	static const struct rocade_daemon_conf few = {
		.client_qps = 2, .client_mrs = 3, .max_clients = 1};
	struct ibv_device_attr attr;
	struct client_fixture f;
	struct ibv_qp *qp;
	struct end e;

	fixture_open(&f);
	daemon_begin(&f, &few);
	end_open(&e);
	assert_int_equal(ibv_query_device(e.ctx, &attr), 0);
	assert_int_equal(attr.max_qp, 2);
	assert_int_equal(attr.max_mr, 3);
	qp = qp_make(&e, IBV_QPT_RC, NULL);
	assert_non_null(qp);
	assert_null(qp_make(&e, IBV_QPT_RC, NULL));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = qp_make(&e, IBV_QPT_RC, NULL); /* the QPN was given back */
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(end_close(&e), 0);
	fixture_close(&f);
}

TEST(daemon_end_fails_the_device_until_it_is_opened_again)
{
	struct ibv_async_event event;
	struct client_fixture f;
	struct end e, other;
	struct ibv_wc wc;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	end_open(&e);
	assert_int_equal(end_connect(&e), 0);
	assert_int_equal(recv_post(&e, 0), 0);
	daemon_end(&f);
	assert_int_equal(ibv_get_async_event(e.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	assert_int_equal(wc_wait(e.cq, &wc), 0);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_null(qp_make(&e, IBV_QPT_RC, NULL));
	assert_false(device_open(&other)); /* no daemon */
	/* A new daemon serves a new context beside the dead one. */
	daemon_begin(&f, NULL);
	end_open(&other);
	assert_int_equal(end_connect(&other), 0);
	assert_int_equal(messages_pass(&other, 3), 0);
	assert_int_equal(end_close(&e), 0);
	assert_int_equal(end_close(&other), 0);
	fixture_close(&f);
}

TEST(changed_addresses_reach_the_client)
{
	struct rocade_daemon_conf conf = {
		.size = sizeof(conf), .addresses = "192.0.2.1/24,198.51.100.7/24"};
	struct ibv_async_event event;
	struct client_fixture f;
	union ibv_gid gid;
	struct end e;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	end_open(&e);
	daemon_pause(&f);
	conf.socket = f.path;
	assert_int_equal(rocade_daemon_change(f.d, &conf), 0);
	daemon_resume(&f);
	assert_int_equal(ibv_get_async_event(e.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_GID_CHANGE);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_query_gid(e.ctx, 1, 1, &gid), 0);
	assert_memory_equal(gid.raw + 12, "\xc6\x33\x64\x07", 4);
	assert_int_equal(end_close(&e), 0);
	fixture_close(&f);
}

/* Returns how many mappings this process has of memory that clients and daemons share. */
static unsigned
shared_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
		n += strstr(line, "memfd:rocade") != NULL;
	if (maps != NULL)
		fclose(maps);
	return n;
}

/* The parent's objects are dead in the child, which can destroy them and open the device
 * for itself. */
static int
child_uses_the_device(void *arg)
{
	struct end *parents = arg, own;
	struct ibv_port_attr port;

	CHILD_CHECK(shared_mappings() == 2); /* the daemon's, which the fork copied */
	CHILD_CHECK(ibv_query_port(parents->ctx, 1, &port) == 0);
	CHILD_CHECK(port.state == IBV_PORT_DOWN);
	(void)send_post(parents, DEPTH);
	CHILD_CHECK(qp_make(parents, IBV_QPT_RC, NULL) == NULL);
	CHILD_CHECK(end_close(parents) == 0);
	end_open(&own);
	CHILD_CHECK(end_connect(&own) == 0);
	CHILD_CHECK(messages_pass(&own, 3) == 0);
	CHILD_CHECK(end_close(&own) == 0);
	return 0;
}

TEST(forked_child_leaves_the_parent_alone)
{
	struct client_fixture f;
	struct end e;

	SKIP_IF_EMULATED();
	fixture_open(&f);
	daemon_begin(&f, NULL);
	end_open(&e);
	assert_int_equal(end_connect(&e), 0);
	assert_int_equal(messages_pass(&e, 3), 0);
	assert_int_equal(
		shared_mappings(), 4); /* the client's and the daemon's, two each */
	check_in_child(&f, child_uses_the_device, &e);
	assert_int_equal(messages_pass(&e, 3), 0);
	assert_int_equal(end_close(&e), 0);
	fixture_close(&f);
}

/* A client whose thread does not run just now does not answer. */
static char *
status_of_answering_clients(void)
{
	struct await answer = {.pauses = 0};
	char *text;

	do {
		assert_int_equal(rocade_status(NULL, &text), 0);
		if (strstr(text, "\"answered\": false") == NULL)
			return text;
		free(text);
	} while (await_pause(&answer));
	fail_msg("the client does not answer");
	return NULL;
}

TEST(status_shows_the_clients_objects)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 32, .max_sge = 1}};
	struct client_fixture f;
	struct ibv_srq *srq;
	struct ibv_qp *qp[3];
	char *text, expected[128];
	struct end e;

	SKIP_IF_EMULATED();
	fixture_open(&f);
	daemon_begin(&f, NULL);
	end_open(&e);
	srq = ibv_create_srq(e.pd, &srq_attr);
	assert_non_null(srq);
	qp[0] = qp_make(&e, IBV_QPT_UC, NULL);
	qp[1] = qp_make(&e, IBV_QPT_UD, NULL);
	qp[2] = qp_make(&e, IBV_QPT_RC, srq);
	assert_int_equal(end_connect(&e), 0);
	assert_int_equal(messages_pass(&e, 7), 0);
	text = status_of_answering_clients();
	snprintf(
		expected, sizeof(expected), "{\"socket\": \"%s\", \"daemon\": {", f.path);
	assert_memory_equal(text, expected, strlen(expected));
	assert_non_null(strstr(text, "\"name\": \"client_verbs_te\", \"qp_count\": 4, "));
	snprintf(expected, sizeof(expected),
		"\"qpn\": %u, \"type\": \"RC\", \"state\": \"RTS\"", e.qp->qp_num);
	assert_non_null(strstr(text, expected));
	assert_non_null(
		strstr(text, "\"answered\": true, \"engine\": {\"rx_packets\": "));
	assert_non_null(strstr(text, "\"srq_count\": 1, \"srqs\": [{\"srqn\": "));
	assert_non_null(strstr(text, "\"xrc\": false, \"fill\": 0, \"size\": 32, "));
	assert_non_null(strstr(text, "\"peer_count\": 1, \"peers\": [{\"address\": \""));
	assert_non_null(strstr(text, ", \"qps\": 1, \"cap\": "));
	assert_non_null(strstr(text,
		", \"cc\": false, \"send\": {\"qps_blocked\": 0, \"inflight\": 0, "));
	assert_non_null(
		strstr(text, "}, \"read\": {\"qps_blocked\": 0, \"inflight\": 0, "));
	assert_non_null(strstr(text, "}}], \"qps\": [{"));
	assert_non_null(strstr(text, "\"type\": \"UC\", \"state\": \"RESET\""));
	assert_non_null(strstr(text, "\"type\": \"UD\", \"state\": \"RESET\""));
	assert_non_null(strstr(text, "\"tx_msgs\": 7"));
	assert_memory_equal(text + strlen(text) - 3, "]}\n", 3);
	free(text);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(end_close(&e), 0);
	fixture_close(&f);
}

TEST(status_without_access_says_why)
{
	char name[ROCADE_NAME_MAX], longer[200];
	struct client_fixture f;
	char *text;

	fixture_open(&f);
	assert_int_equal(rocade_status(f.path, &text), ENOENT);
	assert_non_null(strstr(rocade_error(), "no daemon answers at "));
	assert_non_null(strstr(rocade_error(), f.path));
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(rocade_status(longer, &text), EINVAL);
	assert_int_equal(rocade_device_name(longer, name), EINVAL);
	assert_string_equal(rocade_error(), "socket: path too long");
	daemon_begin(&f, NULL);
	assert_int_equal(chmod(f.dir, 0711), 0);
	assert_int_equal(chmod(f.path, 0), 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(rocade_status(NULL, &text), EACCES);
	assert_non_null(strstr(rocade_error(), f.path));
	assert_non_null(strstr(rocade_error(), "permission denied"));
	assert_int_equal(rocade_device_name(NULL, name), EACCES);
	assert_non_null(strstr(rocade_error(), "permission denied"));
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	fixture_close(&f);
}
