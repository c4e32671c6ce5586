/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_dump_*(): a client of the daemon without QPs, whose ring gets copies of packets. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rocade/dump.h>

#include "shm/attach.h"
#include "shm/session.h"
#include "switch/sw_dump.h"
#include "verbs/export.h"

struct rocade_dump {
	struct session session;
	struct region region;
	struct ring_cons rx;
	int wake_fd; /* a socket: wake-ups by the daemon */
	struct sw_dump_filter filter;
	bool held;     /* the oldest descriptor is the packet that was returned last */
	uint32_t lost; /* as of that packet */
	uint32_t lost_total; /* as of rocade_dump_stop() */
	uint8_t bytes[REGION_MAX_BUF];
};

/* Starts the copies, or, with directions 0, stops them. */
static int
dump_call(struct rocade_dump *d, const struct sw_dump_filter *filter)
{
	struct sw_request req = {.type = SW_DUMP};
	struct sw_reply reply;
	int rc;

	memcpy(req.sgid, filter, sizeof(*filter));
	rc = session_call(&d->session, &req, &reply, NULL, 0);
	if (rc == 0)
		d->lost_total = reply.qpn;
	return rc;
}

static int
dump_attach(struct rocade_dump *d)
{
	struct sw_request attach = {.type = SW_ATTACH}, start = {.type = SW_START};
	int fds[SW_ATTACH_FDS];
	struct sw_reply reply;
	int rc = session_call(&d->session, &attach, &reply, fds, SW_ATTACH_FDS);

	for (unsigned i = 0; rc == 0 && i < SW_ATTACH_FDS; i++)
		rc = fds[i] >= 0 ? 0 : -EPROTO;
	if (rc == 0)
		rc = region_map(fds, &reply.geom, &d->region);
	d->wake_fd = fds[SW_FD_CLIENT_WAKE];
	fds[SW_FD_CLIENT_WAKE] = -1;
	for (unsigned i = 0; i < SW_ATTACH_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	if (rc == 0) {
		struct ring_prod tx;

		region_client_rings(&d->region, &tx, &d->rx);
		rc = session_call(&d->session, &start, &reply, NULL, 0);
	}
	return rc;
}

static int
dump_fail(const struct rocade_dump *d, const char *socket, int rc)
{
	char text[SESSION_TEXT];

	if (rc == -EBUSY)
		return rocade_fail(EBUSY,
			"another rocade-dump of this user, or too many of all users, get "
			"packets of this daemon");
	if (rc == -EOPNOTSUPP || rc == -EINVAL)
		return rocade_fail(-rc, "the daemon gives no packets: %s", strerror(-rc));
	session_error_text(&d->session, socket, rc, text, sizeof(text));
	return rocade_fail(-rc, "%s", text);
}

int
rocade_dump_open(const char *socket, const struct rocade_dump_conf *conf,
	struct rocade_dump **dump)
{
	struct rocade_dump *d = calloc(1, sizeof(*d));
	int rc;

	if (d == NULL)
		return rocade_fail(ENOMEM, "no memory");
	d->wake_fd = -1;
	d->filter = (struct sw_dump_filter){.client = conf->client,
		.qpn = conf->qpn,
		.snap = conf->snap,
		.directions =
			(conf->in ? SW_DUMP_IN : 0) | (conf->out ? SW_DUMP_OUT : 0)};
	rc = session_open(&d->session, socket);
	if (rc != 0) {
		rc = dump_fail(d, socket, rc);
		free(d);
		return rc;
	}
	rc = dump_attach(d);
	if (rc == 0)
		rc = dump_call(d, &d->filter);
	if (rc != 0) {
		rc = dump_fail(d, socket, rc);
		rocade_dump_close(d);
		return rc;
	}
	*dump = d;
	return 0;
}

/* A client that does not write its statistics makes rocade-status wait. These are all 0. */
static void
report_answer(struct rocade_dump *d)
{
	uint32_t wanted =
		__atomic_load_n(&d->region.daemon->report_requested, __ATOMIC_RELAXED);

	if (wanted != __atomic_load_n(&d->region.report->written_gen, __ATOMIC_RELAXED))
		__atomic_store_n(
			&d->region.report->written_gen, wanted, __ATOMIC_RELAXED);
}

/* Copies the oldest packet out of the ring, because only the copy stays as it is. Returns
 * false if the daemon has written nonsense. */
static bool
packet_read(struct rocade_dump *d, struct rocade_dump_packet *p)
{
	struct ring_desc desc = ring_peek(&d->rx, 0);
	struct sw_dump_head head;
	uint32_t lost = 0;

	if (desc.buf >= d->region.geom.rx_slots || desc.len > d->region.geom.buf_size ||
		desc.len < sizeof(head))
		return false;
	memcpy(d->bytes, region_rx_buf(&d->region, desc.buf), desc.len);
	memcpy(&head, d->bytes, sizeof(head));
	if (head.lost != SW_DUMP_LOST_UNKNOWN)
		lost = head.lost - d->lost;
	*p = (struct rocade_dump_packet){.wall_ns = head.wall_ns,
		.client = head.client,
		.qpn = head.qpn,
		.out = head.direction == SW_DUMP_OUT,
		.lost = lost,
		.len = head.len,
		.kept = desc.len - (uint32_t)sizeof(head),
		.data = d->bytes + sizeof(head)};
	d->lost += lost;
	d->held = true;
	return p->kept <= p->len;
}

/* Sleeps until the daemon wakes this program, or ms have passed. Returns false if the daemon
 * has ended. */
static bool
dump_sleep(const struct rocade_dump *d, int ms)
{
	struct pollfd fds[] = {{.fd = d->wake_fd, .events = POLLIN},
		{.fd = d->session.fd, .events = POLLRDHUP}};
	char bytes[256];
	int n = poll(fds, RTE_DIM(fds), ms);

	if (n > 0 && fds[0].revents & POLLIN)
		(void)recv(d->wake_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	return n <= 0 || ((fds[0].revents & ~POLLIN) == 0 && fds[1].revents == 0);
}

int
rocade_dump_next(struct rocade_dump *d, int ms, struct rocade_dump_packet *packet)
{
	bool ended = false;

	if (d->held)
		ring_release(&d->rx, 1);
	d->held = false;
	report_answer(d);
	if (ring_count(&d->rx) == 0) {
		asleep_set(&d->region.client->rx_asleep);
		/* For packets published before the daemon could see the flag. */
		if (!ring_cons_refresh(&d->rx))
			return -1;
		if (ring_count(&d->rx) == 0)
			ended = !dump_sleep(d, ms);
		asleep_clear(&d->region.client->rx_asleep);
		if (!ring_cons_refresh(&d->rx))
			return -1;
	}
	if (ring_count(&d->rx) == 0)
		return ended ? -1 : 0;
	return packet_read(d, packet) ? 1 : -1;
}

char *
rocade_dump_client(struct rocade_dump *d, uint32_t id)
{
	struct sw_request req = {
		.type = SW_STATUS, .qpn = SW_STATUS_CLIENT, .dest_qpn = id};
	struct sw_data_reply reply;
	char *text;
	int len;

	/* The rows of this client and of some after it, between commas. */
	if (session_fetch(&d->session, &req, &reply) != 0)
		return NULL;
	len = asprintf(&text, "[%.*s]", (int)reply.len, (const char *)reply.bytes);
	return len >= 0 ? text : NULL;
}

void
rocade_dump_stop(struct rocade_dump *d)
{
	d->filter.directions = 0;
	(void)dump_call(d, &d->filter);
}

uint32_t
rocade_dump_lost(const struct rocade_dump *d)
{
	return d->lost_total - d->lost;
}

void
rocade_dump_close(struct rocade_dump *d)
{
	if (d->region.client != NULL)
		region_unmap(&d->region);
	if (d->wake_fd >= 0)
		close(d->wake_fd);
	session_close(&d->session);
	free(d);
}
