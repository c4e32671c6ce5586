/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of the clients: requested from them, and passed on. The daemon checks the
 * numbers of rows, and the peers. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "engine/clock.h"
#include "server/server_query.h"
#include "server/server_share.h"
#include "switch/sw_dump.h"

#define REQUEST_INTERVAL_NS (20 * NS_PER_MS) /* limits how often a client is woken */

void
report_request(const struct conn *asker)
{
	struct rocade_daemon *d = asker->daemon;
	uint64_t now = clock_now();
	struct conn *conn;

	if (d->requested_gen == 0 || now - d->requested_ns >= REQUEST_INTERVAL_NS) {
		d->requested_ns = now;
		d->requested_gen++;
	}
	TAILQ_FOREACH (conn, &d->conns, link) {
		if (conn->client == NULL || conn->requested_gen == d->requested_gen ||
			!conn_may_see(asker, conn->uid))
			continue;
		conn->requested_gen = d->requested_gen;
		__atomic_store_n(&conn->client->region.daemon->report_requested,
			d->requested_gen, __ATOMIC_RELAXED);
		share_wake(conn, NULL);
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
report_missing(const struct conn *asker)
{
	const struct conn *conn;
	uint32_t missing = 0;

	TAILQ_FOREACH (conn, &asker->daemon->conns, link)
		missing += conn->client != NULL && conn->requested_gen != 0 &&
			   conn_may_see(asker, conn->uid) && !report_is_written(conn);
	return missing;
}

#define HEAD offsetof(struct report, qps)
static_assert(HEAD <= SW_DATA_MAX, "one piece, so that what is checked is what is sent");

/* Checks what the copy of a client's report, up to the QP rows, says of peers. Each has at
 * least one of the client's QPs. */
static void
peers_check(uint8_t *head, uint32_t qps)
{
	struct peer_info row;
	uint32_t count;
	uint8_t *at = head + offsetof(struct report, peers);

	memcpy(&count, head + offsetof(struct report, peer_count), sizeof(count));
	count = RTE_MIN(count, qps);
	memcpy(head + offsetof(struct report, peer_count), &count, sizeof(count));
	for (uint32_t i = 0; i < REPORT_PEERS; i++, at += sizeof(row)) {
		memcpy(&row, at, sizeof(row));
		if (i < count)
			peer_info_clamp(&row, qps);
		else
			memset(&row, 0, sizeof(row));
		memcpy(at, &row, sizeof(row));
	}
}

static_assert(offsetof(struct report, requested_gen) == 0, "copied first");

/* Copies a piece of the client's report out of the shared memory, once: the client may
 * write at any time. At most a row for each QP that the daemon knows of is copied. */
static uint32_t
report_copy(const struct conn *conn, uint32_t at, uint8_t *to)
{
	const struct sw_client *client = conn->client;
	const struct report *report = client->region.report;
	uint32_t rows = __atomic_load_n(&report->qp_count, __ATOMIC_RELAXED);
	uint32_t end = HEAD, len;

	rows = RTE_MIN(RTE_MIN(rows, client->qps), (uint32_t)REPORT_QPS);
	end += rows * (uint32_t)sizeof(report->qps[0]);
	at = RTE_MIN(at, end);
	len = RTE_MIN(end - at, (uint32_t)SW_DATA_MAX);
	memcpy(to, (const uint8_t *)report + at, len);
	if (at == 0) {
		/* what the client has there does not count */
		memcpy(to, &conn->requested_gen, sizeof(conn->requested_gen));
		peers_check(to, client->qps);
	}
	return len;
}

int
report_part(
	const struct conn *asker, uint32_t from, uint32_t at, struct sw_data_reply *reply)
{
	const struct conn *conn = conn_from(asker, from);

	if (conn == NULL)
		return -ENOENT;
	if (at != 0 && at < HEAD)
		return -EINVAL;
	reply->id = conn->client->id;
	reply->len = report_copy(conn, at, reply->bytes);
	return 0;
}

/* Returns the client with this id, or NULL if there is none that the asker may see. */
static struct conn *
conn_with_id(const struct conn *asker, uint32_t id)
{
	const struct conn *conn = conn_from(asker, id);

	return conn != NULL && conn->client->id == id ? conn->client->owner : NULL;
}

static int
flight_request(const struct conn *asker, const struct sw_request *req, uint32_t *gen)
{
	struct rocade_daemon *d = asker->daemon;
	struct conn *conn = conn_with_id(asker, req->qpn);
	struct region_daemon *shared;
	const struct sw_qp *qp = qpns_find(&d->sw->qpns, req->dest_qpn);

	if (conn == NULL || qp == NULL || qp->owner != conn->client)
		return -ENOENT;
	if (++d->flight_gen == 0) /* 0: nothing was requested */
		d->flight_gen = 1;
	conn->flight_gen = *gen = d->flight_gen;
	shared = conn->client->region.daemon;
	__atomic_store_n(&shared->flight_qpn, req->dest_qpn, __ATOMIC_RELAXED);
	/* Pairs with the acquire in flight_answer(). */
	__atomic_store_n(&shared->flight_requested, *gen, __ATOMIC_RELEASE);
	share_wake(conn, NULL);
	return 0;
}

static_assert(sizeof(struct report_flight) <= SW_DATA_MAX, "one piece");

int
flight_part(const struct conn *asker, const struct sw_request *req,
	struct sw_data_reply *reply)
{
	const struct conn *conn = conn_with_id(asker, req->qpn);
	const struct report_flight *flight;

	if (conn == NULL)
		return -ENOENT;
	if (req->dest_qpn == 0 || conn->flight_gen != req->dest_qpn)
		return -ECANCELED;
	flight = &conn->client->region.report->flight;
	/* Pairs with the release in report_flight_write(). */
	if (__atomic_load_n(&flight->written_gen, __ATOMIC_ACQUIRE) != req->dest_qpn)
		return -EAGAIN;
	reply->id = req->qpn;
	reply->len = sizeof(*flight);
	memcpy(reply->bytes, flight, sizeof(*flight));
	return 0;
}

static int
dump_request(const struct conn *asker, const struct sw_request *req, uint32_t *lost)
{
	bool all = conn_is_privileged(asker);
	uint64_t now = clock_now();
	struct sw *sw = asker->client->sw;
	struct sw_dump_filter filter;
	int rc;

	memcpy(&filter, req->sgid, sizeof(filter));
	sw_lock(sw);
	rc = sw_dump_set(asker->client, &filter, all, clock_wall() - now);
	*lost = sw_dump_lost(asker->client);
	sw_unlock(sw);
	return rc;
}

int
query_request(const struct conn *asker, const struct sw_request *req, uint32_t *qpn)
{
	if (req->type == SW_DUMP)
		return dump_request(asker, req, qpn);
	if (req->type == SW_FLIGHT_REQUEST)
		return flight_request(asker, req, qpn);
	return 0;
}
