/* SPDX-License-Identifier: BSD-3-Clause */
/* What all parts of a host use: clock, engines, messages, its error. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "app_port.h"
#include "host.h"

uint64_t
clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

unsigned
host_poll_engines(struct host *host)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < host->n_engines; i++)
		moved += rocade_engine_poll(host->engines[i]);
	return moved;
}

unsigned
host_poll_all(struct host *host)
{
	unsigned moved = 0;

	if (host->app_port != NULL)
		moved += app_port_poll(host->app_port);
	if (host->runner == ENGINES_BY_MAIN)
		moved += host_poll_engines(host);
	return moved;
}

static uint64_t
progress_of(const struct host *host)
{
	return host->tally.messages + host->tally.sent;
}

void
host_tick(struct host *host, bool runs, uint64_t now_ns)
{
	host_events(host);
	if (!runs || !host_active(host))
		return;
	if (host->progress != progress_of(host)) {
		host->progress = progress_of(host);
		host->progress_ns = now_ns;
	}
	host->ops->tick(host, now_ns);
}

/* Whether the limit event may be pending: fewer receives are posted than the limit. Every
 * pass then polls for it. */
static inline bool
limit_near(const struct host *host)
{
	return host->n_rxqs != 0 && host->rxqs[0].refill_on_limit &&
	       rxq_posted(&host->rxqs[0]) < host->conf->srq_limit;
}

static unsigned
host_pass(struct host *host)
{
	unsigned moved = host->ops->reap(host);

	if (limit_near(host))
		host_events(host);
	if (host_active(host))
		moved += host->ops->push(host);
	return moved;
}

unsigned
hosts_pass(struct host *first)
{
	unsigned cores = conf_cores(first->conf), moved = 0;

	for (unsigned i = first->core; i < first->head->n_hosts; i += cores) {
		struct host *host = host_at(first->head, i);

		if (host_active(host))
			moved += host_pass(host);
	}
	return moved;
}

uint64_t
host_share(const struct host *host, const struct conn *conn)
{
	uint64_t count = conf_count(host->conf, host->pc);
	uint64_t qps = conf_qps(host->conf, host->pc);
	uint64_t index = (host->first_conn + (uint64_t)(conn - host->conns)) % qps;

	if (host->conf->count == 0)
		return UINT64_MAX;
	return count / qps + (index < count % qps);
}

uint64_t
host_count(const struct host *host)
{
	uint64_t count = conf_count(host->conf, host->pc);
	uint64_t qps = conf_qps(host->conf, host->pc);
	uint64_t first = host->first_conn % qps, rest = count % qps;
	uint64_t more = rest > first ? rest - first : 0;

	return count / qps * host->n_conns +
	       (more < host->n_conns ? more : host->n_conns);
}

void
host_publish(struct host *host)
{
	struct host_view *view = &host->view;

	__atomic_store_n(&view->messages, host->tally.messages, __ATOMIC_RELAXED);
	__atomic_store_n(&view->bytes, host->tally.bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&view->bad_bytes, host->tally.bad_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&view->state, host->state, __ATOMIC_RELAXED);
}

void
host_log(const struct host *host, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	flockfile(stdout);
	printf("port %" PRIu64 ": ", host->pc->port);
	vprintf(format, args);
	printf("\n");
	funlockfile(stdout);
	va_end(args);
}

/* The cores of a port often find the same error: it is printed once. */
static void
error_record(struct host *host, const char *format, va_list args)
{
	struct host *none = NULL;

	if (host->reason[0] != '\0')
		return;
	vsnprintf(host->reason, sizeof(host->reason), format, args);
	if (!__atomic_compare_exchange_n(&host->head->teller, &none, host, false,
		    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	fflush(stdout);
	fprintf(stderr, "port %" PRIu64 ": %s\n", host->pc->port, host->reason);
}

void
host_set_error(struct host *host, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	error_record(host, format, args);
	va_end(args);
}

void
host_fail(struct host *host, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	error_record(host, format, args);
	va_end(args);
	host->reconnect = true;
	/* The rate is that of the time in which there was progress, not of the wait before the failure. */
	if (host->state != HOST_FAILED)
		host->tally.last_ns = host->progress != progress_of(host)
					      ? clock_ns()
					      : host->progress_ns;
	host->state = HOST_FAILED;
}

void
host_wrong_bytes(struct host *host, const struct conn *conn, const char *what,
	uint64_t msg, const uint8_t *data, uint64_t len, uint64_t seed, size_t bad,
	size_t first)
{
	int place = host->reason[0] != '\0'
			    ? -1
			    : peers_place_of(host->conf, host->pc, conn->qpn,
				      host_is_back(host, true), msg, data, len);

	host->tally.bad_messages++;
	host->tally.bad_bytes += bad;
	if (place >= 0 && (unsigned)place != host->pc->peers[host->peer].place)
		host_set_error(host,
			"message %" PRIu64
			" (%s) of QP 0x%x was sent to peer number %d of %s: expected "
			"--peer %s@%d",
			msg, what, conn->qpn, place, host_peer(host), host_peer(host),
			place);
	host_set_error(host,
		"message %" PRIu64 " (%s) of QP 0x%x is wrong: %zu of its %" PRIu64
		" bytes, the first at offset %zu: 0x%02x, expected 0x%02x",
		msg, what, conn->qpn, bad, len, first, data[first],
		verify_byte(seed, first));
}
