/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "base/base_log.h"

#include "case.h"
#include "ethdev_fixture.h"

char warning[200];
struct port ring; /* over net_ring0, open for all tests */

static void
keep_warning(enum log_level level, const char *line, void *arg)
{
	(void)arg;
	if (level <= LOG_LEVEL_WARN)
		snprintf(warning, sizeof(warning), "%s", line);
}

uint16_t
ethdev_port_of(const char *name)
{
	uint16_t id = RTE_MAX_ETHPORTS;

	assert_int_equal(rte_eth_dev_get_port_by_name(name, &id), 0);
	return id;
}

struct port
ethdev_open_port(const char *name, uint32_t mtu)
{
	struct ethdev_conf conf = {.port_id = ethdev_port_of(name),
		.queues = 1,
		.rx_desc = 256,
		.tx_desc = 256,
		.mtu = mtu};
	char err[200] = "";
	struct port port = {0};

	if (ethdev_open(&conf, &port, err, sizeof(err)) != 0)
		fail_msg("%s", err);
	return port;
}

unsigned
ethdev_pool_used(const char *name)
{
	char pool[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *mp;

	snprintf(pool, sizeof(pool), "rocade_%u", ethdev_port_of(name));
	mp = rte_mempool_lookup(pool);
	return mp != NULL ? rte_mempool_in_use_count(mp) : 0;
}

void
frame_fill(struct pkt *pkt, uint32_t number, uint16_t len)
{
	pkt->len = len;
	for (unsigned i = 0; i < len; i++)
		pkt->data[i] = (uint8_t)(number * 13 + i);
	pkt->data[12] = 0x08; /* EtherType: IPv4 */
	pkt->data[13] = 0x00;
}

bool
frame_is(const struct pkt *pkt, uint32_t number, uint16_t len)
{
	if (pkt->len != len)
		return false;
	for (unsigned i = 0; i < len; i++)
		if (i != 12 && i != 13 && pkt->data[i] != (uint8_t)(number * 13 + i))
			return false;
	return true;
}

int
ethdev_start(void **state)
{
	char name[64], memif0[192], memif1[192];
	char *args[] = {program_invocation_name, "--no-huge", "--no-pci", "--no-shconf",
		"--no-telemetry", "-m", "128", "-l", "0", "--log-level=error",
		"--vdev=net_null0", "--vdev=net_null1", "--vdev=net_null2",
		"--vdev=net_ring0", memif0, memif1};

	snprintf(name, sizeof(name), "@rocade-ethdev-test-%d", (int)getpid());
	snprintf(memif0, sizeof(memif0),
		"--vdev=net_memif0,role=server,id=0,bsize=8192,socket-abstract=yes,"
		"socket=%s",
		name);
	snprintf(memif1, sizeof(memif1),
		"--vdev=net_memif1,role=client,id=0,bsize=8192,socket-abstract=yes,"
		"socket=%s",
		name);
	if (rte_eal_init(RTE_DIM(args), args) < 0) {
		fprintf(stderr, "EAL does not start\n");
		return -1;
	}
	log_set_sink(keep_warning, NULL);
	ring = ethdev_open_port("net_ring0", 4184);
	return 0;
}
