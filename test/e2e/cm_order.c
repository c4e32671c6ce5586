/* SPDX-License-Identifier: BSD-3-Clause */
/*   cm_order ADDRESS CONNECTIONS
 *
 * Connects two processes by RDMA-CM, one connection after the other. One sends up to MOST messages and
 * disconnects at once. When RDMA_CM_EVENT_DISCONNECTED can be read, the other one has received them all:
 * programs look at their CQ for the last time then, and destroy the QP. Both are clients of one
 * daemon, and the sender listens at ADDRESS. Between two hosts a message may be flushed instead, which
 * the congestion window or the pace had not let out yet. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "await.h"
#include "flow_end.h"

#define PORT "7473"
#define MOST 4 /* messages of a connection */
#define INLINE 64

static struct rdma_cm_id *
ep_make(const char *node, bool passive)
{
	struct rdma_addrinfo *info, hints = {.ai_port_space = RDMA_PS_TCP,
					    .ai_flags = passive ? RAI_PASSIVE : 0};
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = MOST,
						.max_recv_wr = MOST,
						.max_send_sge = 1,
						.max_recv_sge = 1,
						.max_inline_data = INLINE},
		.qp_type = IBV_QPT_RC};
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(node, PORT, &hints, &info) != 0)
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, info, NULL, &init) != 0)
		die("rdma_create_ep");
	rdma_freeaddrinfo(info);
	return id;
}

static struct ibv_mr *
registered(struct rdma_cm_id *id, uint8_t *buf)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, buf, (size_t)MOST * SIZE);

	if (mr == NULL)
		die("rdma_reg_msgs");
	return mr;
}

/* How many messages connection n has, and how long they are: one packet, inline, or several. */
static unsigned
count_of(unsigned n)
{
	return n % (MOST + 1);
}

static size_t
size_of(unsigned n)
{
	return n / (MOST + 1) % 2 == 0 ? INLINE : SIZE;
}

static void
disconnected_await(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(id->channel, &event) != 0)
		die("rdma_get_cm_event");
	if (event->event != RDMA_CM_EVENT_DISCONNECTED)
		die(rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

static void
send_all(struct rdma_cm_id *listener, uint8_t *buf, unsigned n)
{
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	bool is_inline = size_of(n) <= INLINE;

	if (rdma_get_request(listener, &id) != 0)
		die("rdma_get_request");
	mr = registered(id, buf);
	if (rdma_accept(id, NULL) != 0 || id->event->event != RDMA_CM_EVENT_ESTABLISHED)
		die("rdma_accept");
	for (unsigned i = 0; i < count_of(n); i++) {
		message_fill(buf + (size_t)i * SIZE, n + i);
		if (rdma_post_send(id, NULL, buf + (size_t)i * SIZE, size_of(n), mr,
			    is_inline ? IBV_SEND_INLINE : 0) != 0)
			die("rdma_post_send");
	}
	if (rdma_disconnect(id) != 0)
		die("rdma_disconnect");
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
}

/* Returns how many messages had not come when the peer's end of the connection was known. */
static unsigned
receive_all(const char *node, uint8_t *buf, unsigned n)
{
	struct rdma_cm_id *id = ep_make(node, false);
	struct ibv_mr *mr = registered(id, buf);
	uint8_t want[SIZE];
	struct ibv_wc wc;
	unsigned got = 0;

	for (unsigned i = 0; i < MOST; i++) {
		if (rdma_post_recv(id, NULL, buf + (size_t)i * SIZE, SIZE, mr) != 0)
			die("rdma_post_recv");
	}
	if (rdma_connect(id, NULL) != 0)
		die("rdma_connect");
	disconnected_await(id);
	while (ibv_poll_cq(id->recv_cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS) {
		message_fill(want, n + got);
		if (wc.byte_len != size_of(n) ||
			memcmp(want, buf + (size_t)got * SIZE, wc.byte_len) != 0)
			die("received data differs from the sent");
		got++;
	}
	/* The DREP goes out when the ID is destroyed. rdma_disconnect() would wait for
	 * RDMA_CM_EVENT_TIMEWAIT_EXIT here. */
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return count_of(n) - got;
}

static void
child_run(const char *node, unsigned count, uint8_t *buf, int ready)
{
	struct rdma_cm_id *listener = ep_make(node, true);

	if (rdma_listen(listener, 1) != 0)
		die("rdma_listen");
	if (write(ready, "", 1) != 1)
		die("write");
	for (unsigned n = 0; n < count; n++)
		send_all(listener, buf, n);
	rdma_destroy_ep(listener);
}

int
main(int argc, char **argv)
{
	unsigned count = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	unsigned missing = 0, connections = 0;
	uint8_t *buf = calloc(MOST, SIZE);
	int ready[2];
	pid_t child;
	char byte;

	if (count == 0 || buf == NULL)
		die("usage: cm_order ADDRESS CONNECTIONS");
	if (pipe(ready) != 0 || (child = fork()) < 0)
		die("pipe or fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_run(argv[1], count, buf, ready[1]);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		die("the sender has ended");
	for (unsigned n = 0; n < count; n++) {
		unsigned late = receive_all(argv[1], buf, n);

		missing += late;
		connections += late != 0;
	}
	free(buf);
	printf("%u messages of %u connections came after DISCONNECTED\n", missing,
		connections);
	return await_child(child) != 0 || missing != 0;
}
