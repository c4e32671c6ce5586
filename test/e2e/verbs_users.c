/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that embeds Rocade, and has other users of libibverbs beside it: a DPDK driver that is
 * given a device while Rocade's ports are open, a library that opens libibverbs for itself, and
 * one that uses librdmacm.
 * Prints what each of them sees.
 *
 *   verbs_users [EAL options] -- DEVICE     a device to probe, for example a PCI address
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include <infiniband/verbs.h>
#include <rocade/rocade.h>

typedef struct ibv_device **list_fn(int *n);
typedef void free_fn(struct ibv_device **list);
typedef void *channel_fn(void);
typedef void channel_free_fn(void *channel);

static void
list_print(const char *caller, list_fn *get, free_fn *put)
{
	struct ibv_device **list;
	int n = 0, rocade = 0;

	list = get(&n);
	for (int i = 0; list != NULL && i < n; i++)
		rocade += strncmp(list[i]->name, "rocade", 6) == 0;
	printf("%s: %d of Rocade, %d others\n", caller, rocade, n - rocade);
	if (list != NULL)
		put(list);
}

/* As a plugin does that must not depend on what the program has linked. */
static int
own_library_open(list_fn **get, free_fn **put)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
		return -1;
	*get = (list_fn *)dlsym(library, "ibv_get_device_list");
	*put = (free_fn *)dlsym(library, "ibv_free_device_list");
	return *get != NULL && *put != NULL ? 0 : -1;
}

/* librdmacm as the library of a plugin, which calls it after the program has opened its ports. */
static void
rdmacm_print(void)
{
	void *library = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL);
	channel_fn *create;
	channel_free_fn *destroy;
	void *channel;

	if (library == NULL) {
		printf("librdmacm: %s\n", dlerror());
		return;
	}
	create = (channel_fn *)dlsym(library, "rdma_create_event_channel");
	destroy = (channel_free_fn *)dlsym(library, "rdma_destroy_event_channel");
	channel = create();
	printf("librdmacm: %s\n", channel != NULL ? "a channel" : strerror(errno));
	if (channel != NULL)
		destroy(channel);
}

static int
ports_close(struct rocade_port *ports[2])
{
	for (unsigned i = 0; i < 2; i++) {
		if (rocade_close_port(ports[i]) == 0)
			continue;
		fprintf(stderr, "verbs_users: %s\n", rocade_error());
		return 1;
	}
	return 0;
}

int
main(int argc, char *argv[])
{
	struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]), .addresses = "192.0.2.1/24"},
		{.size = sizeof(conf[0]), .addresses = "192.0.2.2/24"},
	};
	struct rocade_port *ports[2];
	int eal = rte_eal_init(argc, argv);
	list_fn *get;
	free_fn *put;

	if (eal < 0 || argc - eal != 2) {
		fputs("usage: verbs_users [EAL options] -- DEVICE\n", stderr);
		return 2;
	}
	if (rocade_open_loop(conf, ports) != 0) {
		fprintf(stderr, "verbs_users: %s\n", rocade_error());
		return 1;
	}
	list_print("program", ibv_get_device_list, ibv_free_device_list);
	if (own_library_open(&get, &put) != 0) {
		fprintf(stderr, "verbs_users: %s\n", dlerror());
		return 1;
	}
	list_print("library", get, put);
	rdmacm_print();
	printf("probe: %d\n", rte_dev_probe(argv[eal + 1]));
	printf("ethdev ports: %u\n", rte_eth_dev_count_avail());
	list_print("program", ibv_get_device_list, ibv_free_device_list);
	return ports_close(ports);
}
