/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "server/server_impair.h"
#include "server/server_query.h"
#include "switch/sw_client.h"
#include "verbs/verbs_port.h"

#define MILLION 1000000u

static struct impair_conf
conf_of(const struct rocade_impair *from)
{
	return (struct impair_conf){.loss_ppm = from->loss_ppm,
		.duplicate_ppm = from->duplicate_ppm,
		.reorder_ppm = from->reorder_ppm,
		.corrupt_ppm = from->corrupt_ppm,
		.seed = from->seed};
}

int
server_impair_check(const struct rocade_daemon_conf *conf)
{
	const struct rocade_impair *i = &conf->impair;

	if (i->loss_ppm > MILLION || i->duplicate_ppm > MILLION ||
		i->reorder_ppm > MILLION || i->corrupt_ppm > MILLION)
		return rocade_fail(EINVAL,
			"impair: of %u, %u, %u and %u ppm one is not in 0..%u",
			i->loss_ppm, i->duplicate_ppm, i->reorder_ppm, i->corrupt_ppm,
			MILLION);
	return 0;
}

int
server_impair_open(struct rocade_daemon *d, const struct rocade_daemon_conf *conf)
{
	const struct port *port = conf->port != NULL ? &conf->port->port : NULL;

	d->impair = conf_of(&conf->impair);
	if (!impair_is_on(&d->impair))
		return 0;
	if (port == NULL) {
		d->device.impair = d->impair;
		return 0;
	}
	for (unsigned i = 0; i < port->queue_count; i++) {
		const struct port_queue inner = {port->ops, port->queues[i]};
		struct impair_conf lane = d->impair;

		if (impair_wrap(&inner, port->caps.max_frame, &d->impairs[i],
			    &d->impaired_queues[i]) != 0)
			return rocade_fail(ENOMEM, "no memory for the impairment");
		/* Each lane of each queue has its own sequence of faults. */
		for (unsigned k = 0; k < IMPAIR_LANES; k++) {
			lane.seed = d->impair.seed + IMPAIR_LANES * i + k;
			(void)impair_set(d->impairs[i], (enum impair_lane)k, &lane);
		}
	}
	return 0;
}

void
server_impair_begin(struct rocade_daemon *d)
{
	for (unsigned i = 0; i < d->sw->thread_count && d->impairs[i] != NULL; i++)
		d->sw->threads[i]->io->queue = d->impaired_queues[i];
}

void
server_impair_end(struct rocade_daemon *d)
{
	for (unsigned i = 0; i < SW_THREADS_MAX && d->impairs[i] != NULL; i++) {
		if (d->up != NULL)
			d->sw->threads[i]->io->queue = (struct port_queue){
				d->up->port.ops, d->up->port.queues[i]};
		impair_unwrap(d->impairs[i]);
		d->impairs[i] = NULL;
	}
}

static void
client_add(struct impair_stats *sum, const struct sw_stats *stats)
{
	impair_stats_add(
		sum, &(struct impair_stats){stats->impair_lost, stats->impair_duplicated,
			     stats->impair_reordered, stats->impair_corrupted});
}

/* Adds up what clients have said that the asker may see, and those that have ended. */
static void
clients_add(const struct conn *asker, struct impair_stats *sum)
{
	const struct sw *sw = asker->daemon->sw;
	struct sw_client *c;

	client_add(sum, &sw->departed);
	TAILQ_FOREACH (c, &sw->clients, link) {
		const struct conn *conn = c->owner;
		struct sw_stats stats;

		if (!conn_may_see(asker, conn->uid))
			continue;
		sw_client_stats_read(c, &stats);
		client_add(sum, &stats);
	}
}

static void
queues_add(struct rocade_daemon *d, struct impair_stats *sum)
{
	for (unsigned i = 0; i < SW_THREADS_MAX && d->impairs[i] != NULL; i++) {
		struct impair_stats one;

		sw_thread_lock(d->sw->threads[i]);
		for (unsigned k = 0; k < IMPAIR_LANES; k++) {
			impair_stats_get(d->impairs[i], (enum impair_lane)k, &one);
			impair_stats_add(sum, &one);
		}
		sw_thread_unlock(d->sw->threads[i]);
	}
}

void
server_impair_print(struct json_out *j, const struct conn *asker)
{
	struct rocade_daemon *d = asker->daemon;
	struct impair_stats sum = {0};

	if (d->up != NULL)
		queues_add(d, &sum);
	else if (impair_is_on(&d->impair))
		clients_add(asker, &sum);
	json_out_object(j, "impair");
	json_out_uint(j, "loss_ppm", d->impair.loss_ppm);
	json_out_uint(j, "duplicate_ppm", d->impair.duplicate_ppm);
	json_out_uint(j, "reorder_ppm", d->impair.reorder_ppm);
	json_out_uint(j, "corrupt_ppm", d->impair.corrupt_ppm);
	json_out_uint(j, "seed", d->impair.seed);
	json_out_uint(j, "lost", sum.lost);
	json_out_uint(j, "duplicated", sum.duplicated);
	json_out_uint(j, "reordered", sum.reordered);
	json_out_uint(j, "corrupted", sum.corrupted);
	json_out_end(j);
}
