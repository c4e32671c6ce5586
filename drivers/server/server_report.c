/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of the clients: requested from them, and passed on unchecked. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/clock.h"
#include "server/server_query.h"
#include "server/server_share.h"

#define REQUEST_INTERVAL_NS (20 * NS_PER_MS) /* limits how often all clients are woken */

void
report_request(struct rocade_daemon *d)
{
	uint64_t now = clock_now();
	struct conn *conn;

	if (d->requested_gen == 0 || now - d->requested_ns >= REQUEST_INTERVAL_NS) {
		d->requested_ns = now;
		d->requested_gen++;
	}
	TAILQ_FOREACH (conn, &d->conns, link) {
		if (conn->client == NULL || conn->requested_gen == d->requested_gen)
			continue;
		conn->requested_gen = d->requested_gen;
		__atomic_store_n(&conn->client->region.report->requested_gen,
			d->requested_gen, __ATOMIC_RELAXED);
		share_wake(conn);
	}
}

static bool
report_is_written(const struct conn *conn)
{
	const struct report *report = conn->client->region.report;

	/* Pairs with the release in report_write(). */
	return __atomic_load_n(&report->written_gen, __ATOMIC_ACQUIRE) ==
	       conn->requested_gen;
}

uint32_t
report_missing(const struct rocade_daemon *d)
{
	const struct conn *conn;
	uint32_t missing = 0;

	TAILQ_FOREACH (conn, &d->conns, link)
		missing += conn->client != NULL && conn->requested_gen != 0 &&
			   !report_is_written(conn);
	return missing;
}

/* Copies the client's report out of the shared memory. The content is not trusted and not
 * inspected; only the number of rows is bounded. */
static int
report_copy(const struct report *report)
{
	uint32_t rows = __atomic_load_n(&report->qp_count, __ATOMIC_RELAXED);
	size_t len = offsetof(struct report, qps) +
		     RTE_MIN(rows, (uint32_t)REPORT_QPS) * sizeof(report->qps[0]);
	int fd = memfd_create("rocade-report", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (write(fd, report, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) != 0) {
		close(fd);
		return -EIO;
	}
	return fd;
}

int
report_fd(const struct conn *conn, uint32_t from, uint32_t *id, int *fd)
{
	const struct conn *other, *best = NULL;

	TAILQ_FOREACH (other, &conn->daemon->conns, link) {
		if (other->client != NULL && other->client->id >= from &&
			(best == NULL || other->client->id < best->client->id))
			best = other;
	}
	if (best == NULL)
		return -ENOENT;
	*id = best->client->id;
	if (conn->uid != 0 && conn->uid != best->uid && conn->uid != geteuid())
		return -EPERM;
	*fd = report_copy(best->client->region.report);
	return *fd < 0 ? *fd : 0;
}
