/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies, and daemons that violate the protocol. */
#include "shm_fixture.h"
#include "base/account.h"

#include <sys/resource.h>
#include <sys/un.h>

#define NOBODY 65534

TEST(request_and_reply)
{
	struct sw_request req = {.type = SW_QPN_GIVE, .qpn = 4711};
	struct sw_reply out = reply_valid(), in;
	struct session s;
	int end = session_pair(&s);

	out.qpn = 17;
	reply_send(end, &out, sizeof(out), NULL, 0);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), 0);
	assert_int_equal(in.qpn, 17);
	req = request_recv(end);
	assert_int_equal(req.type, SW_QPN_GIVE);
	assert_int_equal(req.qpn, 4711);
	out.error = ENOMEM;
	reply_send(end, &out, sizeof(out), NULL, 0);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENOMEM);
	assert_int_equal(s.refused, ENOMEM);
	out.error = -5; /* not an errno value: no error */
	reply_send(end, &out, sizeof(out), NULL, 0);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), 0);
	assert_int_equal(s.refused, 0); /* the one before was */
	close(end);
	session_close(&s);
}

/* It counts as ended, and may be only stopped. One that has ended is not late. */
TEST(daemon_may_be_late)
{
	const struct timeval soon = {.tv_usec = 1000};
	struct sw_request req = {.type = SW_DEVICE_INFO};
	char text[SESSION_TEXT];
	struct sw_reply in;
	struct session s;
	int end = session_pair(&s);

	close(end);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENODEV);
	assert_false(s.timed_out);
	session_error_text(&s, "/run/a", -ENODEV, text, sizeof(text));
	assert_string_equal(
		text, "the daemon at /run/a has ended the connection without an answer");
	session_close(&s);
	end = session_pair(&s);
	assert_int_equal(
		setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENODEV);
	assert_true(s.timed_out);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENODEV);
	assert_true(s.timed_out);
	session_error_text(&s, "/run/a", -ENODEV, text, sizeof(text));
	assert_string_equal(text,
		"the daemon at /run/a has not answered for 10.0 s: it is there, but "
		"is stopped or hangs");
	close(end);
	session_close(&s);
}

/* The last bytes of the daemon before it closes the connection say why. */
static int
refused_session(struct session *s, const struct sw_reply *told, bool asked_before)
{
	struct sw_request req = {.type = SW_DEVICE_INFO};
	struct sw_reply in;
	int end = session_pair(s);

	if (asked_before) /* what the daemon has not read then is reported first */
		assert_int_equal(send(s->fd, &req, sizeof(req), 0), sizeof(req));
	assert_int_equal(send(end, told, SW_REFUSED_LEN, 0), SW_REFUSED_LEN);
	close(end);
	return session_call(s, &req, &in, NULL, 0);
}

TEST(refused_connection_says_for_which_limit)
{
	struct sw_reply told = reply_valid();
	char text[SESSION_TEXT];
	struct session s;

	told.type = 0;
	told.error = ENOSPC;
	told.refusal = (struct sw_refusal){
		.kind = 1 + ACCOUNT_connections, .uid = 1001, .held = 48, .most = 48};
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(refused_session(&s, &told, i != 0), -ENOSPC);
		session_error_text(&s, "/run/a", -ENOSPC, text, sizeof(text));
		assert_string_equal(text,
			"the daemon at /run/a refuses this process: limit of connections to the "
			"daemon: user 1001 has 48 of at most 48; to raise it: rocaded "
			"--max-clients, or max-clients in its configuration file");
		session_close(&s);
	}
	told.error = EMFILE;
	told.refusal.kind = 1 + ACCOUNT_descriptors;
	told.refusal.held = 40;
	assert_int_equal(refused_session(&s, &told, false), -EMFILE);
	session_error_text(&s, "/run/a", -EMFILE, text, sizeof(text));
	assert_string_equal(text,
		"the daemon at /run/a refuses this process: limit of file descriptors of the "
		"daemon: user 1001 has 40 of at most 48, and other users hold the rest; to "
		"raise it: more open files for the daemon (ulimit -n)");
	session_close(&s);
	/* Without a limit, and with a kind that this version does not know. */
	for (unsigned i = 0; i < 2; i++) {
		told.error = ENOMEM;
		told.refusal.kind = i == 0 ? 0 : 1 + ACCOUNT_KINDS;
		assert_int_equal(refused_session(&s, &told, false), -ENOMEM);
		session_error_text(&s, "/run/a", -ENOMEM, text, sizeof(text));
		assert_string_equal(text,
			"the daemon at /run/a refuses this process: Cannot allocate memory");
		session_close(&s);
	}
}

/* A value that the memory held before is no refusal. */
TEST(failed_open_has_no_refusal)
{
	struct rlimit before, none;
	char text[SESSION_TEXT];
	struct session s;

	memset(&s, EMFILE, sizeof(s));
	s.refused = EMFILE;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(session_open(&s, "/run/a"), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	session_error_text(&s, "/run/a", -EMFILE, text, sizeof(text));
	assert_string_equal(text, "no daemon answers at /run/a: Too many open files");
}

TEST(invalid_reply_closes_the_session)
{
	struct sw_request req = {.type = SW_DEVICE_INFO};
	struct sw_reply out = reply_valid(), in;
	struct session s;
	int end = session_pair(&s);

	reply_send(end, &out, sizeof(out) - 1, NULL, 0);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENODEV);
	close(end);
	session_close(&s);
	end = session_pair(&s);
	out.magic++;
	reply_send(end, &out, sizeof(out), NULL, 0);
	out.magic--;
	/* not received: the session is closed */
	reply_send(end, &out, sizeof(out), NULL, 0);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENODEV);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENODEV);
	assert_int_equal(send(end, &out, sizeof(out), MSG_NOSIGNAL), -1);
	close(end);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENODEV);
	session_close(&s);
	pthread_mutex_init(&s.lock, NULL);
	/* the session is closed */
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENODEV);
	session_close(&s);
}

TEST(data_is_fetched)
{
	const size_t head = offsetof(struct sw_data_reply, bytes);
	struct sw_request req = {.type = SW_STATUS};
	static struct sw_data_reply out, in;
	struct sw_reply refused = reply_valid();
	struct session s;
	int end = session_pair(&s);

	out.magic = SW_PROTO_MAGIC;
	out.version = SW_PROTO_VERSION;
	out.len = 3;
	memcpy(out.bytes, "abc", 3);
	reply_send(end, &out, head + 3, NULL, 0);
	assert_int_equal(session_fetch(&s, &req, &in), 0);
	assert_int_equal(in.len, 3);
	assert_memory_equal(in.bytes, "abc", 3);
	/* An error may come as the reply of another request. */
	refused.error = EPROTONOSUPPORT;
	reply_send(end, &refused, sizeof(refused), NULL, 0);
	assert_int_equal(session_fetch(&s, &req, &in), -EPROTONOSUPPORT);
	/* A length that is not that of the message ends the connection. */
	out.len = 4;
	reply_send(end, &out, head + 3, NULL, 0);
	assert_int_equal(session_fetch(&s, &req, &in), -ENODEV);
	assert_int_equal(session_fetch(&s, &req, &in), -ENODEV);
	close(end);
	session_close(&s);
}

/* Its rows come in the order of their numbers: a list of them has an end. */
TEST(daemon_repeats_no_row)
{
	const size_t head = offsetof(struct sw_data_reply, bytes);
	struct sw_data_reply out = {.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION};
	static struct sw_data_reply in;
	const struct sw_request asked[] = {
		{.type = SW_STATUS, .qpn = SW_STATUS_USER, .dest_qpn = 7},
		{.type = SW_REPORT, .qpn = 7, .dest_qpn = 64},
	};

	for (unsigned i = 0; i < RTE_DIM(asked); i++) {
		struct session s;
		int end = session_pair(&s);

		out.id = 7;
		reply_send(end, &out, head, NULL, 0);
		assert_int_equal(session_fetch(&s, &asked[i], &in), 0);
		out.id = 6;
		reply_send(end, &out, head, NULL, 0);
		assert_int_equal(session_fetch(&s, &asked[i], &in), -ENODEV);
		close(end);
		session_close(&s);
	}
}

/* A reply of another version may have another length. */
TEST(daemon_of_another_version_is_refused)
{
	struct sw_request req = {.type = SW_STATUS};
	struct sw_reply out = reply_valid(), in;
	struct sw_data_reply data;
	char text[256], expected[256];
	struct session s;
	int end = session_pair(&s);

	out.version = SW_PROTO_VERSION - 1;
	reply_send(end, &out, sizeof(out), NULL, 0);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -EPROTONOSUPPORT);
	reply_send(end, &out, sizeof(out) - 1, NULL, 0);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -EPROTONOSUPPORT);
	out.error = EPROTONOSUPPORT;
	reply_send(end, &out, sizeof(out), NULL, 0);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -EPROTONOSUPPORT);
	out.version = SW_PROTO_VERSION + 1;
	reply_send(end, &out, 8, NULL, 0);
	assert_int_equal(session_fetch(&s, &req, &data), -EPROTONOSUPPORT);
	session_error_text(&s, "/run/a", -EPROTONOSUPPORT, text, sizeof(text));
	snprintf(expected, sizeof(expected),
		"the daemon at /run/a has version %d of the protocol, expected %d: start "
		"the daemon of the same version of Rocade as this program",
		SW_PROTO_VERSION + 1, SW_PROTO_VERSION);
	assert_string_equal(text, expected);
	/* No version at all. */
	reply_send(end, &out, 7, NULL, 0);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENODEV);
	close(end);
	session_close(&s);
}

TEST(surplus_descriptors_are_closed)
{
	struct sw_request req = {.type = SW_STATUS};
	struct sw_reply out = reply_valid(), in;
	unsigned before = fds_count();
	struct session s;
	int end = session_pair(&s), fds[3] = {end, end, end};

	reply_send(end, &out, sizeof(out), fds, 3);
	assert_int_equal(session_call(&s, &req, &in, fds, 1), 0);
	assert_true(fds[0] >= 0);
	assert_int_equal(fds_count(), before + 3); /* both ends and the one asked for */
	assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	close(fds[0]);
	fds[0] = fds[1] = fds[2] = end;
	reply_send(end, &out, sizeof(out), fds, 2);
	assert_int_equal(session_call(&s, &req, &in, fds, 3), 0);
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	assert_int_equal(fds[2], -1);
	close(fds[0]);
	close(fds[1]);
	/* The descriptors of an invalid reply are closed, too. */
	fds[0] = fds[1] = fds[2] = end;
	reply_send(end, &out, 4, fds, 3);
	assert_int_equal(session_call(&s, &req, &in, NULL, 0), -ENODEV);
	assert_int_equal(fds_count(), before + 2);
	close(end);
	session_close(&s);
}

/* The process may open no more. */
TEST(descriptors_without_room_are_emfile)
{
	struct sw_request req = {.type = SW_STATUS};
	struct sw_reply out = reply_valid(), in;
	struct rlimit before, few;
	struct session s;
	int end = session_pair(&s), fds[2] = {end, end}, next = dup(end), rc;
	unsigned open = fds_count();

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	reply_send(end, &out, sizeof(out), fds, 2);
	/* One of the two has room. */
	few = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = before.rlim_max};
	close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	rc = session_call(&s, &req, &in, fds, 2);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rc, -EMFILE);
	assert_int_equal(fds[0], -1);
	assert_int_equal(fds[1], -1);
	assert_int_equal(fds_count(), open - 1);
	/* The session goes on. */
	fds[0] = end;
	reply_send(end, &out, sizeof(out), fds, 1);
	assert_int_equal(session_call(&s, &req, &in, fds, 1), 0);
	close(fds[0]);
	close(end);
	session_close(&s);
}

TEST(no_daemon_at_the_socket)
{
	unsigned before = fds_count();
	char path[200];
	struct session s;

	assert_int_equal(session_open(&s, "/nonexistent/rocade.sock"), -ENOENT);
	assert_int_equal(session_open(&s, "/dev/null"), -ECONNREFUSED);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(session_open(&s, path), -EINVAL);
	assert_int_equal(fds_count(), before);
}

/* Listens at path as the user. Returns the socket. */
static int
listen_as(uid_t uid, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(seteuid(getuid()), 0);
	return fd;
}

/* Programs look for several files of a device, and wait for a stopped daemon each time. */
TEST(late_daemon_is_not_waited_for_as_long_again)
{
	const struct timeval soon = {.tv_usec = 1000};
	struct sw_request req = {.type = SW_DEVICE_INFO};
	char dir[] = "/tmp/rocade-test-XXXXXX", path[64];
	struct sw_reply out = reply_valid(), in;
	struct session s, pair;
	int end = session_pair(&pair), fd;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	fd = listen_as(geteuid(), path);
	assert_int_equal(session_open(&s, path), 0);
	assert_int_equal(s.wait_ms, 10000);
	session_close(&s);
	assert_int_equal(
		setsockopt(pair.fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
	assert_int_equal(session_call(&pair, &req, &in, NULL, 0), -ENODEV);
	assert_int_equal(session_open(&s, path), 0);
	assert_int_equal(s.wait_ms, 1000);
	session_close(&s);
	close(end);
	session_close(&pair);
	/* It answers again. */
	end = session_pair(&pair);
	reply_send(end, &out, sizeof(out), NULL, 0);
	assert_int_equal(session_call(&pair, &req, &in, NULL, 0), 0);
	assert_int_equal(session_open(&s, path), 0);
	assert_int_equal(s.wait_ms, 10000);
	session_close(&s);
	session_close(&pair);
	close(end);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

TEST(users_whose_daemon_is_accepted)
{
	static const char *const wrong[] = {
		"", "1002x", "x", " 1002", "+1002", "-1", "4294968298", "1003"};

	assert_true(session_uid_accepted(0, 1001, NULL));
	assert_true(session_uid_accepted(1001, 1001, NULL));
	assert_false(session_uid_accepted(1002, 1001, NULL));
	assert_false(session_uid_accepted(1002, 0, NULL));
	assert_true(session_uid_accepted(1002, 1001, "1002"));
	for (unsigned i = 0; i < RTE_DIM(wrong); i++)
		assert_false(session_uid_accepted(1002, 1001, wrong[i]));
	assert_false(session_uid_accepted((uid_t)-1, 1001, "-1"));
}

/* Another user was first at a path where all may create files. */
TEST(daemon_of_another_user_is_refused)
{
	char dir[] = "/tmp/rocade-test-XXXXXX", path[64], text[256];
	uid_t uid = geteuid() == 0 ? NOBODY : geteuid();
	unsigned before = fds_count();
	struct session s;
	int fd;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0777), 0);
	snprintf(path, sizeof(path), "%s/socket", dir);
	unsetenv(SESSION_UID_ENV);
	fd = listen_as(uid, path);
	if (geteuid() == 0) {
		assert_int_equal(session_open(&s, path), -EPERM);
		session_error_text(&s, path, -EPERM, text, sizeof(text));
		assert_non_null(strstr(text, path));
		assert_non_null(strstr(text, "of user 65534, expected root (0), user 0"));
		setenv(SESSION_UID_ENV, "65534", 1);
	}
	assert_int_equal(session_open(&s, path), 0);
	assert_int_equal(s.daemon_uid, uid);
	session_close(&s);
	unsetenv(SESSION_UID_ENV);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(fds_count(), before);
}

TEST(device_description_is_checked)
{
	struct sw_reply good = reply_valid(), out;
	struct sw_device device;
	struct session s;
	int end = session_pair(&s);

	good.device.net.addr_count = NET_MAX_ADDRS - 1; /* and the link-local one */
	reply_send(end, &good, sizeof(good), NULL, 0);
	assert_int_equal(session_device(&s, &device), 0);
	assert_int_equal(request_recv(end).type, SW_DEVICE_INFO);
	assert_memory_equal(&device, &good.device, sizeof(device));
	for (unsigned i = 0; i < 6; i++) {
		out = good;
		if (i >= 4) /* the index may be one of the kernel's, or negative */
			out.device.index = i == 4 ? 7 : UINT32_MAX;
		else if (i == 0)
			out.device.net.addr_count = NET_MAX_ADDRS;
		else if (i == 1)
			out.device.net.addr_count = 0;
		else if (i == 2)
			out.device.name[0] = '\0';
		else
			memset(out.device.name, 'x', sizeof(out.device.name));
		reply_send(end, &out, sizeof(out), NULL, 0);
		assert_int_equal(session_device(&s, &device), -EPROTO);
	}
	assert_memory_equal(&device, &good.device, sizeof(device));
	out.error = EIO;
	reply_send(end, &out, sizeof(out), NULL, 0);
	assert_int_equal(session_device(&s, &device), -EIO);
	close(end);
	session_close(&s);
}
