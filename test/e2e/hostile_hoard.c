/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile clients: they take what is limited. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

#define CM_IDS 4096 /* of a connection at most */

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

/* Tells its parent how many connections with rings it has, and keeps them until the parent
 * ends. */
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

/* Starts a child and returns how many connections with rings it has got, or -1. */
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

int
mode_peers(void)
{
	struct sw_request set = {.type = SW_PEER_SET}, clear = {.type = SW_PEER_CLEAR};
	uint64_t tried = 0, refused = 0;
	const struct net_addr *own = NULL;
	struct sw_reply reply;
	struct me me;

	if (attach_waiting(&me) != 0 ||
		daemon_call(&me, SW_QPN_TAKE, 0, 0, &set.qpn) != 0)
		return 1;
	for (unsigned i = 0; i < me.device.net.addr_count && own == NULL; i++) {
		if (me.device.net.addr[i].gid[0] == 0x20)
			own = &me.device.net.addr[i];
	}
	if (own == NULL)
		return 1;
	clear.qpn = set.qpn;
	memcpy(set.sgid, own->gid, sizeof(set.sgid));
	memcpy(set.dgid, own->gid, sizeof(set.dgid));
	for (; time_left(); tried++) {
		uint64_t host = random_next();
		int rc;

		/* Hosts of our own network that do not exist. */
		memcpy(set.dgid + 8, &host, sizeof(host));
		set.dest_qpn = 2 + (uint32_t)(random_next() % 1000000);
		rc = session_call(&me.session, &set, &reply, NULL, 0);
		if (rc == -ENODEV ||
			session_call(&me.session, &clear, &reply, NULL, 0) == -ENODEV)
			return 1;
		refused += rc != 0;
	}
	printf("peers %llu, refused %llu\n", (unsigned long long)tried,
		(unsigned long long)refused);
	detach(&me);
	return 0;
}

/* Sends an RDMA-CM command. Returns 0, the daemon's error as -errno, or -ENODEV; the reply
 * begins with an ID. */
static int
cm_call(struct session *s, uint32_t channel, uint32_t cmd, const void *in, uint32_t len,
	uint32_t *id)
{
	struct sw_cm_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_CM_COMMAND,
		.channel = channel,
		.cmd = cmd,
		.len = len};
	struct sw_cm_reply reply;

	memcpy(req.bytes, in, len);
	if (send(s->fd, &req, sizeof(req), MSG_NOSIGNAL) < 0 ||
		recv(s->fd, &reply, sizeof(reply), 0) < 16)
		return -ENODEV;
	if (reply.error == 0 && id != NULL)
		memcpy(id, reply.bytes, sizeof(*id));
	return -reply.error;
}

/* Creates an ID and gives it a port, by a connection that it asks for, or by listening.
 * Returns as cm_call(). */
static int
id_take(struct session *s, uint32_t channel, uint32_t *id)
{
	struct rdma_ucm_create_id create = {.ps = RDMA_PS_TCP, .qp_type = 2};
	struct rdma_ucm_bind_ip bind = {.addr.sin6_family = AF_INET6};
	struct rdma_ucm_listen listen = {.backlog = 1024};
	int rc = cm_call(
		s, channel, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), id);

	if (rc != 0)
		return rc;
	bind.id = listen.id = *id;
	rc = cm_call(s, channel, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), NULL);
	if (rc == -ENODEV)
		return rc;
	rc = cm_call(s, channel, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), NULL);
	return rc == -ENODEV ? rc : 0;
}

int
mode_ports(void)
{
	const struct sw_request open = {.type = SW_CM_OPEN};
	uint64_t taken = 0, refused = 0;

	while (time_left()) {
		static uint32_t ids[CM_IDS];
		struct sw_reply reply;
		struct session s;
		int channel, rc = 0;
		unsigned n = 0;

		if (session_open(&s, NULL) != 0 ||
			session_call(&s, &open, &reply, &channel, 1) != 0)
			return 1;
		while (n < CM_IDS && time_left() &&
			(rc = id_take(&s, reply.qpn, &ids[n])) == 0)
			n++;
		if (rc == -ENODEV)
			return 1;
		taken += n;
		refused += rc != 0;
		close(channel);
		session_close(&s); /* destroys them all at once */
	}
	printf("ids %llu, refused %llu\n", (unsigned long long)taken,
		(unsigned long long)refused);
	return 0;
}
