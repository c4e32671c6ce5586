/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA-CM for the daemon's clients: their commands (lib/ucm), and channels that wake
 * them. A channel is a pair of sockets. The client's end becomes readable when there are
 * events. The daemon's end receives nothing and reports when the client's last descriptor
 * is closed.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "engine/clock.h"
#include "server/conn_process.h"
#include "server/server_control.h"
#include "server/server_query.h"
#include "server/server_rdmacm.h"
#include "server/server_share.h"
#include "switch/sw_client.h"
#include "ucm/abi.h"
#include "ucm/backend.h"
#include "ucm/ucm.h"
#include "wire/hdr.h"
#include "wire/wire_gsi.h"

#define CHANNELS_PER_CLIENT 1024

struct channel {
	TAILQ_ENTRY(channel) link; /* of its client, or of the channels to be freed */
	struct fd_source source;
	struct ucm_channel *ucm;
};

TAILQ_HEAD(channels, channel);

struct rdmacm_client {
	struct ucm_session *session;
	struct channels channels;
};

struct rdmacm {
	struct ucm *ucm;
	struct ucm_device *device;
	struct fd_source timer;
	uint64_t armed_ns; /* TIME_NEVER: not armed */
	struct channels closed;
};

static void
conn_show_sent(const struct conn *conn)
{
	if (conn->client != NULL)
		sw_client_show_sent(conn->client);
}

/* The process ends connections. Their peers get what it has sent before they learn that, because
 * they destroy their QPs then. Called outside of ucm: it may receive messages. */
static void
process_show_sent(const struct conn *conn)
{
	conn_process_each(conn, conn_show_sent);
}

/* The QP may belong to another connection of the same process. */
static bool
owns_qpn(void *owner, uint32_t qpn)
{
	const struct conn *conn = owner, *other;
	const struct sw_qp *qp = qpns_find(&conn->daemon->sw->qpns, qpn);

	if (qp == NULL)
		return false;
	other = qp->owner->owner;
	/* NULL: the client has ended. */
	return other != NULL && conn_process_is_same(other, conn);
}

static void
rdmacm_channel_wake(void *channel_owner, uint32_t number)
{
	const struct channel *channel = channel_owner;

	ucm_wake_send(channel->source.fd, number);
}

/* Arms the timer for the next deadline. */
static void
rdmacm_timer_arm(struct rocade_daemon *d)
{
	struct rdmacm *cm = d->cm;
	uint64_t due = ucm_deadline(cm->ucm), now, ns;
	struct itimerspec when = {.it_value = {0, 0}};

	if (due == cm->armed_ns)
		return;
	cm->armed_ns = due;
	if (due != TIME_NEVER) {
		now = clock_now();
		/* 0 would disarm it. */
		ns = due > now ? due - now : 1;
		when.it_value.tv_sec = (time_t)(ns / NS_PER_SEC);
		when.it_value.tv_nsec = (long)(ns % NS_PER_SEC);
	}
	(void)timerfd_settime(cm->timer.fd, 0, &when, NULL);
}

void
rdmacm_timer(struct rocade_daemon *d)
{
	uint64_t expired;
	ssize_t got = read(d->cm->timer.fd, &expired, sizeof(expired));

	(void)got;
	d->cm->armed_ns = TIME_NEVER;
	ucm_run(d->cm->ucm, clock_now());
	rdmacm_timer_arm(d);
}

static uint64_t
ca_guid_from_mac(const uint8_t mac[6])
{
	uint8_t gid[16];
	uint64_t guid = 0;

	gid_link_local(mac, gid);
	for (unsigned i = 8; i < 16; i++)
		guid = guid << 8 | gid[i];
	return guid;
}

/* Sends to another host. */
static bool
wire_send(void *arg, const struct mad *mad, const struct cm_path *path)
{
	const struct rocade_daemon *d = arg;

	static_assert(sizeof(*mad) == GSI_LEN, "a MAD fills one datagram");
	return d->up != NULL && uplink_gsi_send(d->up, (const uint8_t *)mad, path->sgid,
					path->dgid, !mad_opens(mad));
}

/* Its client is shown what has come, and asked to take it. The QP may be gone, and its QPN another
 * process's, which this one must not wait for. */
static struct ucm_taker *
rdmacm_qp_ended(void *owner, uint32_t qpn, bool asks)
{
	const struct conn *conn = owner;
	const struct sw_qp *qp = qpns_find(&conn->daemon->sw->qpns, qpn);
	struct conn *client;

	if (qp == NULL || !owns_qpn(owner, qpn))
		return NULL;
	sw_client_show_received(qp->owner);
	if (!asks)
		return NULL;
	client = qp->owner->owner;
	/* Pairs with the acquire in packets_answer() of the client's progress thread. */
	__atomic_store_n(&qp->owner->region.daemon->take_requested, ++client->taker.asked,
		__ATOMIC_RELEASE);
	share_wake(client, NULL);
	return &client->taker;
}

void
rdmacm_taken(struct conn *conn, uint32_t upto)
{
	ucm_taken(conn->daemon->cm->ucm, &conn->taker, upto, clock_now());
	rdmacm_timer_arm(conn->daemon);
}

static void
wire_rx(void *arg, const uint8_t *bytes, const uint8_t ours[16], const uint8_t theirs[16],
	uint64_t now)
{
	struct rocade_daemon *d = arg;
	struct cm_path path = {.local = false};

	memcpy(path.sgid, ours, 16);
	memcpy(path.dgid, theirs, 16);
	ucm_rx(d->cm->ucm, bytes, GSI_LEN, &path, now);
	rdmacm_timer_arm(d);
}

void
rdmacm_set_port(struct rocade_daemon *d)
{
	d->up->gsi_rx = wire_rx;
	d->up->gsi_arg = d;
}

int
rdmacm_create(struct rocade_daemon *d)
{
	struct ucm_device_conf device = {
		.net = d->sw->conf.net,
		.guid = ca_guid_from_mac(d->device.net.mac),
		.index = d->device.index,
		.path_mtu = (uint8_t)mtu_code_fitting(d->device.mtu),
	};
	struct ucm_conf conf = {
		.limits = {.ids = d->rdmacm_connections / 2,
			.channels = CHANNELS_PER_CLIENT},
		.ops = {.owns_qpn = owns_qpn,
			.wake = rdmacm_channel_wake,
			.send = d->device.local ? NULL : wire_send,
			.qp_ended = rdmacm_qp_ended,
			.arg = d},
	};
	struct rdmacm *cm = alloc_get(&alloc_plain, "rdma_cm", sizeof(*cm));
	int rc;

	if (cm == NULL)
		return -ENOMEM;
	cm_conf_default(&conf.cm);
	conf.cm.ca_guid = device.guid;
	conf.cm.max_conns = d->rdmacm_connections;
	TAILQ_INIT(&cm->closed);
	cm->timer.fd = -1;
	cm->armed_ns = TIME_NEVER;
	rc = random_key_draw(&conf.cm.random);
	if (rc == 0)
		rc = ucm_create(&conf, clock_now(), &cm->ucm);
	if (rc == 0) {
		rc = ucm_device_add(cm->ucm, &device, &cm->device);
		if (rc != 0)
			ucm_destroy(cm->ucm);
	}
	if (rc == 0) {
		int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

		rc = fd < 0 ? -errno
			    : fd_source_add(&d->sets[0], &cm->timer, fd,
				      FD_SOURCE_CM_TIMER, NULL);
		if (rc != 0) {
			if (fd >= 0)
				close(fd);
			ucm_destroy(cm->ucm);
		}
	}
	if (rc != 0) {
		alloc_put(&alloc_plain, cm, sizeof(*cm));
		return rc;
	}
	d->cm = cm;
	return 0;
}

void
rdmacm_destroy(struct rocade_daemon *d)
{
	struct rdmacm *cm = d->cm;

	if (cm == NULL)
		return;
	fd_source_close(&cm->timer);
	/* The last messages of connections. */
	while (ucm_deadline(cm->ucm) == 0)
		ucm_run(cm->ucm, clock_now());
	ucm_destroy(cm->ucm);
	alloc_put(&alloc_plain, cm, sizeof(*cm));
	d->cm = NULL;
}

void
rdmacm_set_net(struct rocade_daemon *d)
{
	ucm_device_set_net(d->cm->device, &d->sw->conf.net);
}

static uint32_t
groups_count(const struct sw *sw)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < SW_GROUPS; i++)
		count += sw->groups[i].count != 0;
	return count;
}

void
rdmacm_print(struct json_out *j, const struct rocade_daemon *d)
{
	const uint64_t *values = (const uint64_t *)ucm_stats(d->cm->ucm);

	json_out_object(j, "rdma_cm");
	json_out_uint(j, "ids", ucm_ids(d->cm->ucm));
	json_out_uint(j, "listeners", ucm_listeners(d->cm->ucm));
	json_out_uint(j, "groups", groups_count(d->sw));
	for (size_t i = 0; i < CM_STAT_COUNT; i++)
		json_out_uint(j, cm_stat_rows[i].name, values[i]);
	json_out_end(j);
}

static int
rdmacm_client_create(struct conn *conn, uint32_t forks)
{
	struct rdmacm_client *client;
	int rc;

	if (conn->cm != NULL)
		return 0;
	client = alloc_get(&alloc_plain, "rdma_cm client", sizeof(*client));
	if (client == NULL)
		return -ENOMEM;
	TAILQ_INIT(&client->channels);
	rc = ucm_session_create(conn->daemon->cm->ucm, conn, &client->session);
	if (rc != 0) {
		alloc_put(&alloc_plain, client, sizeof(*client));
		return rc;
	}
	ucm_session_set_user(client->session, conn->uid, conn_is_privileged(conn));
	if (conn->shares_uid)
		ucm_session_set_shared_uid(client->session);
	ucm_session_charge(client->session, conn->account);
	ucm_session_set_device_index(
		client->session, sw_device_index(conn->daemon->device.index, forks));
	conn->cm = client;
	return 0;
}

static int
channel_sockets_create(struct conn *conn, struct channel *channel, int *fd)
{
	int ends[2], rc;

	if (!account_take(conn->account, ACCOUNT_descriptors, 1))
		return -EMFILE;
	rc = ucm_sockets_create(ends);
	if (rc != 0) {
		account_give(conn->account, ACCOUNT_descriptors, 1);
		return rc;
	}
	/* The client cannot send to this end: a descriptor in its queue could make the
	 * daemon wait in close(). */
	(void)shutdown(ends[0], SHUT_RD);
	rc = fd_source_add(&conn->daemon->sets[0], &channel->source, ends[0],
		FD_SOURCE_CM_CHANNEL, conn);
	if (rc != 0) {
		account_give(conn->account, ACCOUNT_descriptors, 1);
		close(ends[0]);
		close(ends[1]);
		return rc;
	}
	*fd = ends[1];
	return 0;
}

int
rdmacm_open(struct conn *conn, uint32_t forks, int *fd, uint32_t *number)
{
	struct channel *channel;
	int rc = rdmacm_client_create(conn, forks);

	if (rc != 0)
		return rc;
	channel = alloc_get(&alloc_plain, "rdma_cm channel", sizeof(*channel));
	if (channel == NULL)
		return -ENOMEM;
	rc = channel_sockets_create(conn, channel, fd);
	if (rc == 0) {
		rc = ucm_channel_open(conn->cm->session, channel, &channel->ucm, number);
		if (rc != 0) {
			fd_source_close(&channel->source);
			account_give(conn->account, ACCOUNT_descriptors, 1);
			close(*fd);
			*fd = -1;
		}
	}
	if (rc != 0) {
		alloc_put(&alloc_plain, channel, sizeof(*channel));
		return rc;
	}
	TAILQ_INSERT_TAIL(&conn->cm->channels, channel, link);
	return 0;
}

/* Commands before which what the process has sent is forwarded. */
static bool
ends_a_connection(uint32_t cmd)
{
	return cmd == RDMA_USER_CM_CMD_DISCONNECT || cmd == RDMA_USER_CM_CMD_DESTROY_ID;
}

/* Returns 0 or -errno. */
static int
request_run(const struct conn *conn, const struct sw_cm_request *req, void *reply,
	struct ucm_result *result)
{
	if (req->version != SW_PROTO_VERSION)
		return -EPROTONOSUPPORT;
	if (conn->cm == NULL)
		return -EBADF;
	if (ends_a_connection(req->cmd))
		process_show_sent(conn);
	return ucm_command(conn->cm->session, req->channel, req->cmd, req->bytes,
		req->len, reply, result, clock_now());
}

bool
rdmacm_serve(struct conn *conn, const void *request)
{
	const struct sw_cm_request *req = request;
	struct sw_cm_reply reply = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_CM_COMMAND};
	struct ucm_result result = {.out_len = 0};

	if (req->magic != SW_PROTO_MAGIC || req->type != SW_CM_COMMAND ||
		req->len > UCM_MAX)
		return false;
	reply.error = -request_run(conn, req, reply.bytes, &result);
	reply.len = (uint32_t)result.out_len;
	reply.wakes = result.wakes;
	reply.pending = result.pending;
	rdmacm_timer_arm(conn->daemon);
	return send(conn->socket.fd, &reply, sizeof(reply),
		       MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(reply);
}

static void
channel_close(struct conn *conn, struct channel *channel)
{
	control_forget(conn->daemon, &channel->source);
	fd_source_close(&channel->source);
	account_give(conn->account, ACCOUNT_descriptors, 1);
	TAILQ_REMOVE(&conn->cm->channels, channel, link);
	TAILQ_INSERT_TAIL(&conn->daemon->cm->closed, channel, link);
}

void
rdmacm_channel(const struct fd_source *source)
{
	struct channel *channel = (struct channel *)((char *)(uintptr_t)source -
						     offsetof(struct channel, source));
	struct conn *conn = source->conn;

	if (source->fd < 0)
		return;
	process_show_sent(conn);
	ucm_channel_close(channel->ucm, clock_now());
	channel_close(conn, channel);
	rdmacm_timer_arm(conn->daemon);
}

void
rdmacm_forget(struct conn *conn)
{
	struct rdmacm_client *client = conn->cm;
	struct channel *channel;

	if (client == NULL)
		return;
	process_show_sent(conn);
	ucm_session_destroy(client->session, clock_now());
	while ((channel = TAILQ_FIRST(&client->channels)) != NULL)
		channel_close(conn, channel);
	conn->cm = NULL;
	alloc_put(&alloc_plain, client, sizeof(*client));
	rdmacm_timer_arm(conn->daemon);
}

void
rdmacm_reap(struct rocade_daemon *d)
{
	struct channel *channel;

	while (d->cm != NULL && (channel = TAILQ_FIRST(&d->cm->closed)) != NULL) {
		TAILQ_REMOVE(&d->cm->closed, channel, link);
		alloc_put(&alloc_plain, channel, sizeof(*channel));
	}
}

uint32_t
rdmacm_listeners(const struct rocade_daemon *d)
{
	return d->cm != NULL ? ucm_listeners(d->cm->ucm) : 0;
}
