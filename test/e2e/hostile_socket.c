/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile clients: what they send over their sockets. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "hostile.h"
#include "../lib/fd_send.h"

int
mode_talk(void)
{
	unsigned talks = 0;

	for (; time_left(); talks++) {
		uint64_t words[64];
		struct session s;

		if (session_open(&s, NULL) != 0)
			return 1;
		for (unsigned round = 0; round < 40; round++) {
			struct sw_request *req = (struct sw_request *)words;
			size_t len = random_next() % 4 != 0 ? sizeof(*req)
							    : random_next() % 512;

			for (unsigned i = 0; i < RTE_DIM(words); i++)
				words[i] = random_next();
			if (random_next() % 8 != 0) {
				req->magic = SW_PROTO_MAGIC;
				req->version = SW_PROTO_VERSION;
				req->type = (uint32_t)(random_next() % 16);
			}
			if (random_next() % 4 == 0)
				(void)fd_send(s.fd, s.fd, words, len);
			else if (send(s.fd, words, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
				break;
		}
		session_close(&s);
	}
	printf("talks %u\n", talks);
	return 0;
}

int
lingering_open(int *end)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger on = {.l_onoff = 1, .l_linger = 3600};
	static const char data[65536];
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	const int small = 4096;

	/* So that they are soon full. */
	(void)setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (bind(listener, (struct sockaddr *)&addr, len) != 0 ||
		listen(listener, 1) != 0 ||
		getsockname(listener, (struct sockaddr *)&addr, &len) != 0 ||
		connect(fd, (struct sockaddr *)&addr, len) != 0)
		abort();
	*end = accept(listener, NULL, NULL);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		continue;
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on)) != 0)
		abort();
	close(listener);
	return fd;
}

/* Sends such a socket, of which no copy stays in this process: a process that exits does
 * not wait in close(), so a child sends it, after the copy here is closed. Returns the
 * other end. */
static int
lingering_send(int to, const void *bytes, size_t len)
{
	int end, fd = lingering_open(&end), go[2];
	pid_t child;
	char byte;

	if (pipe(go) != 0 || (child = fork()) < 0)
		abort();
	if (child == 0) {
		if (read(go[0], &byte, 1) == 1)
			(void)fd_send(to, fd, bytes, len);
		_exit(0);
	}
	close(fd);
	if (write(go[1], "", 1) != 1 || waitpid(child, NULL, 0) != child)
		abort();
	close(go[0]);
	close(go[1]);
	return end;
}

int
answer_ms(void)
{
	struct sw_request req = {.type = SW_DEVICE_INFO};
	struct timespec begin, end;
	struct sw_reply reply;
	struct session s;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	rc = session_open(&s, NULL);
	if (rc != 0)
		return rc;
	rc = session_call(&s, &req, &reply, NULL, 0);
	session_close(&s);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return rc != 0 ? rc
		       : (int)((end.tv_sec - begin.tv_sec) * 1000 +
				 (end.tv_nsec - begin.tv_nsec) / 1000000);
}

/* Sends descriptors whose last close waits over each socket of the daemon. Returns after how many ms the daemon
 * answers then, or -errno. */
static int
linger_once(void)
{
	const struct sw_request info = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_DEVICE_INFO};
	const struct sw_request open = {.type = SW_CM_OPEN};
	int ends[4], channel, rc;
	struct sw_reply reply;
	struct session s;
	struct me me;

	rc = attach(&me);
	if (rc != 0)
		return rc;
	rc = session_open(&s, NULL);
	if (rc == 0) {
		rc = session_call(&s, &open, &reply, &channel, 1);
		if (rc != 0)
			session_close(&s);
	}
	if (rc != 0) {
		detach(&me);
		return rc;
	}
	ends[0] = lingering_send(me.fds[2], "", 1);
	ends[1] = lingering_send(channel, "", 1);
	ends[2] = lingering_send(s.fd, &info, sizeof(info));
	ends[3] = lingering_send(me.session.fd, "", 0);
	session_close(&s);
	close(channel);
	detach(&me);
	rc = answer_ms();
	for (unsigned i = 0; i < RTE_DIM(ends); i++)
		close(ends[i]);
	return rc;
}

int
mode_linger(void)
{
	int slowest = 0, rounds = 0, refused = 0;

	do {
		int ms = linger_once();

		/* Other attacks of the same user have all that it may have: others run meanwhile. */
		if (is_refusal(ms)) {
			refused++;
			others_run_us(50000);
			continue;
		}
		if (ms < 0) {
			printf("round %d: %s\n", rounds, strerror(-ms));
			return 1;
		}
		slowest = RTE_MAX(slowest, ms);
		rounds++;
	} while (time_left());
	printf("rounds %d, refused %d, slowest answer %d ms\n", rounds, refused, slowest);
	/* A slower answer would have ended the session. */
	return rounds == 0 && refused == 0;
}
