/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_open_loop(): two devices connected by a link in memory. */
#include <errno.h>
#include <string.h>

#include "loop/loop.h"
#include "verbs/verbs_port.h"

#define LOOP_MTU 4184 /* allows a path MTU of 4096 */
#define LOOP_RING 1024
#define LOOP_RING_MAX 65536
#define L2_MAX (14 + 4) /* Ethernet header and VLAN tag */

static int
loop_conf_check(const struct rocade_port_conf conf[2])
{
	if (conf[0].engines != conf[1].engines)
		return rocade_fail(EINVAL,
			"engines: %u and %u: both sides of a loop must have "
			"the same number",
			conf[0].engines, conf[1].engines);
	if (conf[0].pool != NULL || conf[1].pool != NULL || conf[0].numa != 0 ||
		conf[1].numa != 0)
		return rocade_fail(
			EINVAL, "pool, numa: only rocade_open_port() uses them");
	if (conf[0].rx_desc > LOOP_RING_MAX / 2)
		return rocade_fail(EINVAL, "rx_desc: %u is not in 1..%d", conf[0].rx_desc,
			LOOP_RING_MAX / 2);
	return 0;
}

/* Adds the device of one side to the device list. On failure its port is closed. */
static int
loop_side_open(struct dev_conf *conf, const struct port *port, struct rocade_port **out)
{
	struct dev *dev;
	int err = port_name_choose(conf);

	if (err == 0) {
		err = -dev_create(conf, port, &alloc_plain, &dev);
		if (err == EINVAL)
			rocade_fail(err,
				"%s: an address is not a valid host address, or "
				"qpn_base + max_qp exceeds 24 bits",
				conf->name);
		else if (err != 0)
			rocade_fail(err, "%s: %s", conf->name, strerror(err));
	}
	if (err != 0) {
		port->ops->close(port->drv);
		return err;
	}
	err = port_publish(dev, out);
	if (err != 0)
		dev_destroy(dev);
	return err;
}

static int
loop_create(const struct rocade_port_conf conf[2], struct dev_conf dev[2],
	struct port port[2])
{
	uint32_t ring =
		rte_align32pow2(conf[0].rx_desc != 0 ? conf[0].rx_desc : LOOP_RING);
	int err;

	for (int i = 0; i < 2; i++) {
		if (dev[i].mtu == 0)
			dev[i].mtu = LOOP_MTU;
	}
	err = -loop_open(conf[0].engines, RTE_MAX(dev[0].mtu, dev[1].mtu) + L2_MAX, ring,
		&alloc_plain, &port[0], &port[1]);
	return err == 0 ? 0 : rocade_fail(err, "no memory for a loop of %u frames", ring);
}

/* The array has the stride of the program: *second is its second element. */
static int
loop_sides_find(
	const struct rocade_port_conf *first, const struct rocade_port_conf **second)
{
	int err;

	if (first == NULL)
		return rocade_fail(EINVAL, "no configuration given");
	err = conf_size_check(port_conf_kind, first->size);
	if (err != 0)
		return err;
	*second = (const void *)((const char *)first + first->size);
	if ((*second)->size != first->size)
		return rocade_fail(EINVAL, "size: %zu and %zu: both must be the same",
			first->size, (*second)->size);
	return 0;
}

EXPORT int
rocade_open_loop(const struct rocade_port_conf conf[2], struct rocade_port *ports[2])
{
	const struct rocade_port_conf *second_conf = NULL;
	struct rocade_port_conf read[2];
	struct rocade_port *first, *second;
	struct dev_conf dev[2];
	struct port port[2];
	int err;

	if (arg_missing("ports", ports))
		return EINVAL;
	err = loop_sides_find(conf, &second_conf);
	if (err == 0)
		err = port_conf_read(conf, &read[0], &dev[0]);
	if (err == 0)
		err = port_conf_read(second_conf, &read[1], &dev[1]);
	/* The threads of both ends may wait for a core. */
	dev[0].cc.delay_unknown = dev[1].cc.delay_unknown = true;
	dev[0].cc.memory_link = dev[1].cc.memory_link = true;
	if (err == 0)
		err = loop_conf_check(read);
	if (err == 0)
		err = loop_create(read, dev, port);
	if (err != 0)
		return err;
	err = loop_side_open(&dev[0], &port[0], &first);
	if (err != 0) {
		port[1].ops->close(port[1].drv);
		return err;
	}
	err = loop_side_open(&dev[1], &port[1], &second);
	if (err != 0) {
		rocade_close_port(first);
		return err;
	}
	ports[0] = first;
	ports[1] = second;
	return 0;
}
