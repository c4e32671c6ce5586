/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of include/rocade/shared.h. */
#include <errno.h>
#include <string.h>

#include "engine/engine_sleep.h"
#include "ethdev/eal_check.h"
#include "ethdev/ethdev_publish.h"
#include "ethdev/shared_port.h"

#define DEV_MTU_MAX 9000
#define INPUT_ROOM_MAX 32768

static int
shared_conf_read(const struct rocade_shared_conf *shared, struct rocade_shared_conf *out)
{
	if (shared == NULL)
		return rocade_fail(EINVAL, "no configuration of the shared port given");
	return conf_take(CONF_KIND(struct rocade_shared_conf, app_answers), out, shared,
		shared->size);
}

/* The port's own MTU, unless conf has one. */
static int
mtu_choose(const struct rocade_port_conf *conf, uint32_t *mtu)
{
	uint16_t got;
	int rc;

	if (!rte_eth_dev_is_valid_port(conf->ethdev))
		return rocade_fail(ENODEV,
			"ethdev: there is no port %u (-a and --vdev of EAL add some)",
			conf->ethdev);
	*mtu = conf->mtu;
	if (*mtu != 0)
		return 0;
	rc = rte_eth_dev_get_mtu(conf->ethdev, &got);
	if (rc != 0)
		return rocade_fail(EIO, "ethdev %u: cannot read its MTU: %s",
			conf->ethdev, strerror(-rc));
	*mtu = RTE_MIN(got, DEV_MTU_MAX);
	return 0;
}

static int
port_open(const struct rocade_port_conf *conf, const struct rocade_shared_conf *shared,
	uint32_t mtu, struct port *port)
{
	struct shared_open_conf open = {
		.port_id = conf->ethdev,
		.queues = conf->engines,
		.input_room = conf->rx_desc,
		.mtu = mtu,
		.no_cksum_offload = conf->no_cksum_offload,
		.shared = *shared,
	};
	char why[300] = "";
	int err;

	if (conf->rx_desc > INPUT_ROOM_MAX)
		return rocade_fail(EINVAL, "rx_desc: %u is not in 1..%d", conf->rx_desc,
			INPUT_ROOM_MAX);
	err = -shared_open(&open, port, why, sizeof(why));
	return err == 0 ? 0 : rocade_fail(err, "ethdev %u: %s", conf->ethdev, why);
}

EXPORT int
rocade_open_shared(const struct rocade_port_conf *conf,
	const struct rocade_shared_conf *shared_conf, struct rocade_port **out)
{
	struct rocade_shared_conf shared;
	struct rocade_port_conf read;
	struct dev_conf dev;
	struct port port;
	int err;

	if (arg_missing("port", out))
		return EINVAL;
	err = port_conf_read(conf, &read, &dev);
	if (err == 0 && (read.pool != NULL || read.numa != 0))
		err = rocade_fail(EINVAL,
			"pool, numa: only rocade_open_port() uses them; struct "
			"rocade_shared_conf has a pool");
	if (err == 0)
		err = shared_conf_read(shared_conf, &shared);
	if (err == 0)
		err = eal_check();
	if (err == 0)
		err = port_name_choose(&dev);
	if (err == 0)
		err = mtu_choose(&read, &dev.mtu);
	if (err == 0)
		err = port_open(&read, &shared, dev.mtu, &port);
	if (err != 0)
		return err;
	dev.net.other_stack = shared.app_answers;
	return ethdev_publish(&dev, &port, read.ethdev, 0, out);
}

static struct shared_queue *
queue_of(const struct rocade_engine *engine)
{
	const struct rocade_port *port = engine->port;

	return shared_queue_of(&port->dev->port, (unsigned)(engine - port->engines));
}

EXPORT uint16_t
rocade_engine_input(struct rocade_engine *engine, struct rte_mbuf **frames, uint16_t n)
{
	struct shared_queue *q = queue_of(engine);
	bool queued;

	if (unlikely(q == NULL))
		return n;
	n = shared_input(q, frames, n, &queued);
	if (queued)
		engine_wake(engine->engine);
	return n;
}

EXPORT uint16_t
rocade_engine_exceptions(
	struct rocade_engine *engine, struct rte_mbuf **frames, uint16_t n)
{
	struct shared_queue *q = queue_of(engine);

	return q != NULL ? shared_exceptions(q, frames, n) : 0;
}

EXPORT int
rocade_shared_stats_sized(
	struct rocade_engine *engine, struct rocade_shared_stats *stats, size_t size)
{
	struct rocade_shared_stats got;
	struct shared_queue *q;

	if (arg_missing("engine", engine) || arg_missing("stats", stats))
		return EINVAL;
	q = queue_of(engine);
	if (q == NULL)
		return rocade_fail(EINVAL, "not an engine of a shared port");
	got = (struct rocade_shared_stats){
		.input_full = __atomic_load_n(&q->input_full, __ATOMIC_RELAXED),
		.exceptions_full = __atomic_load_n(&q->exceptions_full, __ATOMIC_RELAXED),
		.no_copy = __atomic_load_n(&q->no_copy, __ATOMIC_RELAXED),
		.flow_rules = q->port->steer.rule_count,
	};
	out_give(stats, size, &got, sizeof(got));
	return 0;
}
