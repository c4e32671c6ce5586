/* SPDX-License-Identifier: BSD-3-Clause */
/* A DPDK driver that takes every device it sees for its hardware. */
#include "fake.h"

int
fake_probe(const char **first)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	*first = n > 0 ? ibv_get_device_name(list[0]) : "";
	ibv_free_device_list(list);
	return n;
}
