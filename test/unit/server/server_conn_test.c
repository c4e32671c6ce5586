/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that connect, attach, send requests, send malformed ones, and disconnect. */
#include <sys/prctl.h>
#include <sys/resource.h>

#include "server_fixture.h"
#include "base/base_log.h"
#include "server/server_own.h"

TEST(device_info_before_attach)
{
	struct sw_request req = {.type = SW_DEVICE_INFO};
	struct sw_reply reply;
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){
				 .name = "ring0", .mtu = 1500, .client_qps = 7});
	fd = client_connect(&b);
	assert_true(client_call(&b, fd, &req, &reply, NULL));
	assert_int_equal(reply.error, 0);
	assert_string_equal(reply.device.name, "ring0");
	assert_int_equal(reply.device.mtu, 1500);
	assert_int_equal(reply.device.max_qp, 7);
	assert_int_equal(reply.device.local, 1);
	/* Other requests need an attachment. */
	req.type = SW_QPN_TAKE;
	assert_true(client_call(&b, fd, &req, &reply, NULL));
	assert_int_equal(reply.error, ENOTCONN);
	close(fd);
	daemon_handle_all(&b);
	assert_int_equal(conns_count(b.d), 0);
	fixture_close(&b);
}

TEST(passed_descriptors_cannot_harm_the_daemon)
{
	struct sw_request req = {.type = SW_ATTACH};
	struct fixture_client c;
	struct sw_reply reply;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	for (unsigned i = SW_FD_CLIENT_MEM;; i = SW_FD_DAEMON_MEM) {
		assert_int_equal(fcntl(c.fds[i], F_GET_SEALS),
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
		assert_int_equal(ftruncate(c.fds[i], 4096), -1);
		assert_int_equal(ftruncate(c.fds[i], 1 << 30), -1);
		if (i == SW_FD_DAEMON_MEM)
			break;
	}
	/* The client can make its wake-up socket blocking and let it fill: the daemon
	 * does not block. */
	fcntl(c.fds[2], F_SETFL, 0);
	for (unsigned i = 0; i < 100000; i++)
		share_wake(TAILQ_FIRST(&b.d->conns), NULL);
	/* A client attaches once. */
	assert_true(client_call(&b, c.fd, &req, &reply, NULL));
	assert_int_equal(reply.error, EALREADY);
	client_detach(&b, &c);
	share_wake(&(struct conn){.wake_fd = -1}, NULL); /* not attached */
	assert_int_equal(b.d->sw->client_count, 0);
	fixture_close(&b);
}

TEST(client_is_woken)
{
	struct fixture_client c;
	char bytes[8];
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	assert_int_equal(recv(c.fds[2], bytes, 8, MSG_DONTWAIT), -1);
	share_wake(TAILQ_FIRST(&b.d->conns), NULL);
	assert_int_equal(recv(c.fds[2], bytes, 8, MSG_DONTWAIT), 1);
	client_detach(&b, &c);
	fixture_close(&b);
}

TEST(malformed_request_disconnects)
{
	uint8_t bytes[sizeof(struct sw_request) + 64] = {0};
	struct sw_request req = {.magic = 1, .version = SW_PROTO_VERSION};
	static const size_t lens[] = {
		1, 55, 57, sizeof(struct sw_request) + 64, sizeof(struct sw_request)};
	struct sw_reply reply;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	memcpy(bytes, &req, sizeof(req)); /* the last length is valid, its magic is not */
	for (size_t i = 0; i < RTE_DIM(lens); i++) {
		int fd = client_connect(&b);

		assert_int_equal(send(fd, bytes, lens[i], 0), lens[i]);
		daemon_handle_all(&b);
		assert_false(client_recv(fd, &reply, NULL));
		assert_int_equal(conns_count(b.d), 0);
		close(fd);
	}
	fixture_close(&b);
}

TEST(client_that_does_not_read_is_disconnected)
{
	struct sw_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_DEVICE_INFO};
	unsigned sent = 0;
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	b.closers_wait = true;
	fd = client_connect(&b);
	while (conns_count(b.d) != 0 && sent < 100000) {
		assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
		sent++;
		daemon_handle_all(&b);
	}
	assert_int_equal(conns_count(b.d), 0);
	close(fd);
	fixture_close(&b);
}

TEST(refused_attach_leaks_nothing)
{
	struct sw_request req = {.type = SW_ATTACH};
	struct fixture_client c;
	struct sw_reply reply;
	unsigned fds, maps;
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.max_clients = 1});
	assert_int_equal(client_attach(&b, &c), 0);
	fd = client_connect(&b);
	fds = fds_count();
	maps = maps_count();
	for (unsigned i = 0; i < 100; i++) {
		assert_true(client_call(&b, fd, &req, &reply, NULL));
		assert_int_equal(reply.error, ENOSPC);
	}
	assert_int_equal(fds_count(), fds);
	assert_int_equal(maps_count(), maps);
	/* A departed client frees its place. */
	client_detach(&b, &c);
	close(fd);
	daemon_handle_all(&b);
	assert_int_equal(client_attach(&b, &c), 0);
	client_detach(&b, &c);
	fixture_close(&b);
}

static char warning[256];
static unsigned warnings;

static void
warning_keep(enum log_level level, const char *line, void *arg)
{
	(void)arg;
	if (level != LOG_LEVEL_WARN)
		return;
	warnings++;
	snprintf(warning, sizeof(warning), "%s", line);
}

TEST(connections_of_a_user_are_limited)
{
	char expected[128];
	struct sw_request req = {.type = SW_DEVICE_INFO};
	struct sw_reply reply, told;
	struct server_fixture b;
	int fds[17];

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	accounts_limit(&b.d->accounts, ACCOUNT_connections, 16, false);
	log_set_sink(warning_keep, NULL);
	warnings = 0;
	for (unsigned i = 0; i < 17; i++)
		fds[i] = client_connect(&b);
	assert_int_equal(conns_count(b.d), 16);
	snprintf(expected, sizeof(expected),
		"client rejected: process %d of user %u: too many connections of this "
		"user (see max-clients)",
		(int)getpid(), (unsigned)getuid());
	assert_string_equal(warning, expected);
	/* The next line comes a second later, however often the user tries. */
	for (unsigned i = 0; i < 50; i++)
		close(client_connect(&b));
	assert_int_equal(warnings, 1);
	b.d->rejected_ns -= NS_PER_SEC;
	close(client_connect(&b));
	assert_int_equal(warnings, 2);
	log_set_sink(NULL, NULL);
	assert_true(client_call(&b, fds[15], &req, &reply, NULL));
	/* It is told for which limit, even if it has asked for something meanwhile. */
	assert_int_equal(
		recv(fds[16], &told, sizeof(told), MSG_DONTWAIT), SW_REFUSED_LEN);
	assert_int_equal(told.error, ENOSPC);
	assert_int_equal(told.refusal.kind, 1 + ACCOUNT_connections);
	assert_int_equal(told.refusal.uid, getuid());
	assert_int_equal(told.refusal.held, 16);
	assert_int_equal(told.refusal.most, 16);
	assert_false(client_recv(fds[16], &reply, NULL));
	for (unsigned i = 0; i < 17; i++)
		close(fds[i]);
	daemon_handle_all(&b);
	fds[0] = client_connect(&b);
	assert_int_equal(conns_count(b.d), 1);
	close(fds[0]);
	fixture_close(&b);
}

/* Returns how many of n connections beyond the limit are told why. */
static unsigned
told_of(struct server_fixture *b, unsigned n)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		struct sw_reply told;
		int fd = client_connect(b);

		count += recv(fd, &told, sizeof(told), MSG_DONTWAIT) == SW_REFUSED_LEN;
		close(fd);
	}
	return count;
}

TEST(refusals_are_told_a_limited_number_of_times)
{
	struct account *account;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	accounts_limit(&b.d->accounts, ACCOUNT_connections, 0, false);
	assert_int_equal(told_of(&b, 1), 1);
	account = TAILQ_FIRST(&b.d->accounts.users);
	assert_non_null(account);
	account_hold(account);
	rate_init(&account->told, 3600 * NS_PER_SEC, ACCOUNT_TOLD_BURST);
	assert_int_equal(told_of(&b, ACCOUNT_TOLD_BURST + 50), ACCOUNT_TOLD_BURST);
	account->told.full_ns -= 3600 * NS_PER_SEC;
	assert_int_equal(told_of(&b, 3), 1);
	/* All users together have a limit, too. */
	rate_init(&account->told, 3600 * NS_PER_SEC, ACCOUNT_TOLD_BURST);
	rate_init(&b.d->accounts.told, 3600 * NS_PER_SEC, 7);
	rate_init(&b.d->accounts.told_first, 3600 * NS_PER_SEC, 2);
	assert_int_equal(told_of(&b, 20), 1 + 7);
	assert_true(
		account->told.full_ns - b.d->accounts.told.full_ns <= 3600 * NS_PER_SEC);
	/* They leave a user who was not told before the first message. That, too, has a limit. */
	account->told.full_ns = 0;
	assert_int_equal(told_of(&b, 3), 1);
	account->told.full_ns = 0;
	assert_int_equal(told_of(&b, 3), 0);
	account_close(account);
	fixture_close(&b);
}

TEST(version_mismatch_reports_our_version)
{
	struct sw_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION - 1,
		.type = SW_ATTACH};
	struct sw_reply reply;
	struct server_fixture b;
	char expected[128];
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	log_set_sink(warning_keep, NULL);
	warnings = 0;
	fd = client_connect(&b);
	/* One line in a second, however often the client tries. */
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
		daemon_handle_all(&b);
		assert_true(client_recv(fd, &reply, NULL));
		assert_int_equal(reply.error, EPROTONOSUPPORT);
		assert_int_equal(reply.version, SW_PROTO_VERSION);
	}
	log_set_sink(NULL, NULL);
	assert_int_equal(warnings, 1);
	snprintf(expected, sizeof(expected),
		"client rejected: process %d of user %u: version %d of the protocol, "
		"expected %d",
		(int)getpid(), (unsigned)getuid(), SW_PROTO_VERSION - 1,
		SW_PROTO_VERSION);
	assert_string_equal(warning, expected);
	close(fd);
	fixture_close(&b);
}

TEST(connections_of_all_are_limited)
{
	struct server_fixture b;
	int fds[4];

	fixture_open(&b, (struct rocade_daemon_conf){.max_clients = 1});
	log_set_sink(warning_keep, NULL);
	for (unsigned i = 0; i < 4; i++)
		fds[i] = client_connect(&b);
	assert_int_equal(conns_count(b.d), 3);
	assert_non_null(
		strstr(warning, ": too many connections of this user (see max-clients)"));
	log_set_sink(NULL, NULL);
	for (unsigned i = 0; i < 4; i++)
		close(fds[i]);
	daemon_handle_all(&b);
	fixture_close(&b);
}

TEST(accept_without_free_descriptor_disconnects)
{
	struct rlimit before, none;
	struct sw_request req = {.type = SW_DEVICE_INFO};
	struct sw_reply reply;
	int fd, other, lowest;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	fd = client_socket();
	other = client_socket();
	lowest = dup(other);
	assert_int_equal(close(lowest), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	client_connect_fd(&b, fd);
	assert_int_equal(conns_count(b.d), 0);
	assert_int_equal(recv(fd, &reply, sizeof(reply), MSG_DONTWAIT), SW_REFUSED_LEN);
	assert_int_equal(reply.error, EMFILE);
	assert_int_equal(reply.refusal.kind, 0);
	assert_false(client_recv(fd, &reply, NULL));
	/* The connection is not pending any more: the daemon can sleep. */
	assert_int_equal(accept(b.d->listen.fd, NULL, NULL), -1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(b.d->spare_fd >= 0);
	client_connect_fd(&b, other);
	assert_true(client_call(&b, other, &req, &reply, NULL));
	close(fd);
	close(other);
	fixture_close(&b);
}

TEST(corrupt_ring_disconnects)
{
	struct fixture_client good, bad;
	struct sw_reply reply;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &good), 0);
	assert_int_equal(client_attach(&b, &bad), 0);
	bad.region.client->tx_prod = 12345;
	sw_run(b.d->sw, 0);
	assert_int_not_equal(b.d->sw->corrupt_count, b.d->corrupt_seen);
	conn_close_corrupt(b.d);
	assert_int_equal(b.d->sw->corrupt_count, b.d->corrupt_seen);
	assert_int_equal(b.d->sw->client_count, 1);
	assert_false(client_recv(bad.fd, &reply, NULL));
	/* the wake-up socket is closed too */
	assert_int_equal(recv(bad.fds[2], &reply, 1, MSG_DONTWAIT), 0);
	client_detach(&b, &bad);
	client_detach(&b, &good);
	fixture_close(&b);
}

TEST(process_name_is_escaped_in_status)
{
	struct sw_request req = {.type = SW_STATUS, .qpn = SW_STATUS_CLIENT};
	static struct sw_data_reply reply;
	struct fixture_client c;
	struct server_fixture b;
	char before[16];

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	prctl(PR_GET_NAME, before);
	prctl(PR_SET_NAME, "a\"b\\c\xff\nd");
	assert_int_equal(client_attach(&b, &c), 0);
	prctl(PR_SET_NAME, before);
	assert_int_equal(client_fetch(&b, c.fd, &req, &reply), 0);
	assert_int_equal(reply.id, c.reply.client_id);
	reply.bytes[reply.len] = '\0';
	assert_non_null(strstr((char *)reply.bytes, "\"name\": \"a?b?c?"));
	assert_non_null(strstr((char *)reply.bytes, "\"qp_count\": 0"));
	/* It is the last one. */
	req.dest_qpn = reply.id + 1;
	assert_int_equal(client_fetch(&b, c.fd, &req, &reply), ENOENT);
	req.qpn = SW_STATUS_DEVICE;
	assert_int_equal(client_fetch(&b, c.fd, &req, &reply), 0);
	reply.bytes[reply.len] = '\0';
	assert_non_null(strstr((char *)reply.bytes, "192.0.2.1"));
	req.qpn = 99;
	assert_int_equal(client_fetch(&b, c.fd, &req, &reply), EINVAL);
	client_detach(&b, &c);
	fixture_close(&b);
}

/* The socket's file may be another user's, or gone. */
TEST(own_process_connects_without_the_path)
{
	struct sw_request req = {.type = SW_STATUS, .qpn = SW_STATUS_DEVICE};
	static struct sw_data_reply reply;
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(unlink(b.path), 0);
	assert_null(own_accept(b.d));
	assert_int_equal(rocade_daemon_connect(b.d, &fd), 0);
	assert_non_null(own_accept(b.d));
	assert_null(own_accept(b.d));
	assert_int_equal(conns_count(b.d), 1);
	assert_int_equal(TAILQ_FIRST(&b.d->conns)->uid, getuid());
	assert_int_equal(client_fetch(&b, fd, &req, &reply), 0);
	reply.bytes[reply.len] = '\0';
	assert_non_null(strstr((char *)reply.bytes, "192.0.2.1"));
	close(fd);
	daemon_handle_all(&b);
	assert_int_equal(conns_count(b.d), 0);
	fixture_close(&b);
}

TEST(own_connection_that_waits_ends_with_the_daemon)
{
	struct server_fixture b;
	char byte;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(rocade_daemon_connect(b.d, &fd), 0);
	b.fds++; /* fd */
	fixture_close(&b);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	close(fd);
}
