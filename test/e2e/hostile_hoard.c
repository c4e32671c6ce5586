/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile clients: they take what is limited. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

int
mode_places(void)
{
	static struct me us[64];
	unsigned most = 0;

	do {
		unsigned n = 0;

		while (n < RTE_DIM(us) && attach(&us[n]) == 0)
			n++;
		most = RTE_MAX(most, n);
		while (n > 0)
			detach(&us[--n]);
	} while (time_left());
	printf("places %u\n", most);
	return most == 0;
}

int
mode_qpns(void)
{
	unsigned most = 0;
	struct me me;

	if (attach(&me) != 0)
		return 1;
	while (time_left()) {
		static uint32_t mine[65536];
		unsigned n = 0;
		int rc = 0;

		while (n < RTE_DIM(mine) &&
			(rc = daemon_call(&me, SW_QPN_TAKE, 0, 0, &mine[n])) == 0)
			n++;
		if (rc == -ENODEV)
			return 1;
		most = RTE_MAX(most, n);
		if (daemon_call(&me, SW_QPN_GIVE, mine[0] + 65536, 0, NULL) != -EINVAL)
			return 1;
		while (n > 0 && time_left())
			(void)daemon_call(&me, SW_QPN_GIVE, mine[--n], 0, NULL);
	}
	printf("qpns %u\n", most);
	return 0; /* the daemon frees the rest when this process ends */
}

#define CHILDREN 16

/* Tells how many places it has, and keeps them until its parent ends. */
static void
crowd_child(int tell, int parent)
{
	static struct me us[16];
	char n = 0;

	while (n < (char)RTE_DIM(us) && attach(&us[(unsigned)n]) == 0)
		n++;
	if (write(tell, &n, 1) != 1)
		_exit(1);
	_exit(read(parent, &n, 1) == 0 ? 0 : 1);
}

/* Starts a child and returns how many places it has got, or -1. */
static int
crowd_start(const int tell[2], const int stay[2])
{
	pid_t child = fork();
	char n;

	if (child < 0)
		return -1;
	if (child == 0) {
		close(stay[1]);
		crowd_child(tell[1], stay[0]);
	}
	return read(tell[0], &n, 1) == 1 ? n : -1;
}

int
mode_crowd(void)
{
	int places = 0, tell[2], stay[2], got;
	char byte;

	if (pipe(tell) != 0 || pipe(stay) != 0)
		return 1;
	for (unsigned i = 0; i < CHILDREN; i++) {
		got = crowd_start(tell, stay);
		if (got < 0)
			return 1;
		places += got;
	}
	printf("places %d\n", places);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	close(stay[1]);
	for (unsigned i = 0; i < CHILDREN; i++) {
		int status;

		if (wait(&status) < 0 || status != 0)
			return 1;
	}
	return 0;
}

int
mode_flood(void)
{
	struct sw_request req = {
		.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION, .type = SW_STATUS};
	static struct sw_data_reply reply;
	static struct session s[16];
	uint64_t answers = 0;
	unsigned n = 0;

	while (n < RTE_DIM(s) && session_open(&s[n], NULL) == 0)
		n++;
	/* One request waits in each connection all the time. */
	for (unsigned i = 0; i < n; i++) {
		if (send(s[i].fd, &req, sizeof(req), MSG_NOSIGNAL) < 0)
			return 1;
	}
	while (time_left()) {
		for (unsigned i = 0; i < n; i++) {
			ssize_t len = recv(s[i].fd, &reply, sizeof(reply), MSG_DONTWAIT);

			if (len < 0 && errno == EAGAIN)
				continue;
			if (len <= 0 ||
				send(s[i].fd, &req, sizeof(req), MSG_NOSIGNAL) < 0)
				return 1;
			answers++;
		}
	}
	printf("answers %llu\n", (unsigned long long)answers);
	return answers == 0;
}
