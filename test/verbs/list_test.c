/* SPDX-License-Identifier: BSD-3-Clause */
/* Rocade's devices beside those of another library; fake/ibverbs.c stands in for the real
 * one. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "fake/fake.h"
#include <rocade/rocade.h>

static struct rocade_port *ports[2];

static void
ports_open(void)
{
	struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]), .addresses = "192.0.2.1/24"},
		{.size = sizeof(conf[0]), .addresses = "192.0.2.2/24"},
	};

	assert_int_equal(rocade_open_loop(conf, ports), 0);
}

static void
ports_close(void)
{
	assert_int_equal(rocade_close_port(ports[0]), 0);
	assert_int_equal(rocade_close_port(ports[1]), 0);
}

/* With no open port, only the real library's devices are listed. */
TEST(list_without_ports_is_the_real_one)
{
	struct ibv_device **list;
	const char *first;
	int n = 0;

	list = ibv_get_device_list(&n);
	assert_int_equal(n, 2);
	assert_string_equal(ibv_get_device_name(list[0]), "fake0");
	ibv_free_device_list(list);
	assert_int_equal(fake_probe(&first), 2);
}

TEST(lists_are_merged)
{
	struct ibv_device **list;
	int n = 0;

	ports_open();
	memset(&fake, 0, sizeof(fake));
	list = ibv_get_device_list(&n);
	assert_int_equal(n, 4);
	assert_ptr_equal(list[0], rocade_port_device(ports[0]));
	assert_ptr_equal(list[1], rocade_port_device(ports[1]));
	assert_string_equal(ibv_get_device_name(list[2]), "fake0");
	assert_string_equal(ibv_get_device_name(list[3]), "fake1");
	assert_null(list[4]);
	/* calls on Rocade's devices were not forwarded */
	assert_int_equal(fake.names, 2);
	ibv_free_device_list(list);
	/* The real library got back its own devices and no others. */
	assert_int_equal(fake.frees, 1);
	assert_int_equal(fake.freed_devices, 2);
	ports_close();
}

TEST(calls_on_real_devices_are_forwarded)
{
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_pd pd;
	struct ibv_cq cq;
	struct ibv_port_attr attr;
	int n;

	ports_open();
	list = ibv_get_device_list(&n);
	memset(&fake, 0, sizeof(fake));
	context = ibv_open_device(list[2]);
	assert_non_null(context);
	/* Inside, the real library saw only its own devices. */
	assert_int_equal(fake.seen_inside, 2);
	assert_int_equal(fake.lists, 1);
	assert_int_equal(fake.freed_devices, 2);
	pd.context = context;
	cq.context = context;
	assert_int_equal(ibv_dealloc_pd(&pd), 77);
	assert_int_equal(ibv_query_port(context, 3, &attr), 73);
	ibv_ack_cq_events(&cq, 5);
	assert_int_equal(fake.acks, 5);
	assert_int_equal(ibv_close_device(context), -1);
	assert_int_equal(fake.closes, 1);
	/* A function that the fake library lacks. */
	errno = 0;
	assert_null(ibv_alloc_pd(context));
	assert_int_equal(errno, ENOSYS);
	ibv_free_device_list(list);
	ports_close();
}

/* Calls on Rocade's devices do not reach the real library. */
TEST(calls_on_rocade_devices_stay)
{
	struct ibv_context *context;
	struct ibv_pd *pd;

	ports_open();
	memset(&fake, 0, sizeof(fake));
	context = ibv_open_device(rocade_port_device(ports[0]));
	pd = ibv_alloc_pd(context);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(fake.pds + fake.closes + fake.lists, 0);
	ports_close();
}

/* ROCADE_OFF=host-devices: the list has Rocade's devices only, or none. A driver still finds its own. */
TEST(host_devices_can_be_hidden)
{
	struct ibv_device **list;
	const char *first;
	int n = -1;

	assert_int_equal(setenv("ROCADE_OFF", "host-devices", 1), 0);
	memset(&fake, 0, sizeof(fake));
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 0);
	assert_null(list[0]);
	ibv_free_device_list(list);
	ports_open();
	list = ibv_get_device_list(&n);
	assert_int_equal(n, 2);
	assert_ptr_equal(list[0], rocade_port_device(ports[0]));
	assert_ptr_equal(list[1], rocade_port_device(ports[1]));
	assert_null(list[2]);
	ibv_free_device_list(list);
	assert_int_equal(fake.lists, 0);
	assert_int_equal(fake_probe(&first), 2);
	assert_int_equal(unsetenv("ROCADE_OFF"), 0);
	list = ibv_get_device_list(&n);
	assert_int_equal(n, 4);
	ibv_free_device_list(list);
	ports_close();
}

/* A hot-plugged driver lists devices while ports are open: it must not take them for
 * hardware. */
TEST(driver_sees_real_devices_only)
{
	const char *first = NULL;
	int n;
	struct ibv_device **list;

	ports_open();
	assert_int_equal(fake_probe(&first), 2);
	assert_string_equal(first, "fake0");
	list = ibv_get_device_list(&n);
	assert_int_equal(n, 4);
	ibv_free_device_list(list);
	ports_close();
}
