/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile clients: they take what is limited. */
#include <errno.h>
#include <stdio.h>

#include "hostile.h"

int
mode_places(void)
{
	static struct me us[64];
	unsigned most = 0;

	do {
		unsigned n = 0;

		while (n < RTE_DIM(us) && attach(&us[n]) == 0)
			n++;
		most = RTE_MAX(most, n);
		while (n > 0)
			detach(&us[--n]);
	} while (time_left());
	printf("places %u\n", most);
	return most == 0;
}

int
mode_qpns(void)
{
	unsigned most = 0;
	struct me me;

	if (attach(&me) != 0)
		return 1;
	while (time_left()) {
		static uint32_t mine[65536];
		unsigned n = 0;
		int rc = 0;

		while (n < RTE_DIM(mine) &&
			(rc = daemon_call(&me, SW_QPN_TAKE, 0, 0, &mine[n])) == 0)
			n++;
		if (rc == -ENODEV)
			return 1;
		most = RTE_MAX(most, n);
		if (daemon_call(&me, SW_QPN_GIVE, mine[0] + 65536, 0, NULL) != -EINVAL)
			return 1;
		while (n > 0 && time_left())
			(void)daemon_call(&me, SW_QPN_GIVE, mine[--n], 0, NULL);
	}
	printf("qpns %u\n", most);
	return 0; /* the daemon frees the rest when this process ends */
}
