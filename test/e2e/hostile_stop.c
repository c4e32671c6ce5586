/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile clients: they try to make the daemon's thread wait, or to keep it busy with their own
 * requests. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "hostile.h"
#include "../lib/fd_send.h"
#include "../lib/held_page.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#define ASKERS 24               /* processes of mode_asks() */
#define CONNS 16                /* of a process */
#define ASKER_CONNS (CONNS - 1) /* besides the one that is attached */
#define ASKS 4                  /* requests that wait in each connection */
#define AGAIN 2000              /* times that it asks for the same descriptors */
#define HELD 64                 /* lingering sockets that are kept at a time */
#define NULLS 100               /* descriptors of a message */

static const struct sw_request info = {
	.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION, .type = SW_DEVICE_INFO};

/* ---- The wake connection of a pair ---- */

/* Two clients of this process have QPs that are connected with each other. Returns 0 or -1. */
static int
two_connect(struct me me[2])
{
	uint32_t qpn[2];

	for (unsigned i = 0; i < 2; i++)
		if (attach(&me[i]) != 0 ||
			daemon_call(&me[i], SW_QPN_TAKE, 0, 0, &qpn[i]) != 0)
			return -1;
	for (unsigned i = 0; i < 2; i++)
		if (daemon_call(&me[i], SW_PEER_SET, qpn[i], qpn[!i], NULL) != 0)
			return -1;
	return 0;
}

/* Exit status of a child, and a round: the daemon has answered that there is no pair for now, because it has
 * not freed those of the rounds before. */
#define REFUSED 2
#define REFUSED_MOST                                                                     \
	400 /* in a row, 50 ms each at least: the daemon frees ten times as fast */

/* Asks for the own part of the pair. Returns the own end of the connection with the partner, -1, or
 * -REFUSED. */
static int
wake_end_take(struct me *me, uint32_t *partner)
{
	struct sw_request req = {.type = SW_PAIR};
	struct sw_reply reply;
	int fds[2];

	if (session_call(&me->session, &req, &reply, fds, 2) != 0)
		return -1;
	if (reply.qpn != SW_PAIR_OWN)
		return reply.qpn == SW_PAIR_NONE ? -REFUSED : -1;
	close(fds[0]);
	*partner = reply.client_id;
	return fds[1];
}

enum leaving {
	LEAVE_FAILED, /* one client says that the pair has failed */
	LEAVE_SESSION,
	LEAVE_PROCESS,
	LEAVINGS,
};

/* Leaves a lingering socket in the connection of a pair, and no other copy of the ends than the daemon's.
 * Then the pair ends. Tells the parent, and stays until the parent ends its pipe. */
static void
linger_child(int lingering, enum leaving how, int tell, int stay)
{
	struct sw_request failed = {.type = SW_PAIR, .dest_qpn = SW_PAIR_FAILED};
	const int on = 1;
	struct sw_reply reply;
	struct me me[2];
	uint32_t partner;
	int ends[2] = {0}, none[2];

	if (two_connect(me) != 0)
		_exit(1);
	if ((ends[1] = wake_end_take(&me[1], &partner)) < 0 ||
		(ends[0] = wake_end_take(&me[0], &partner)) < 0)
		_exit(ends[1] == -REFUSED || ends[0] == -REFUSED ? REFUSED : 1);
	(void)setsockopt(ends[1], SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
	if (fd_send(ends[0], lingering, "", 1) != 1)
		_exit(1);
	close(lingering);
	close(ends[1]);
	close(ends[0]);
	failed.qpn = partner;
	if (how == LEAVE_FAILED &&
		session_call(&me[0].session, &failed, &reply, none, 2) != 0)
		_exit(1);
	if (how == LEAVE_SESSION)
		detach(&me[0]);
	if (how != LEAVE_PROCESS &&
		(write(tell, "", 1) != 1 || read(stay, &(char){0}, 1) != 0))
		_exit(1);
	_exit(0);
}

/* Returns the time of an answer to another client meanwhile, -1, or -REFUSED. */
static int
linger_round(enum leaving how)
{
	int end, lingering = lingering_open(&end), tell[2], stay[2], status, ms;
	pid_t child;
	char byte;

	if (pipe2(tell, O_CLOEXEC) != 0 || pipe2(stay, O_CLOEXEC) != 0 ||
		(child = fork()) < 0)
		abort();
	if (child == 0) {
		close(end);
		close(stay[1]);
		close(tell[0]);
		linger_child(lingering, how, tell[1], stay[0]);
	}
	close(lingering);
	close(tell[1]);
	close(stay[0]);
	/* Its byte, or its end. */
	(void)!read(tell[0], &byte, 1);
	ms = answer_ms();
	close(end);
	close(stay[1]);
	close(tell[0]);
	if (waitpid(child, &status, 0) != child || ms < 0)
		return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
		return -REFUSED;
	return status == 0 ? ms : -1;
}

int
mode_linger_pair(void)
{
	unsigned rounds = 0, refused = 0, in_a_row = 0;
	int slowest = 0;

	do {
		int ms = linger_round((enum leaving)(rounds % LEAVINGS));

		if (ms == -REFUSED) {
			refused++;
			/* The daemon does not free what this user holds: the attack would not end. */
			if (++in_a_row == REFUSED_MOST) {
				printf("rounds %u, then refused %u times in a row\n",
					rounds, in_a_row);
				return 1;
			}
			/* The daemon unmaps the memory of an ended client in 4 ms, of which a round has
			 * two: a loop of refused rounds must not be faster. */
			others_run_us(50000);
			continue;
		}
		if (ms < 0)
			return 1;
		in_a_row = 0;
		rounds++;
		slowest = RTE_MAX(slowest, ms);
	} while (time_left() || rounds < LEAVINGS);
	printf("rounds %u, refused %u, slowest answer %d ms\n", rounds, refused, slowest);
	return 0;
}

/* ---- Requests ---- */

static int
ask(int fd)
{
	struct sw_request req = info;

	req.type = SW_STATUS;
	req.qpn = SW_STATUS_CLIENT;
	return send(fd, &req, sizeof(req), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(req)
		       ? 0
		       : -1;
}

/* Has ASKS requests wait in each connection all the time. Closes ready once it is connected. Returns the
 * exit status. */
static int
asker_run(int ready)
{
	static struct sw_data_reply reply;
	struct pollfd fds[ASKER_CONNS];
	struct session s[ASKER_CONNS];
	unsigned n = 0;
	struct me me;

	if (attach(&me) != 0)
		return 1;
	for (; n < ASKER_CONNS && session_open(&s[n], NULL) == 0; n++) {
		fds[n] = (struct pollfd){.fd = s[n].fd, .events = POLLIN};
		for (unsigned i = 0; i < ASKS; i++)
			if (ask(s[n].fd) != 0)
				return 1;
	}
	close(ready);
	while (time_left()) {
		(void)others_run_until(fds, n, 100);
		for (unsigned i = 0; i < n; i++)
			if (fds[i].revents != 0 && (recv(fds[i].fd, &reply, sizeof(reply),
							    MSG_DONTWAIT) <= 0 ||
							   ask(fds[i].fd) != 0))
				return 1;
	}
	return n == 0;
}

int
mode_asks(void)
{
	int status, failed = 0;

	/* One process connects after the other: the attack is that of the requests. */
	for (unsigned i = 0; i < ASKERS; i++) {
		int ends[2];
		pid_t child;
		char c;

		if (pipe(ends) != 0)
			return 1;
		child = fork();
		if (child < 0)
			return 1;
		if (child == 0)
			_exit(asker_run(ends[1]));
		close(ends[1]);
		(void)!read(ends[0], &c, 1); /* until it is connected, or has ended */
		close(ends[0]);
	}
	while (wait(&status) > 0)
		failed += status != 0;
	printf("askers %d, failed %d\n", ASKERS, failed);
	return failed != 0;
}

/* Asks for the descriptors of its pair, and reads nothing. */
int
mode_again(void)
{
	struct sw_request req = info;
	uint64_t asked = 0;

	req.type = SW_PAIR;
	while (time_left()) {
		struct me me[2];

		if (two_connect(me) != 0)
			return 1;
		for (unsigned i = 0; i < AGAIN; i++) {
			/* The daemon disconnects a client that does not read. */
			if (send(me[i % 2].session.fd, &req, sizeof(req), MSG_NOSIGNAL) !=
				sizeof(req))
				break;
			asked++;
		}
		for (unsigned i = 0; i < 2; i++)
			detach(&me[i]);
	}
	printf("asked %llu\n", (unsigned long long)asked);
	return asked == 0;
}

/* ---- Sockets with descriptors ---- */

/* The kernel limits a user's descriptors in queues by the limit of the process that sends them. */
static void
descriptors_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		abort();
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Connects, sends a lingering socket and more descriptors, and leaves. Returns the other end of the
 * lingering one, or -1. */
static int
laden_connect(const int *nulls)
{
	const struct linger off = {.l_onoff = 0};
	struct session s;
	int end, fd;

	if (session_open(&s, NULL) != 0)
		return -1;
	fd = lingering_open(&end);
	if (fd_send(s.fd, fd, &info, sizeof(info)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	close(fd);
	for (unsigned i = 0; i < 3; i++)
		(void)fds_send(s.fd, nulls, NULLS, &info, sizeof(info));
	session_close(&s);
	return end;
}

/* Makes such connections until the time is over. Returns the exit status. */
static int
laden_run(void)
{
	int nulls[NULLS], ends[HELD], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned made = 0;

	descriptors_raise();
	for (unsigned i = 0; i < NULLS; i++)
		nulls[i] = null;
	memset(ends, -1, sizeof(ends));
	while (time_left()) {
		int *end = &ends[made % HELD];

		if (*end >= 0)
			close(*end);
		*end = laden_connect(nulls);
		if (*end < 0)
			return 1;
		made++;
	}
	printf("connections %u\n", made);
	return made == 0;
}

int
mode_sockets(void)
{
	return laden_run();
}

/* The same, but the daemon accepts none of them: the process has as many as it may. */
int
mode_refused(void)
{
	struct session s[CONNS];
	unsigned n = 0;
	struct sw_reply reply;

	while (n < CONNS && session_open(&s[n], NULL) == 0 &&
		session_call(&s[n], &info, &reply, NULL, 0) == 0)
		n++;
	return n == CONNS ? laden_run() : 1;
}

/* ---- Memory ---- */

struct writer {
	struct held_page page;
	int fd;
};

/* It has the file locked until the page is there. */
static void *
writer_main(void *arg)
{
	const struct writer *w = arg;

	(void)!pwrite(w->fd, w->page.at, HELD_PAGE, 0);
	return NULL;
}

/* Starts as a client while a thread has its memory locked. Returns 0 if the daemon answers meanwhile. */
static int
locked_round(void)
{
	struct sw_request attach = {.type = SW_ATTACH}, start = {.type = SW_START};
	int fds[SW_ATTACH_FDS], rc, ms;
	struct sw_reply reply;
	struct session s;
	struct writer w;
	pthread_t thread;

	if (!held_page_open(&w.page) || session_open(&s, NULL) != 0 ||
		session_call(&s, &attach, &reply, fds, SW_ATTACH_FDS) != 0)
		return -1;
	w.fd = fds[SW_FD_CLIENT_MEM];
	if (pthread_create(&thread, NULL, writer_main, &w) != 0 ||
		!await_readable(w.page.fd))
		abort();
	rc = session_call(&s, &start, &reply, NULL, 0);
	ms = answer_ms();
	held_page_close(&w.page);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < SW_ATTACH_FDS; i++)
		close(fds[i]);
	session_close(&s);
	return rc == -EPERM && ms >= 0 ? 0 : -1;
}

int
mode_locked(void)
{
	unsigned rounds = 0;

	for (; time_left(); rounds++)
		if (locked_round() != 0)
			return 1;
	printf("rounds %u\n", rounds);
	return rounds == 0;
}
