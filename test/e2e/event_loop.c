/* SPDX-License-Identifier: BSD-3-Clause */
/* event_loop MESSAGES: two processes send each other a message in turn. Each arms its CQ, polls it a last time,
 * and sleeps in epoll_wait(2) until the channel's descriptor is readable. Prints "done" when each has received so
 * many, and stays until standard input ends. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

#include "flow_end.h"

/* The address and the QPN of an end, sent to the other one. */
struct name {
	union ibv_gid gid;
	uint32_t qpn;
};

static void
ends_connect(struct end *e, int other)
{
	struct name own = {.qpn = e->qp->qp_num}, peer;

	if (ibv_query_gid(e->ctx, 1, 0, &own.gid) != 0 ||
		send(other, &own, sizeof(own), 0) != sizeof(own) ||
		recv(other, &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer))
		die("names");
	if (qp_init(e->qp) != 0 || qp_connect_to(e->qp, &peer.gid, peer.qpn) != 0)
		die("connecting the QPs");
	if (recv_post(e, 0) != 0 || ibv_req_notify_cq(e->cq, 0) != 0 ||
		fcntl(e->channel->fd, F_SETFL, O_NONBLOCK) != 0)
		die("receive, event or descriptor");
	/* The other end accepts messages, too. */
	if (send(other, "", 1, 0) != 1 || recv(other, &peer, 1, 0) != 1)
		die("other end");
}

/* Sends a message for each that came, but for the last one of the end that began. */
static void
message_answer(struct end *e, bool answers)
{
	if (recv_post(e, 0) != 0 || (answers && send_post(e, DEPTH) != 0))
		die("post");
}

/* Returns the messages that the event tells of. */
static uint32_t
event_take(struct end *e)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	uint32_t received = 0;
	void *context;

	if (ibv_get_cq_event(e->channel, &cq, &context) != 0)
		return 0;
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0) != 0)
		die("ibv_req_notify_cq");
	while (ibv_poll_cq(cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS)
			die(ibv_wc_status_str(wc.status));
		received += wc.opcode == IBV_WC_RECV;
	}
	return received;
}

static void
loop_run(int other, bool begins, uint32_t messages)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(EPOLL_CLOEXEC);
	uint32_t received = 0;
	struct end e;

	end_open(&e);
	ends_connect(&e, other);
	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, e.channel->fd, &event) != 0)
		die("epoll");
	if (begins && send_post(&e, DEPTH) != 0)
		die("post");
	while (received < messages) {
		if (epoll_wait(set, &event, 1, -1) != 1)
			die("epoll_wait");
		for (uint32_t n = event_take(&e); n != 0; n--)
			message_answer(&e, ++received < messages || !begins);
	}
	/* The last message may still be under way, until the other end says that it has come. */
	if (send(other, "", 1, 0) != 1 || recv(other, &event, 1, 0) != 1)
		die("other end");
	if (begins) {
		printf("done\n");
		fflush(stdout);
	}
	(void)input_ended(-1);
}

int
main(int argc, char **argv)
{
	uint32_t messages = argc == 2 ? (uint32_t)atoi(argv[1]) : 0;
	int ends[2];
	pid_t pid;

	if (messages == 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		die("usage: event_loop MESSAGES");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	loop_run(ends[pid == 0], pid != 0, messages);
	return 0;
}
