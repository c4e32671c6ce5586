/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of client processes: accept, requests, end. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "base/base_log.h"
#include "engine/clock.h"
#include "server/conn_process.h"
#include "server/peer_process.h"
#include "server/server_control.h"
#include "server/server_conn.h"
#include "server/server_pair.h"
#include "server/server_query.h"
#include "server/server_queue.h"
#include "server/server_reject.h"
#include "server/server_rdmacm.h"
#include "server/server_reply.h"
#include "server/server_share.h"
#include "switch/sw_client.h"

#define UNREAD_BYTES (2 * (int)sizeof(struct sw_data_reply)) /* of replies */

static int
client_charge(struct conn *conn)
{
	if (!account_take(conn->account, ACCOUNT_clients, 1))
		return -ENOSPC;
	if (!account_take(conn->account, ACCOUNT_descriptors, SHARE_FDS)) {
		account_give(conn->account, ACCOUNT_clients, 1);
		return -EMFILE;
	}
	if (!ended_memory_take(
		    &conn->daemon->ended_memory, conn->account, share_kib(&conn->geom))) {
		account_give(conn->account, ACCOUNT_descriptors, SHARE_FDS);
		account_give(conn->account, ACCOUNT_clients, 1);
		return -ENOMEM;
	}
	conn->memory_kib = share_kib(&conn->geom);
	return 0;
}

/* No limit of the daemon's, but one of its process or of the machine. */
static void
attach_reject_log(const struct conn *conn, int rc)
{
	const struct ucred who = {.pid = conn->pid, .uid = conn->uid};
	char why[96];

	snprintf(why, sizeof(why), "cannot make the memory to share with it: %s%s",
		strerror(-rc),
		rc == -EFBIG ? " (the daemon's limit RLIMIT_FSIZE, ulimit -f)" : "");
	reject_log(conn->daemon, &who, why);
}

/* fds: the client's descriptors. */
static int
client_attach(struct conn *conn, int fds[SW_ATTACH_FDS])
{
	int rc;

	if (conn->daemon_mem != NULL)
		return -EALREADY;
	/* A copy: the limits may change between SW_ATTACH and SW_START. */
	conn->geom = conn->daemon->sw->conf.limits.geom;
	rc = client_charge(conn);
	if (rc != 0)
		return rc;
	rc = share_create(conn, fds);
	if (rc != 0) {
		attach_reject_log(conn, rc);
		account_give(conn->account, ACCOUNT_clients, 1);
	}
	return rc;
}

/* The daemon accesses the client's memory only once it is sealed. no_pairs: the client wants
 * none. */
static int
client_start(struct conn *conn, bool no_pairs)
{
	char text[PEER_PROCESS_TEXT];
	struct region region;
	int rc = conn->daemon_mem == NULL ? -ENOTCONN : share_start(conn, &region);

	if (rc == 0)
		rc = sw_client_add(conn->daemon->sw, &region, conn->uid,
			conn->account->uid, conn, &conn->client);
	if (rc != 0)
		return rc;
	conn->client->account = conn->account;
	conn->client->no_pairs = no_pairs;
	conn->client->privileged = conn_is_privileged(conn);
	conn->client->shares_uid = conn->shares_uid;
	rc = queue_wakes_move(conn);
	if (rc != 0) {
		sw_client_remove(conn->client);
		conn->client = NULL;
		return rc;
	}
	log_info("client %u: %s of user %u", conn->client->id,
		peer_process_text(conn->pid, text, sizeof(text)), (unsigned)conn->uid);
	return 0;
}

/* Carries out the requests that sw_serve() leaves to its caller. */
static bool
request_complete(struct conn *conn, const struct sw_request *req, struct sw_reply *reply)
{
	int fds[SW_ATTACH_FDS] = {-1, -1, -1, -1};
	unsigned n = 0;
	int passed = -1; /* a descriptor that is the client's only */
	bool sent;

	if (reply->error == 0 && reply->type == SW_ATTACH) {
		reply->error = -client_attach(conn, fds);
		passed = fds[SW_FD_CLIENT_WAKE];
		n = SW_ATTACH_FDS;
	} else if (reply->error == 0 && reply->type == SW_START) {
		reply->error = -client_start(conn, reply->qpn != 0);
	} else if (reply->error == 0 && reply->type == SW_CM_OPEN) {
		reply->error = -rdmacm_open(conn, req->dest_qpn, &fds[0], &reply->qpn);
		passed = fds[0];
		n = 1;
	} else if (reply->error == 0 && reply->type == SW_PAIR) {
		n = server_pair_fds(conn->client, reply, fds);
	} else if (reply->error == 0 && reply->type == SW_REPORT_REQUEST) {
		if (reply->qpn == 0)
			report_request(conn);
		reply->qpn = report_missing(conn);
	} else if (reply->error == 0 && reply->type == SW_TAKEN) {
		rdmacm_taken(conn, reply->qpn);
	}
	if (reply->error != 0) {
		reply->refusal = reject_limit(conn->account);
		return reply_send(conn->socket.fd, reply, NULL, 0);
	}
	if (reply->type == SW_ATTACH || reply->type == SW_START)
		reply->geom = conn->geom;
	if (reply->type == SW_START)
		reply->client_id = conn->client->id;
	sent = reply_send(conn->socket.fd, reply, fds, n);
	passed_fds_close_given(&conn->daemon->passed, conn->account, passed);
	return sent;
}

/* Serves a request whose reply is data. */
static bool
data_serve(struct conn *conn, const struct sw_request *req)
{
	struct sw_data_reply reply;
	size_t len;
	int rc;

	memset(&reply, 0, offsetof(struct sw_data_reply, bytes));
	reply.magic = SW_PROTO_MAGIC;
	reply.version = SW_PROTO_VERSION;
	reply.type = req->type;
	if (req->type == SW_STATUS)
		rc = status_part(conn, req->qpn, req->dest_qpn, &reply);
	else if (req->type == SW_FLIGHT)
		rc = flight_part(conn, req, &reply);
	else
		rc = report_part(conn, req->qpn, req->dest_qpn, &reply);
	reply.error = -rc;
	len = offsetof(struct sw_data_reply, bytes) + reply.len;
	return send(conn->socket.fd, &reply, len, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)len;
}

/* Serves a request of len bytes. Returns false if the connection must be closed. */
static bool
request_serve(struct conn *conn, const void *request, size_t len)
{
	struct rocade_daemon *d = conn->daemon;
	struct sw_device device = d->device;
	struct sw_reply reply;

	if (len == sizeof(struct sw_cm_request))
		return rdmacm_serve(conn, request);
	device.privileged = conn_is_privileged(conn);
	conn->account->full = 0;
	if (!sw_serve(d->sw, &device, conn->client, request, len, &reply))
		return false;
	if (reply.error == EPROTONOSUPPORT)
		reject_version_log(conn, ((const struct sw_request *)request)->version);
	if (reply.error == 0)
		conn_process_take(conn, request);
	if (reply.error == 0 && query_is_data(reply.type))
		return data_serve(conn, request);
	if (reply.error == 0)
		reply.error = -query_request(conn, request, &reply.qpn);
	return request_complete(conn, request, &reply);
}

void
conn_ready(struct conn *conn)
{
	struct rocade_daemon *d = conn->daemon;
	uint8_t request[sizeof(struct sw_cm_request) + 1] __attribute__((aligned(8)));
	char text[PEER_PROCESS_TEXT];
	ssize_t len;
	bool came;

	if (conn->closing)
		return;
	len = passed_fds_recv(
		&d->passed, conn->socket.fd, request, sizeof(request), &came);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (came) {
		log_info("%s of user %u: disconnected: it sent descriptors",
			peer_process_text(conn->pid, text, sizeof(text)),
			(unsigned)conn->uid);
		conn_close(conn);
		return;
	}
	if (len <= 0 || (size_t)len > sizeof(request) ||
		!request_serve(conn, request, (size_t)len))
		conn_close(conn);
}

static void
process_fd_add(struct conn *conn)
{
	int fd = peer_process_open(conn->socket.fd, conn->pid);

	/* Only the end of its socket will show that the process has ended. Another process
	 * may have its number by now. */
	if (fd < 0)
		conn->pid = 0;
	else if (fd_source_add(&conn->daemon->sets[0], &conn->process, fd,
			 FD_SOURCE_PROCESS, conn) != 0)
		close(fd);
}

static struct conn *
conn_make(
	struct rocade_daemon *d, int fd, const struct ucred *who, struct account *account)
{
	struct conn *conn = alloc_get(&alloc_plain, "connection", sizeof(*conn));
	const int unread = UNREAD_BYTES;

	if (conn == NULL)
		return NULL;
	conn->daemon = d;
	conn->socket.fd = conn->process.fd = conn->daemon_wake.fd = conn->wake_fd = -1;
	conn->client_mem_fd = conn->daemon_mem_fd = -1;
	conn->pid = who->pid;
	conn->uid = who->uid;
	conn->shares_uid = d->others && who->uid == d->shared_uid;
	conn->account = account;
	ucm_taker_init(&conn->taker);
	/* Bounds the replies that a client leaves unread. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &unread, sizeof(unread));
	if (fd_source_add(&d->sets[0], &conn->socket, fd, FD_SOURCE_CLIENT, conn) != 0) {
		alloc_put(&alloc_plain, conn, sizeof(*conn));
		return NULL;
	}
	process_fd_add(conn);
	peer_process_name(conn->pid, conn->name, sizeof(conn->name));
	return conn;
}

/* The socket of a rejected connection may have kept the last descriptor for some time. */
static void
spare_fd_open(struct rocade_daemon *d)
{
	if (d->spare_fd < 0)
		d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Returns the account that pays for processes of the uid, or NULL. */
static struct account *
user_account(struct rocade_daemon *d, uint32_t uid)
{
	return account_open(&d->accounts, subuids_payer(&d->subuids, uid), clock_now());
}

/* Rejects a connection without a free descriptor; a pending one would wake us forever. */
static void
client_reject(struct rocade_daemon *d)
{
	const char *why = "no free file descriptor";
	struct ucred who = {.pid = 0};
	struct account *account;
	int fd;

	close(d->spare_fd); /* -1: fails */
	d->spare_fd = -1;
	fd = accept4(d->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		who = peer_process_read(fd);
		account = user_account(d, who.uid);
		if (account != NULL)
			account->full = 0;
		reject_conn(d, fd, &who, account, EMFILE, why);
	} else {
		reject_log(d, &who, why);
	}
	spare_fd_open(d);
}

/* Returns whether the user may have more of this kind while others hold less. */
static bool
others_hold(const struct account *account, enum account_kind kind)
{
	return account->held[kind] < accounts_most(account->all, kind);
}

/* Returns 0, or the errno value and why the user gets no further connection. */
static int
conn_charge(struct passed_fds *passed, struct account *account, const char **why)
{
	if (!account_has_room(account, ACCOUNT_connections, 1) ||
		!account_has_room(account, ACCOUNT_descriptors, FDS_PER_CONN))
		passed_fds_collect_of(passed, account);
	if (!account_take(account, ACCOUNT_connections, 1)) {
		*why = others_hold(account, ACCOUNT_connections)
			       ? "other users hold the other connections (see max-clients)"
			       : "too many connections of this user (see max-clients)";
		return ENOSPC;
	}
	if (account_take(account, ACCOUNT_descriptors, FDS_PER_CONN))
		return 0;
	account_give(account, ACCOUNT_connections, 1);
	*why = others_hold(account, ACCOUNT_descriptors)
		       ? "other users hold the other file descriptors"
		       : "too many file descriptors for this user";
	return EMFILE;
}

static void
conn_discharge(struct account *account)
{
	account_give(account, ACCOUNT_connections, 1);
	account_give(account, ACCOUNT_descriptors, FDS_PER_CONN);
}

/* Creates the connection. Returns 0, or the errno value and why there is none. */
static int
conn_admit(struct rocade_daemon *d, int fd, const struct ucred *who,
	struct account *account, const char **why)
{
	struct conn *conn;
	int err = conn_charge(&d->passed, account, why);

	if (err != 0)
		return err;
	conn = conn_make(d, fd, who, account);
	if (conn == NULL) {
		conn_discharge(account);
		*why = "no memory";
		return ENOMEM;
	}
	TAILQ_INSERT_TAIL(&d->conns, conn, link);
	return 0;
}

struct account *
conn_take(struct rocade_daemon *d, int fd)
{
	struct ucred who = peer_process_read(fd);
	struct account *account = user_account(d, who.uid);
	const char *why = "no memory";
	int err = ENOMEM;

	if (account != NULL) {
		account->full = 0;
		err = conn_admit(d, fd, &who, account, &why);
	}
	if (err != 0)
		reject_conn(d, fd, &who, account, err, why);
	return account;
}

struct account *
conn_accept(struct rocade_daemon *d)
{
	int fd;

	passed_fds_collect(&d->passed);
	spare_fd_open(d);
	fd = accept4(d->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			client_reject(d);
		return NULL;
	}
	return conn_take(d, fd);
}

void
conn_listen_end(struct rocade_daemon *d)
{
	int listener = fd_source_remove(&d->listen), fd;

	if (listener < 0)
		return;
	/* Closing the listener would close the descriptors in its backlog, and wait.
	 * So the backlog is emptied first; after the shutdown no client adds to it. The
	 * socket of a service manager stays open there, with its backlog. */
	if (d->bound && !d->passed.refused) {
		(void)shutdown(listener, SHUT_RDWR);
		while ((fd = accept4(
				listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
			passed_fds_close(&d->passed, NULL, fd);
	}
	close(listener);
}

/* The client may keep its end open, and with it the replies that it has not read. */
static void
socket_close(struct conn *conn)
{
	struct passed_fds *passed = &conn->daemon->passed;
	int fd = fd_source_remove(&conn->socket);

	account_give(conn->account, ACCOUNT_descriptors, FDS_PER_CONN);
	if (!replies_are_read(fd)) {
		passed_fds_close_unread(passed, conn->account, fd);
		return;
	}
	account_give(conn->account, ACCOUNT_connections, 1);
	passed_fds_close(passed, conn->account, fd);
}

void
conn_close(struct conn *conn)
{
	struct rocade_daemon *d = conn->daemon;

	if (conn->closing)
		return;
	conn->closing = true;
	control_forget(d, &conn->socket);
	control_forget(d, &conn->process);
	if (conn->client != NULL) {
		log_info("client %u: disconnected", conn->client->id);
		sw_client_remove(conn->client);
		rdmacm_taken(conn, conn->taker.asked); /* it takes no more */
	}
	if (conn->daemon_mem != NULL)
		account_give(conn->account, ACCOUNT_clients, 1);
	conn->client = NULL;
	rdmacm_forget(conn);
	fd_source_close(&conn->process);
	share_destroy(conn);
	socket_close(conn);
	account_close(conn->account);
	conn->account = NULL;
	conn_process_forget(conn);
	TAILQ_REMOVE(&d->conns, conn, link);
	TAILQ_INSERT_TAIL(&d->closing, conn, link);
}

void
conn_close_corrupt(struct rocade_daemon *d)
{
	struct conn *conn, *next;

	d->corrupt_seen = sw_corrupt_count(d->sw);
	for (conn = TAILQ_FIRST(&d->conns); conn != NULL; conn = next) {
		next = TAILQ_NEXT(conn, link);
		if (conn->client == NULL || !sw_client_is_corrupt(conn->client))
			continue;
		log_info("client %u: invalid index in a ring", conn->client->id);
		conn_close(conn);
	}
	conn_reap(d);
}

void
conn_reap(struct rocade_daemon *d)
{
	struct conn *conn;

	rdmacm_reap(d);
	passed_fds_collect(&d->passed);
	while ((conn = TAILQ_FIRST(&d->closing)) != NULL) {
		TAILQ_REMOVE(&d->closing, conn, link);
		alloc_put(&alloc_plain, conn, sizeof(*conn));
	}
}
