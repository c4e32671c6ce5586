/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked with a program, this initializes an EAL of the program's own before its
 * main(). */
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_mempool.h>

static void eal_first(void) __attribute__((constructor));

static void
eal_first(void)
{
	char *args[] = {"flow", "--no-huge", "-m", "64", "--no-pci", "--no-telemetry",
		"--no-shconf", "--lcores", "0@0", "--log-level", "error", NULL};

	if (rte_eal_init((int)(sizeof(args) / sizeof(args[0])) - 1, args) < 0 ||
		rte_mempool_create("own", 63, 64, 0, 0, NULL, NULL, NULL, NULL,
			SOCKET_ID_ANY, 0) == NULL) {
		fprintf(stderr, "eal_first: rte_eal_init or rte_mempool_create failed\n");
		exit(3);
	}
}
