/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* The bytes of a message, on average. */
static double
mean_bytes(const struct conf *conf)
{
	double size = 0, sum = 0;

	for (unsigned i = 0; i < conf->n_sizes; i++)
		size += (double)conf->sizes[i] / conf->n_sizes;
	for (unsigned i = 0; i < OP_KINDS; i++) {
		double len = (op_rows[i].flags & OP_WORD) != 0 ? OP_WORD_LEN : size;

		if ((op_rows[i].flags & OP_EMPTY) == 0)
			sum += conf->mix.weights[i] * len;
	}
	return sum / conf->mix.period;
}

/* Returns --rate in messages a second; 0: none. */
static double
rate_messages(const struct conf *conf)
{
	if (conf->rate.bits)
		return (double)conf->rate.per_s / (8 * mean_bytes(conf));
	return (double)conf->rate.per_s;
}

int
rate_start(struct host *host)
{
	struct rate *rate = &host->rate;
	double messages = rate_messages(host->conf);

	rate->on = messages > 0 && host->ops->paced;
	rate->asked = rate->on ? messages : 0;
	rate->begin_ns = rate->posted = rate->behind = 0;
	rate->next = 0;
	if (!rate->on)
		return 0;
	rate->each_ns = 1e9 * host->head->n_hosts / messages;
	if (rate->of_op == NULL)
		rate->of_op = calloc(OP_KINDS, sizeof(*rate->of_op));
	if (rate->due_ns == NULL)
		rate->due_ns =
			calloc(host->n_conns, host->tx.depth * sizeof(*rate->due_ns));
	if (rate->of_op == NULL || rate->due_ns == NULL) {
		host_fail(host, "out of memory for --rate");
		return -1;
	}
	hist_clear(&host->hist);
	for (unsigned i = 0; i < OP_KINDS; i++)
		hist_clear(&rate->of_op[i]);
	return 0;
}

void
rate_close(struct rate *rate)
{
	free(rate->of_op);
	free(rate->due_ns);
	*rate = (struct rate){0};
}

static uint64_t *
due_of(const struct host *host, const struct conn *conn, uint64_t msg)
{
	uint32_t depth = host->tx.depth;

	return &host->rate.due_ns[(uint64_t)(conn - host->conns) * depth + msg % depth];
}

static uint64_t
due_at(const struct rate *rate, uint64_t number)
{
	return rate->begin_ns + (uint64_t)((double)number * rate->each_ns);
}

/* Posts up to n messages of the QP. */
static unsigned
conn_push(struct host *host, struct conn *conn, uint64_t n)
{
	struct rate *rate = &host->rate;
	uint64_t room = tx_room(host, conn);

	if (n > room)
		n = room;
	if (n > host->conf->burst)
		n = host->conf->burst;
	if (n == 0)
		return 0;
	for (uint64_t i = 0; i < n; i++)
		*due_of(host, conn, conn->posted + i) = due_at(rate, rate->posted + i);
	n = tx_post(host, conn, (unsigned)n);
	rate->posted += n;
	return (unsigned)n;
}

static uint64_t
due_now(struct rate *rate, uint64_t now_ns)
{
	if (rate->begin_ns == 0)
		rate->begin_ns = now_ns;
	return (uint64_t)((double)(now_ns - rate->begin_ns) / rate->each_ns) + 1;
}

unsigned
rate_push(struct host *host)
{
	struct rate *rate = &host->rate;
	uint64_t due = due_now(rate, clock_ns());
	unsigned moved = 0, blocked = 0;

	while (rate->posted < due && blocked < host->n_conns && host_active(host)) {
		uint64_t each = (due - rate->posted + host->n_conns - 1) / host->n_conns;
		unsigned n = conn_push(host, &host->conns[rate->next], each);

		if (++rate->next == host->n_conns)
			rate->next = 0;
		blocked = n == 0 ? blocked + 1 : 0;
		moved += n;
	}
	return moved;
}

void
rate_stop(struct host *host)
{
	struct rate *rate = &host->rate;

	if (rate->on && rate->begin_ns != 0)
		rate->behind = due_now(rate, clock_ns()) - rate->posted;
}

void
rate_acked(struct host *host, const struct conn *conn, uint64_t first, uint64_t end)
{
	const struct op_mix *mix = &host->conf->mix;
	uint64_t now_ns = clock_ns();

	/* A completion of UC and UD says that the message has left. */
	for (uint64_t msg = first; msg < end && !type_is_lossy(host->conf->type); msg++) {
		uint64_t *due_ns = due_of(host, conn, msg);
		uint64_t ns = elapsed_ns(now_ns, *due_ns);

		if (*due_ns == 0)
			continue; /* a QP's first message, which waits for the peer */
		*due_ns = 0;
		hist_add(&host->hist, ns);
		hist_add(&host->rate.of_op[mix->order[msg % mix->period]], ns);
	}
}
