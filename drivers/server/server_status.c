/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's state as JSON text, in an anonymous file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/server_query.h"
#include "server/server_rdmacm.h"

static void
stats_print(FILE *to, const struct sw_stats *stats)
{
	const uint64_t *values = (const uint64_t *)stats;

	for (size_t i = 0; i < SW_STAT_COUNT; i++)
		fprintf(to, "%s\"%s\": %llu", i != 0 ? ", " : "", sw_stat_rows[i].name,
			(unsigned long long)values[i]);
}

static void
status_print_client(FILE *to, const struct conn *conn)
{
	const struct sw_client *c = conn->client;
	struct ring_prod rx = c->rx;

	(void)ring_prod_refresh(&rx); /* reads the client's current index */
	fprintf(to,
		"{\"id\": %u, \"pid\": %d, \"uid\": %u, \"name\": \"%s\", \"qp_count\": "
		"%u, ",
		c->id, (int)conn->pid, (unsigned)conn->uid, conn->name, c->qps);
	fprintf(to, "\"rx_waiting\": %u, ", rx.prod - rx.cons_seen);
	stats_print(to, &c->stats);
	fprintf(to, "}");
}

static void
status_print_device(FILE *to, const struct rocade_daemon *d)
{
	const struct sw_device *dev = &d->device;
	char text[46];

	/* The name was checked: it contains no quotes. */
	fprintf(to, "\"device\": {\"name\": \"%s\", \"mtu\": %u, \"local\": %s, ",
		dev->name, dev->mtu, dev->local ? "true" : "false");
	fprintf(to, "\"qpn_base\": %u, \"qpn_count\": %u, \"qpns_free\": %u, ",
		dev->qpn_base, dev->qpn_count,
		d->sw->qpns.free_tail - d->sw->qpns.free_head);
	fprintf(to, "\"disconnected\": %u, \"cm_listeners\": %u, \"addresses\": [",
		d->sw->corrupt_count, rdmacm_listeners(d));
	for (unsigned i = 0; i < d->sw->conf.net.addr_count; i++)
		fprintf(to, "%s\"%s\"", i != 0 ? ", " : "",
			gid_format(d->sw->conf.net.addr[i].gid, text, sizeof(text)));
	fprintf(to, "]}");
}

static void
status_print_port(FILE *to, const struct uplink *up)
{
	const uint64_t *values = (const uint64_t *)&up->stats;

	fprintf(to, ", \"port\": {\"link_up\": %s", up->link_up ? "true" : "false");
	fprintf(to, ", \"unresolved\": %u", up->neigh_queue_count);
	for (size_t i = 0; i < PORT_STAT_COUNT; i++)
		fprintf(to, ", \"%s\": %llu", port_stat_rows[i].name,
			(unsigned long long)values[i]);
	fprintf(to, "}");
}

int
status_fd(const struct rocade_daemon *d)
{
	int fd = memfd_create("rocade-status", MFD_CLOEXEC);
	const struct conn *conn;
	const char *comma = "";
	FILE *to = NULL;
	int copy;

	if (fd < 0)
		return -errno;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0)
		to = fdopen(copy, "w");
	if (to == NULL) {
		if (copy >= 0)
			close(copy);
		close(fd);
		return -ENOMEM;
	}
	fprintf(to, "{");
	status_print_device(to, d);
	if (d->up != NULL)
		status_print_port(to, d->up);
	rdmacm_print(to, d);
	fprintf(to, ", \"clients\": [");
	TAILQ_FOREACH (conn, &d->conns, link) {
		if (conn->client == NULL)
			continue;
		fprintf(to, "%s", comma);
		status_print_client(to, conn);
		comma = ", ";
	}
	fprintf(to, "], \"departed\": {");
	stats_print(to, &d->sw->departed);
	fprintf(to, "}}\n");
	fclose(to);
	lseek(fd, 0, SEEK_SET);
	return fd;
}
