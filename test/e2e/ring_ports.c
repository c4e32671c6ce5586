/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into a program, adds ethdev ports of net_ring once EAL has started: net_ring_left0 and
 * net_ring_right0, joined by two rings, and as many such pairs as RING_PORTS says. EAL's arguments
 * cannot join two ports. If RING_COMMANDS names a FIFO, a thread reads lines from it: "down PAIR" or
 * "up PAIR" set the link of both ports of a pair.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#define PAIRS_MAX 4
#define ROOM 1024

struct pair {
	int left, right; /* ids of the ports */
};

static struct pair pairs[PAIRS_MAX];
static unsigned pair_count;

static int
pair_create(struct pair *pair, unsigned number)
{
	struct rte_ring *to_right, *to_left;
	char name[32];

	snprintf(name, sizeof(name), "to_right%u", number);
	to_right = rte_ring_create(name, ROOM, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	snprintf(name, sizeof(name), "to_left%u", number);
	to_left = rte_ring_create(name, ROOM, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (to_right == NULL || to_left == NULL)
		return -1;
	snprintf(name, sizeof(name), "left%u", number);
	pair->left = rte_eth_from_rings(name, &to_left, 1, &to_right, 1, 0);
	snprintf(name, sizeof(name), "right%u", number);
	pair->right = rte_eth_from_rings(name, &to_right, 1, &to_left, 1, 0);
	return pair->left < 0 || pair->right < 0 ? -1 : 0;
}

static void *
commands_run(void *arg)
{
	FILE *file = fopen(arg, "r");
	char line[32], what[8];
	unsigned number;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		int (*set)(uint16_t port);

		if (sscanf(line, "%7s %u", what, &number) != 2 || number >= pair_count)
			continue;
		set = strcmp(what, "up") == 0 ? rte_eth_dev_set_link_up
					      : rte_eth_dev_set_link_down;
		(void)set((uint16_t)pairs[number].left);
		(void)set((uint16_t)pairs[number].right);
	}
	if (file != NULL)
		fclose(file);
	return NULL;
}

__attribute__((visibility("default"))) int
rte_eal_init(int argc, char **argv)
{
	int (*next)(int, char **) =
		(int (*)(int, char **))dlsym(RTLD_NEXT, "rte_eal_init");
	const char *count = getenv("RING_PORTS"), *commands = getenv("RING_COMMANDS");
	int rc = next(argc, argv);
	pthread_t thread;

	for (unsigned i = 0; rc >= 0 && i < (count != NULL ? (unsigned)atoi(count) : 1);
		i++) {
		if (i == PAIRS_MAX || pair_create(&pairs[i], i) != 0) {
			fprintf(stderr, "ring_ports: cannot create pair %u\n", i);
			return -1;
		}
		pair_count++;
	}
	if (rc >= 0 && commands != NULL &&
		pthread_create(
			&thread, NULL, commands_run, (void *)(uintptr_t)commands) == 0)
		pthread_detach(thread);
	return rc;
}
