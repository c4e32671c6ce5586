/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_daemon_open_ethdev(): a port of the daemon. */
#include <errno.h>

#include <rte_ethdev.h>

#include <rocade/daemon.h>

#include "base/base_alloc.h"
#include "ethdev/eal_check.h"
#include "ethdev/ethdev.h"
#include "switch/uplink.h"
#include "verbs/export.h"

EXPORT int
rocade_daemon_open_ethdev(
	const struct rocade_daemon_ethdev *conf, struct rocade_daemon_port **out)
{
	struct ethdev_conf eth = {.port_id = conf->ethdev,
		.queues = RTE_MAX(conf->queues, 1),
		.rx_desc = conf->rx_desc,
		.tx_desc = conf->tx_desc,
		.mtu = conf->mtu,
		.no_cksum_offload = conf->no_cksum_offload,
		.keep_promiscuous = true};
	struct rocade_daemon_port *port;
	char why[200] = "";
	int err;

	if (conf->size != sizeof(*conf))
		return rocade_fail(EINVAL,
			"size: %zu is not sizeof(struct rocade_daemon_ethdev), %zu",
			conf->size, sizeof(*conf));
	if (conf->queues > SW_THREADS_MAX)
		return rocade_fail(EINVAL, "queues: %u is not in 1..%u", conf->queues,
			SW_THREADS_MAX);
	err = eal_check();
	if (err != 0)
		return err;
	port = alloc_get(&alloc_plain, "port", sizeof(*port));
	if (port == NULL)
		return rocade_fail(ENOMEM, "no memory for a port");
	err = -ethdev_open(&eth, &port->port, why, sizeof(why));
	if (err != 0) {
		alloc_put(&alloc_plain, port, sizeof(*port));
		return rocade_fail(err, "ethdev %u: %s", conf->ethdev, why);
	}
	port->mtu = ethdev_mtu(port->port.drv);
	*out = port;
	return 0;
}
