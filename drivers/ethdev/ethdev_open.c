/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_open_port(): a device over an ethdev port. */
#include <errno.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include "ethdev/eal_check.h"
#include "ethdev/ethdev.h"
#include "ethdev/ethdev_publish.h"

#define DEV_MTU_MAX 9000

static int
port_mtu_read(uint16_t port_id, uint32_t *mtu)
{
	uint16_t got;
	int rc = rte_eth_dev_get_mtu(port_id, &got);

	if (rc != 0)
		return rocade_fail(EIO, "ethdev %u: cannot read its MTU: %s", port_id,
			strerror(-rc));
	*mtu = RTE_MIN(got, DEV_MTU_MAX);
	return 0;
}

static int
ethdev_create(
	const struct rocade_port_conf *conf, struct dev_conf *dev, struct port *port)
{
	struct ethdev_conf eth = {
		.port_id = conf->ethdev,
		.queues = conf->engines,
		.rx_desc = conf->rx_desc,
		.tx_desc = conf->tx_desc,
		.no_cksum_offload = conf->no_cksum_offload,
		.rx_interrupts = conf->rx_interrupts,
		.pool = conf->pool,
		.numa = conf->numa,
	};
	char why[200] = "";
	int err;

	if (!rte_eth_dev_is_valid_port(conf->ethdev))
		return rocade_fail(ENODEV,
			"ethdev: there is no port %u (-a and --vdev of EAL add some)",
			conf->ethdev);
	if (dev->mtu == 0) {
		err = port_mtu_read(conf->ethdev, &dev->mtu);
		if (err != 0)
			return err;
	}
	eth.mtu = conf->mtu; /* the present MTU need not be set */
	err = -ethdev_open(&eth, port, why, sizeof(why));
	return err == 0 ? 0 : rocade_fail(err, "ethdev %u: %s", conf->ethdev, why);
}

/* True if the device is on no bus of the machine, but a process or the kernel is behind it.
 * Behind a bond are NICs. */
static bool
is_virtual(uint16_t port_id)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port_id, &info) == 0 && info.device != NULL &&
	       strcmp(rte_bus_name(rte_dev_bus(info.device)), "vdev") == 0 &&
	       strcmp(info.driver_name, "net_bonding") != 0 &&
	       strcmp(info.driver_name, "net_failsafe") != 0;
}

/* True if frames go through memory that another process of this host reads, or this one. */
static bool
is_memory(uint16_t port_id)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port_id, &info) == 0 &&
	       (strcmp(info.driver_name, "net_memif") == 0 ||
		       strcmp(info.driver_name, "net_ring") == 0);
}

int
ethdev_publish(struct dev_conf *conf, const struct port *port, uint16_t port_id,
	uint32_t numa, struct rocade_port **out)
{
	struct alloc mem = ethdev_alloc(
		numa != 0 ? (int)(numa - 1) : rte_eth_dev_socket_id(port_id));
	struct dev *dev;
	int err;

	conf->cc.delay_unknown = is_virtual(port_id);
	conf->cc.memory_link = is_memory(port_id);
	err = -dev_create(conf, port, &mem, &dev);
	if (err != 0) {
		port->ops->close(port->drv);
		if (err == EINVAL)
			return rocade_fail(err,
				"%s: an address is not a valid host address, the "
				"MTU is below 576, or qpn_base + max_qp exceeds "
				"24 bits",
				conf->name);
		return rocade_fail(err, "%s: %s", conf->name, strerror(err));
	}
	err = port_publish(dev, out);
	if (err != 0)
		dev_destroy(dev);
	return err;
}

EXPORT int
rocade_open_port(const struct rocade_port_conf *conf, struct rocade_port **out)
{
	struct rocade_port_conf read;
	struct dev_conf dev;
	struct port port;
	int err;

	if (arg_missing("port", out))
		return EINVAL;
	err = port_conf_read(conf, &read, &dev);
	if (err == 0)
		err = eal_check();
	if (err == 0)
		err = port_name_choose(&dev);
	if (err == 0)
		err = ethdev_create(&read, &dev, &port);
	if (err != 0)
		return err;
	return ethdev_publish(&dev, &port, read.ethdev, read.numa, out);
}
