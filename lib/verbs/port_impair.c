/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_port_impair() and its variants: wrap every queue of a port. */
#include <errno.h>

#include "engine/engine.h"
#include "port/impair.h"
#include "verbs/verbs_port.h"

#define MILLION 1000000
#define DRAIN_PASSES 4

static int
impair_rates_check(const struct rocade_impair *impair)
{
	const struct {
		const char *name;
		uint32_t ppm;
	} rates[] = {
		{"loss_ppm", impair->loss_ppm},
		{"duplicate_ppm", impair->duplicate_ppm},
		{"reorder_ppm", impair->reorder_ppm},
		{"corrupt_ppm", impair->corrupt_ppm},
	};

	for (size_t i = 0; i < RTE_DIM(rates); i++) {
		if (rates[i].ppm > MILLION)
			return rocade_fail(EINVAL, "%s: %u is not in 0..%d",
				rates[i].name, rates[i].ppm, MILLION);
	}
	return 0;
}

/* Queues have different seeds, so that each has its own sequence of faults. */
static struct impair_conf
impair_queue_conf(const struct rocade_impair *impair, unsigned index)
{
	return (struct impair_conf){
		.loss_ppm = impair->loss_ppm,
		.duplicate_ppm = impair->duplicate_ppm,
		.reorder_ppm = impair->reorder_ppm,
		.corrupt_ppm = impair->corrupt_ppm,
		.seed = impair->seed + index,
	};
}

/* With all engine locks held. */
static int
impair_queue_wrap(struct rocade_engine *e)
{
	struct engine *engine = e->engine;
	struct port_queue inner, outer;
	int rc;

	if (e->impair != NULL)
		return 0;
	inner = engine_queue(engine);
	rc = impair_wrap(
		&inner, engine_dev(engine)->port.caps.max_frame, &e->impair, &outer);
	if (rc != 0) {
		e->impair = NULL;
		return -rc;
	}
	impair_on_hold(e->impair, engine_frame_held, engine);
	e->inner = inner;
	engine_set_queue(engine, &outer);
	return 0;
}

/* Called by rocade_close_port(): no thread polls the port any more. */
static void
impair_port_unwrap(struct rocade_port *port)
{
	const struct impair_conf idle = {0};

	dev_engines_lock(port->dev);
	for (unsigned i = 0; i < port->engine_count; i++) {
		for (int lane = 0; lane < IMPAIR_LANES && port->engines[i].impair != NULL;
			lane++)
			impair_set(
				port->engines[i].impair, (enum impair_lane)lane, &idle);
	}
	dev_engines_unlock(port->dev);
	/* Packets in the hand-off rings may have come from the wrapper. The engines
	 * process them first. */
	for (unsigned i = 0; i < DRAIN_PASSES * port->engine_count; i++)
		engine_poll(port->engines[i % port->engine_count].engine);
	dev_engines_lock(port->dev);
	for (unsigned i = 0; i < port->engine_count; i++) {
		struct rocade_engine *e = &port->engines[i];

		if (e->impair == NULL)
			continue;
		engine_set_queue(e->engine, &e->inner);
		impair_unwrap(e->impair);
		e->impair = NULL;
	}
	dev_engines_unlock(port->dev);
}

/* Wraps all queues: returns 0 or ENOMEM. With the port's lock and all engine locks held. */
static int
queues_wrap(struct rocade_port *port)
{
	int err = 0;

	for (unsigned i = 0; err == 0 && i < port->engine_count; i++)
		err = impair_queue_wrap(&port->engines[i]);
	port->on_close = impair_port_unwrap;
	return err;
}

static int
port_impair(struct rocade_port *port, enum impair_lane lane,
	const struct rocade_impair *impair)
{
	int err = impair_rates_check(impair);

	if (err != 0)
		return err;
	pthread_mutex_lock(&port->lock);
	dev_engines_lock(port->dev);
	err = queues_wrap(port);
	/* All queues are wrapped. A wrapper without rates passes every frame on. */
	for (unsigned i = 0; err == 0 && i < port->engine_count; i++) {
		struct impair_conf conf = impair_queue_conf(impair, i);

		err = -impair_set(port->engines[i].impair, lane, &conf);
	}
	dev_engines_unlock(port->dev);
	pthread_mutex_unlock(&port->lock);
	return err == 0 ? 0 : rocade_fail(err, "no memory for the impairment of a queue");
}

int
port_impair_choose(struct rocade_port *port, impair_choose_fn *choose, void *arg)
{
	int err;

	pthread_mutex_lock(&port->lock);
	dev_engines_lock(port->dev);
	err = queues_wrap(port);
	for (unsigned i = 0; err == 0 && choose != NULL && i < port->engine_count; i++)
		impair_choose(port->engines[i].impair, IMPAIR_TX, choose, arg);
	dev_engines_unlock(port->dev);
	pthread_mutex_unlock(&port->lock);
	return err;
}

void
port_link_cut(struct rocade_port *port, bool cut)
{
	if (port->dev->link_cut == cut)
		return;
	dev_engines_lock(port->dev);
	for (unsigned i = 0; i < port->engine_count; i++) {
		struct rocade_engine *e = &port->engines[i];
		struct port_stats *stats = engine_stats(e->engine);

		if (e->impair == NULL)
			continue;
		stats->link_cuts += i == 0 && cut;
		impair_cut(e->impair, cut ? &stats->link_cut_lost : NULL);
	}
	dev_engines_unlock(port->dev);
	/* The event comes when packets are lost already, or pass again. */
	if (port->engines[0].impair != NULL)
		dev_link_cut(port->dev, cut);
}

static int
port_impair_stats(struct rocade_port *port, enum impair_lane lane,
	struct rocade_impair_stats *stats, size_t size)
{
	struct impair_stats sum = {0};

	if (arg_missing("port", port) || arg_missing("stats", stats))
		return EINVAL;
	pthread_mutex_lock(&port->lock);
	for (unsigned i = 0; i < port->engine_count; i++) {
		struct impair_stats one;

		if (port->engines[i].impair == NULL)
			continue;
		impair_stats_get(port->engines[i].impair, lane, &one);
		impair_stats_add(&sum, &one);
	}
	pthread_mutex_unlock(&port->lock);
	out_give(stats, size,
		&(struct rocade_impair_stats){.lost = sum.lost,
			.duplicated = sum.duplicated,
			.reordered = sum.reordered,
			.corrupted = sum.corrupted},
		sizeof(*stats));
	return 0;
}

static int
port_impair_sized(struct rocade_port *port, enum impair_lane lane,
	const struct rocade_impair *impair, size_t size)
{
	struct rocade_impair taken;
	int err;

	if (arg_missing("port", port))
		return EINVAL;
	if (impair == NULL)
		return rocade_fail(EINVAL, "no struct rocade_impair given");
	err = conf_take(CONF_KIND(struct rocade_impair, seed), &taken, impair, size);
	return err != 0 ? err : port_impair(port, lane, &taken);
}

EXPORT int
rocade_port_impair_sized(
	struct rocade_port *port, const struct rocade_impair *impair, size_t size)
{
	return port_impair_sized(port, IMPAIR_RX, impair, size);
}

EXPORT int
rocade_port_impair_tx_sized(
	struct rocade_port *port, const struct rocade_impair *impair, size_t size)
{
	return port_impair_sized(port, IMPAIR_TX, impair, size);
}

EXPORT int
rocade_port_impair_stats_sized(
	struct rocade_port *port, struct rocade_impair_stats *stats, size_t size)
{
	return port_impair_stats(port, IMPAIR_RX, stats, size);
}

EXPORT int
rocade_port_impair_tx_stats_sized(
	struct rocade_port *port, struct rocade_impair_stats *stats, size_t size)
{
	return port_impair_stats(port, IMPAIR_TX, stats, size);
}
