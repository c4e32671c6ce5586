/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's state as JSON text, in an anonymous file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json_out.h"
#include "server/server_log.h"
#include "server/server_query.h"
#include "server/server_rdmacm.h"

static void
stats_print(struct json_out *j, const struct sw_stats *stats)
{
	const uint64_t *values = (const uint64_t *)stats;

	for (size_t i = 0; i < SW_STAT_COUNT; i++)
		json_out_uint(j, sw_stat_rows[i].name, values[i]);
}

static void
status_print_client(struct json_out *j, const struct conn *conn)
{
	const struct sw_client *c = conn->client;
	struct ring_prod rx = c->rx;

	(void)ring_prod_refresh(&rx); /* reads the client's current index */
	json_out_object(j, NULL);
	json_out_uint(j, "id", c->id);
	json_out_uint(j, "pid", (uint32_t)conn->pid);
	json_out_uint(j, "uid", conn->uid);
	json_out_text(j, "name", conn->name);
	json_out_uint(j, "qp_count", c->qps);
	json_out_uint(j, "rx_waiting", rx.prod - rx.cons_seen);
	stats_print(j, &c->stats);
	json_out_end(j);
}

static void
status_print_device(struct json_out *j, const struct rocade_daemon *d)
{
	const struct sw_device *dev = &d->device;
	char text[46];

	json_out_object(j, "device");
	json_out_text(j, "name", dev->name);
	json_out_uint(j, "mtu", dev->mtu);
	json_out_bool(j, "local", dev->local);
	json_out_uint(j, "qpn_base", dev->qpn_base);
	json_out_uint(j, "qpn_count", dev->qpn_count);
	json_out_uint(j, "qpns_free", qpns_free_count(&d->sw->qpns));
	json_out_uint(j, "disconnected", d->sw->corrupt_count);
	json_out_uint(j, "cm_listeners", rdmacm_listeners(d));
	json_out_uint(j, "log_lines_lost", server_log_lost());
	json_out_array(j, "addresses");
	for (unsigned i = 0; i < d->sw->conf.net.addr_count; i++)
		json_out_text(j, NULL,
			gid_format(d->sw->conf.net.addr[i].gid, text, sizeof(text)));
	json_out_end(j);
	json_out_end(j);
}

static void
status_print_port(struct json_out *j, const struct uplink *up)
{
	const uint64_t *values = (const uint64_t *)&up->stats;

	json_out_object(j, "port");
	json_out_bool(j, "link_up", up->link_up);
	json_out_uint(j, "unresolved", up->neigh_queue_count);
	for (size_t i = 0; i < PORT_STAT_COUNT; i++)
		json_out_uint(j, port_stat_rows[i].name, values[i]);
	json_out_end(j);
}

static void
state_print(struct json_out *j, const struct rocade_daemon *d)
{
	const struct conn *conn;

	json_out_object(j, NULL);
	status_print_device(j, d);
	if (d->up != NULL)
		status_print_port(j, d->up);
	rdmacm_print(j, d);
	json_out_array(j, "clients");
	TAILQ_FOREACH (conn, &d->conns, link) {
		if (conn->client != NULL)
			status_print_client(j, conn);
	}
	json_out_end(j);
	json_out_object(j, "departed");
	stats_print(j, &d->sw->departed);
	json_out_end(j);
	json_out_end(j);
	fputc('\n', j->to);
}

int
status_fd(const struct rocade_daemon *d)
{
	struct json_out j = {.to = NULL};
	int fd = memfd_create("rocade-status", MFD_CLOEXEC), copy;

	if (fd < 0)
		return -errno;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0)
		j.to = fdopen(copy, "w");
	if (j.to == NULL) {
		if (copy >= 0)
			close(copy);
		close(fd);
		return -ENOMEM;
	}
	state_print(&j, d);
	/* A truncated text would be no JSON. */
	if (fclose(j.to) != 0 || lseek(fd, 0, SEEK_SET) != 0) {
		close(fd);
		return -ENOMEM;
	}
	return fd;
}
