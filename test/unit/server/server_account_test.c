/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits by user, over all connections, beside a user who takes everything that the daemon
 * gives. That user has an account only; this process is the other user. */
#include <arpa/inet.h>

#include "server_fixture.h"
#include "base/base_log.h"
#include "cm/cm_core.h"
#include "ucm/abi.h"

struct account_fixture {
	struct server_fixture b;
	struct account *greedy;
};

/* Other users may connect; one of them holds as much as possible of a kind. */
static void
account_fixture_open(struct account_fixture *f, enum account_kind kind)
{
	fixture_open(&f->b,
		(struct rocade_daemon_conf){.socket_mode = 0666, .max_clients = 32});
	f->greedy = account_open(&f->b.d->accounts, (uint32_t)getuid() + 1, 0);
	while (account_take(f->greedy, kind, 1))
		continue;
	assert_int_equal(f->greedy->held[kind], accounts_most(&f->b.d->accounts, kind));
}

static void
account_fixture_close(struct account_fixture *f)
{
	/* The daemon frees what ended connections had in some turns of its loop. */
	for (unsigned i = 0; i < 512; i++) {
		sw_run(f->b.d->sw, 0);
		rdmacm_timer(f->b.d);
	}
	for (unsigned kind = 0; kind < ACCOUNT_KINDS; kind++)
		account_give(f->greedy, (enum account_kind)kind, f->greedy->held[kind]);
	account_close(f->greedy);
	/* Our own connections have given everything back. */
	assert_null(accounts_from(&f->b.d->accounts, 0));
	fixture_close(&f->b);
}

static uint32_t
reserved(const struct account_fixture *f, enum account_kind kind)
{
	return f->b.d->accounts.limits[kind].reserve;
}

TEST(places_are_reserved)
{
	struct fixture_client c[3];
	struct account_fixture f;

	account_fixture_open(&f, ACCOUNT_clients);
	assert_int_equal(reserved(&f, ACCOUNT_clients), 2);
	assert_int_equal(client_attach(&f.b, &c[0]), 0);
	assert_int_equal(client_attach(&f.b, &c[1]), 0);
	assert_int_equal(client_attach(&f.b, &c[2]), ENOSPC);
	client_detach(&f.b, &c[1]);
	client_detach(&f.b, &c[2]);
	assert_int_equal(client_attach(&f.b, &c[1]), 0);
	client_detach(&f.b, &c[0]);
	client_detach(&f.b, &c[1]);
	account_fixture_close(&f);
}

static char last_warning[256];

static void
warning_note(enum log_level level, const char *line, void *arg)
{
	(void)arg;
	if (level == LOG_LEVEL_WARN)
		snprintf(last_warning, sizeof(last_warning), "%s", line);
}

TEST(connections_are_reserved)
{
	struct account_fixture f;
	int fds[7];

	account_fixture_open(&f, ACCOUNT_connections);
	log_set_sink(warning_note, NULL);
	for (unsigned i = 0; i < 7; i++)
		fds[i] = client_connect(&f.b);
	log_set_sink(NULL, NULL);
	assert_non_null(strstr(last_warning, ": other users hold the other connections"));
	assert_int_equal(conns_count(f.b.d), reserved(&f, ACCOUNT_connections));
	for (unsigned i = 0; i < 7; i++)
		close(fds[i]);
	daemon_handle_all(&f.b);
	account_fixture_close(&f);
}

TEST(descriptors_are_reserved)
{
	struct sw_request req = {.type = SW_CM_OPEN};
	struct fixture_client c;
	struct sw_reply reply;
	struct account_fixture f;
	int fds[SW_ATTACH_FDS];

	account_fixture_open(&f, ACCOUNT_clients);
	/* As if the process had a low limit: a user has 8 descriptors. */
	accounts_limit(&f.b.d->accounts, ACCOUNT_descriptors, 128, true);
	while (account_take(f.greedy, ACCOUNT_descriptors, 1))
		continue;
	assert_int_equal(client_attach(&f.b, &c), 0); /* takes 6 */
	for (unsigned i = 0; i < 3; i++) {
		assert_true(client_call(&f.b, c.fd, &req, &reply, fds));
		assert_int_equal(reply.error, i < 2 ? 0 : EMFILE);
		if (i == 2)
			assert_int_equal(reply.refusal.kind, 1 + ACCOUNT_descriptors);
		if (i < 2)
			close(fds[0]);
	}
	assert_true(close(client_connect(&f.b)) == 0);
	assert_int_equal(conns_count(f.b.d), 1);
	client_detach(&f.b, &c);
	account_fixture_close(&f);
}

TEST(memory_is_reserved)
{
	struct fixture_client c[2];
	struct account_fixture f;
	const struct region_geom *geom;
	uint32_t each;

	account_fixture_open(&f, ACCOUNT_clients);
	geom = &f.b.d->sw->conf.limits.geom;
	each = (uint32_t)((region_client_size(geom) + region_daemon_size(geom)) / 1024);
	accounts_limit(&f.b.d->accounts, ACCOUNT_memory_kib, 16 * (each + 1), true);
	while (account_take(f.greedy, ACCOUNT_memory_kib, 1))
		continue;
	assert_int_equal(client_attach(&f.b, &c[0]), 0);
	assert_int_equal(client_attach(&f.b, &c[1]), ENOMEM);
	/* Nothing is left of the second one. */
	client_detach(&f.b, &c[1]);
	client_detach(&f.b, &c[0]);
	assert_int_equal(client_attach(&f.b, &c[0]), 0);
	client_detach(&f.b, &c[0]);
	account_fixture_close(&f);
}

TEST(qps_are_reserved)
{
	struct sw_request take = {.type = SW_QPN_TAKE}, give = {.type = SW_QPN_GIVE};
	struct fixture_client c[2];
	struct account_fixture f;
	struct sw_reply reply;
	uint32_t n = 0;

	account_fixture_open(&f, ACCOUNT_qps);
	assert_int_equal(client_attach(&f.b, &c[0]), 0);
	assert_int_equal(client_attach(&f.b, &c[1]), 0);
	/* Both connections are of one user. */
	for (;; n++) {
		assert_true(client_call(&f.b, c[n % 2].fd, &take, &reply, NULL));
		if (reply.error != 0)
			break;
		give.qpn = reply.qpn;
	}
	assert_int_equal(reply.error, ENOMEM);
	assert_int_equal(n, reserved(&f, ACCOUNT_qps));
	assert_true(client_call(&f.b, c[(n - 1) % 2].fd, &give, &reply, NULL));
	assert_int_equal(reply.error, 0);
	assert_true(client_call(&f.b, c[0].fd, &take, &reply, NULL));
	assert_int_equal(reply.error, 0);
	client_detach(&f.b, &c[0]);
	client_detach(&f.b, &c[1]);
	account_fixture_close(&f);
}

static int
group_change(
	struct account_fixture *f, int fd, uint32_t type, uint32_t qpn, unsigned number)
{
	struct sw_request req = {.type = type, .qpn = qpn};
	struct sw_reply reply;

	req.dgid[10] = req.dgid[11] = 0xff;
	req.dgid[12] = 239;
	req.dgid[15] = (uint8_t)number;
	assert_true(client_call(&f->b, fd, &req, &reply, NULL));
	return reply.error;
}

TEST(groups_are_reserved)
{
	struct sw_request take = {.type = SW_QPN_TAKE};
	struct account_fixture f;
	struct fixture_client c;
	struct sw_reply qp[2];
	unsigned n = 0;

	account_fixture_open(&f, ACCOUNT_groups);
	assert_int_equal(client_attach(&f.b, &c), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_true(client_call(&f.b, c.fd, &take, &qp[i], NULL));
	while (group_change(&f, c.fd, SW_GROUP_JOIN, qp[0].qpn, n) == 0)
		n++;
	assert_int_equal(n, reserved(&f, ACCOUNT_groups));
	/* A second member of the user's in a group costs nothing. */
	assert_int_equal(group_change(&f, c.fd, SW_GROUP_JOIN, qp[1].qpn, 0), 0);
	assert_int_equal(group_change(&f, c.fd, SW_GROUP_LEAVE, qp[0].qpn, 0), 0);
	assert_int_equal(group_change(&f, c.fd, SW_GROUP_JOIN, qp[0].qpn, n), ENOSPC);
	assert_int_equal(group_change(&f, c.fd, SW_GROUP_LEAVE, qp[1].qpn, 0), 0);
	assert_int_equal(group_change(&f, c.fd, SW_GROUP_JOIN, qp[0].qpn, n), 0);
	client_detach(&f.b, &c);
	account_fixture_close(&f);
}

TEST(group_members_are_reserved)
{
	struct sw_request take = {.type = SW_QPN_TAKE};
	struct account_fixture f;
	struct fixture_client c;
	struct sw_reply qp[3];

	account_fixture_open(&f, ACCOUNT_qps);
	/* As if there were few: a user has two. */
	accounts_limit(&f.b.d->accounts, ACCOUNT_group_members, 32, true);
	while (account_take(f.greedy, ACCOUNT_group_members, 1))
		continue;
	assert_int_equal(client_attach(&f.b, &c), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(client_call(&f.b, c.fd, &take, &qp[i], NULL));
		assert_int_equal(group_change(&f, c.fd, SW_GROUP_JOIN, qp[i].qpn, i),
			i < 2 ? 0 : ENOSPC);
	}
	assert_int_equal(group_change(&f, c.fd, SW_GROUP_LEAVE, qp[0].qpn, 0), 0);
	assert_int_equal(group_change(&f, c.fd, SW_GROUP_JOIN, qp[2].qpn, 1), 0);
	client_detach(&f.b, &c);
	account_fixture_close(&f);
}

/* Joins QPs to one group until it is refused. Returns how many have joined. */
static unsigned
group_fill(struct account_fixture *f, int fd)
{
	struct sw_request take = {.type = SW_QPN_TAKE};
	struct sw_reply qp;
	unsigned n = 0;
	int err;

	for (;; n++) {
		assert_true(client_call(&f->b, fd, &take, &qp, NULL));
		assert_int_equal(qp.error, 0);
		err = group_change(f, fd, SW_GROUP_JOIN, qp.qpn, 1);
		if (err != 0)
			break;
	}
	assert_int_equal(err, ENOSPC);
	return n;
}

TEST(members_of_one_group_are_reserved)
{
	struct fixture_client c[2];
	struct sw_client *others;
	struct account_fixture f;
	struct account *own;

	account_fixture_open(&f, ACCOUNT_clients);
	assert_int_equal(client_attach(&f.b, &c[0]), 0);
	assert_int_equal(client_attach(&f.b, &c[1]), 0);
	/* The first client is the greedy user's. */
	others = TAILQ_FIRST(&f.b.d->conns)->client;
	own = others->account;
	others->account = f.greedy;
	assert_int_equal(group_fill(&f, c[0].fd), SW_GROUP_MEMBERS * 9 / 16);
	assert_int_equal(
		f.greedy->held[ACCOUNT_group_members], SW_GROUP_MEMBERS * 9 / 16);
	assert_int_equal(f.greedy->refused[ACCOUNT_group_members], 1);
	assert_int_equal(group_fill(&f, c[1].fd), SW_GROUP_MEMBERS / 16);
	client_detach(&f.b, &c[0]);
	assert_int_equal(f.greedy->held[ACCOUNT_group_members], 0);
	assert_int_equal(f.greedy->held[ACCOUNT_groups], 0);
	/* The greedy user's are free again. */
	assert_int_equal(group_fill(&f, c[1].fd), SW_GROUP_MEMBERS / 2);
	assert_int_equal(own->held[ACCOUNT_groups], 1);
	client_detach(&f.b, &c[1]);
	account_fixture_close(&f);
}

/* Returns the error of the command. */
static int
cm_command(struct account_fixture *f, int fd, uint32_t channel, uint32_t cmd,
	const void *in, uint32_t len, struct sw_cm_reply *reply)
{
	struct sw_cm_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_CM_COMMAND,
		.channel = channel,
		.cmd = cmd,
		.len = len};

	memcpy(req.bytes, in, len);
	assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
	daemon_handle_all(&f->b);
	assert_int_equal(recv(fd, reply, sizeof(*reply), MSG_DONTWAIT), sizeof(*reply));
	return reply->error;
}

/* Creates IDs over two connections in turn. op: what is done with each, or NULL. Returns
 * how many succeeded. */
static uint32_t
ids_make(enum account_kind kind,
	int (*op)(struct account_fixture *f, int fd, uint32_t channel, uint32_t id))
{
	struct rdma_ucm_create_id create = {.uid = 1, .ps = RDMA_PS_TCP};
	struct sw_request open = {.type = SW_CM_OPEN};
	int fd[2], ends[SW_ATTACH_FDS], end[2], err = 0;
	struct rdma_ucm_create_id_resp made;
	static struct sw_cm_reply reply;
	struct account_fixture f;
	struct sw_reply opened[2];
	uint32_t n = 0, most;

	account_fixture_open(&f, kind);
	for (unsigned i = 0; i < 2; i++) {
		fd[i] = client_connect(&f.b);
		assert_true(client_call(&f.b, fd[i], &open, &opened[i], ends));
		end[i] = ends[0];
	}
	while (err == 0) {
		uint32_t channel = opened[n % 2].qpn;

		err = cm_command(&f, fd[n % 2], channel, RDMA_USER_CM_CMD_CREATE_ID,
			&create, sizeof(create), &reply);
		memcpy(&made, reply.bytes, sizeof(made));
		if (err == 0 && op != NULL)
			err = op(&f, fd[n % 2], channel, made.id);
		n += err == 0;
	}
	most = reserved(&f, kind);
	for (unsigned i = 0; i < 2; i++) {
		close(fd[i]);
		close(end[i]);
	}
	daemon_handle_all(&f.b);
	account_fixture_close(&f);
	assert_int_equal(n, most);
	return n;
}

static int
id_bind(struct account_fixture *f, int fd, uint32_t channel, uint32_t id)
{
	struct rdma_ucm_bind_ip cmd = {.id = id, .addr.sin6_family = AF_INET};
	static struct sw_cm_reply reply;

	return cm_command(
		f, fd, channel, RDMA_USER_CM_CMD_BIND_IP, &cmd, sizeof(cmd), &reply);
}

/* Raises an event that is not read. */
static int
id_resolve(struct account_fixture *f, int fd, uint32_t channel, uint32_t id)
{
	struct account *own = TAILQ_FIRST(&f->b.d->conns)->account;
	struct rdma_ucm_resolve_ip cmd = {.id = id};
	struct sockaddr_in *to = (struct sockaddr_in *)&cmd.dst_addr;
	uint32_t before = own->held[ACCOUNT_cm_events];
	static struct sw_cm_reply reply;

	to->sin_family = AF_INET;
	to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to->sin_port = htons(7471);
	(void)cm_command(
		f, fd, channel, RDMA_USER_CM_CMD_RESOLVE_IP, &cmd, sizeof(cmd), &reply);
	return own->held[ACCOUNT_cm_events] == before ? ENOSPC : 0;
}

TEST(cm_ids_are_reserved)
{
	assert_int_equal(ids_make(ACCOUNT_cm_ids, NULL), RDMACM_CONNECTIONS / 16);
}

TEST(cm_ports_are_reserved)
{
	assert_int_equal(ids_make(ACCOUNT_cm_ports, id_bind), 28232 / 16);
}

static int
id_listen(struct account_fixture *f, int fd, uint32_t channel, uint32_t id)
{
	struct rdma_ucm_listen cmd = {.id = id, .backlog = 1};
	static struct sw_cm_reply reply;

	return cm_command(
		f, fd, channel, RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), &reply);
}

TEST(cm_listeners_are_reserved)
{
	assert_int_equal(
		ids_make(ACCOUNT_cm_listeners, id_listen), CM_MAX_LISTENERS / 16);
}

TEST(cm_connections_are_reserved)
{
	struct account_fixture f;

	/* ucm_account has the rest. */
	account_fixture_open(&f, ACCOUNT_cm_connections);
	assert_int_equal(reserved(&f, ACCOUNT_cm_connections), RDMACM_CONNECTIONS / 16);
	account_fixture_close(&f);
}

TEST(cm_events_are_reserved)
{
	assert_int_equal(ids_make(ACCOUNT_cm_events, id_resolve), 65536 / 16);
}

TEST(alone_a_user_holds_everything)
{
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.socket_mode = 0700});
	for (unsigned kind = 0; kind < ACCOUNT_KINDS; kind++)
		assert_int_equal(accounts_most(&b.d->accounts, (enum account_kind)kind),
			b.d->accounts.limits[kind].capacity);
	assert_int_equal(accounts_most(&b.d->accounts, ACCOUNT_clients), 256);
	fixture_close(&b);
}

TEST(status_shows_users_and_limits)
{
	struct sw_request req = {.type = SW_STATUS, .qpn = SW_STATUS_USER};
	static struct sw_data_reply reply;
	struct account_fixture f;
	struct fixture_client c;
	char want[64];

	account_fixture_open(&f, ACCOUNT_clients);
	assert_int_equal(client_attach(&f.b, &c), 0);
	req.dest_qpn = (uint32_t)getuid();
	assert_int_equal(client_fetch(&f.b, c.fd, &req, &reply), 0);
	/* Both users' rows are in one reply. */
	assert_int_equal(reply.id, f.greedy->uid);
	reply.bytes[reply.len] = '\0';
	assert_non_null(strstr((char *)reply.bytes, "\"connections\": 1"));
	assert_non_null(strstr((char *)reply.bytes, "\"clients\": 1,"));
	assert_non_null(strstr((char *)reply.bytes, "}, {\"uid\": "));
	req.dest_qpn = reply.id + 1;
	assert_int_equal(client_fetch(&f.b, c.fd, &req, &reply), ENOENT);
	req.qpn = SW_STATUS_DEVICE;
	assert_int_equal(client_fetch(&f.b, c.fd, &req, &reply), 0);
	reply.bytes[reply.len] = '\0';
	snprintf(want, sizeof(want), "\"clients\": {\"all\": 32, \"user\": %u,",
		accounts_most(&f.b.d->accounts, ACCOUNT_clients));
	assert_non_null(strstr((char *)reply.bytes, want));
	client_detach(&f.b, &c);
	account_fixture_close(&f);
}

/* Users without a number in the daemon's user namespace have one account: none of them sees it. */
TEST(account_of_a_shared_uid_is_hidden)
{
	struct sw_request req = {.type = SW_STATUS, .qpn = SW_STATUS_USER};
	static struct sw_data_reply reply;
	struct account_fixture f;
	struct fixture_client c;
	struct conn *conn;
	uid_t uid;

	account_fixture_open(&f, ACCOUNT_clients);
	assert_int_equal(client_attach(&f.b, &c), 0);
	conn = TAILQ_LAST(&f.b.d->conns, conns);
	uid = conn->uid;
	conn->uid = conn->account->uid = geteuid() + 4711;
	assert_int_equal(client_fetch(&f.b, c.fd, &req, &reply), 0);
	conn->shares_uid = true;
	assert_int_equal(client_fetch(&f.b, c.fd, &req, &reply), ENOENT);
	conn->shares_uid = false;
	conn->uid = conn->account->uid = uid;
	client_detach(&f.b, &c);
	account_fixture_close(&f);
}
