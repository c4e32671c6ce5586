/* SPDX-License-Identifier: BSD-3-Clause */
/* A fake libibverbs.so.1 with two devices, which counts calls. As the real one, it calls
 * its own functions through the dynamic linker. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

struct fake fake;

static struct ibv_device devices[2] = {
	{.name = "fake0", .node_type = IBV_NODE_CA},
	{.name = "fake1", .node_type = IBV_NODE_CA},
};
static struct ibv_context context = {.device = &devices[0]};

struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(3, sizeof(list[0]));

	fake.lists++;
	list[0] = &devices[0];
	list[1] = &devices[1];
	*num_devices = 2;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	fake.frees++;
	for (int i = 0; list[i] != NULL; i++)
		fake.freed_devices++;
	free(list);
}

const char *
ibv_get_device_name(struct ibv_device *device)
{
	fake.names++;
	return device->name;
}

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct ibv_device **list = ibv_get_device_list(&fake.seen_inside);

	(void)device;
	ibv_free_device_list(list);
	return &context;
}

int
ibv_close_device(struct ibv_context *c)
{
	fake.closes += c == &context;
	return -1;
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	fake.pds++;
	return 77;
}

int(ibv_query_port)(
	struct ibv_context *c, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	(void)c;
	(void)attr;
	fake.ports++;
	return 70 + port_num;
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	(void)cq;
	fake.acks += nevents;
}
