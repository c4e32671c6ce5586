/* SPDX-License-Identifier: BSD-3-Clause */
/* --dump, `set dump`: the frames of each port as a file for Wireshark. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "host.h"

int
host_dump(struct host *host, const char *path, char err[ERR_MAX])
{
	char name[DUMP_PATH_MAX + 16];
	struct rocade_port_dump_conf conf = {.size = sizeof(conf),
		.file = path,
		.snap = (uint32_t)host->conf->dump_snap};

	host_dump_end(host);
	if (host->index != 0) {
		snprintf(name, sizeof(name), "%s.%u", path, host->index);
		conf.file = name;
	}
	if (rocade_port_dump(host->port, &conf) == 0)
		return 0;
	return error_set(err, "%s", rocade_error());
}

void
host_dump_end(struct host *host)
{
	struct rocade_port_dump_stats stats = {0};
	int err = host->port != NULL ? rocade_port_dump_stop(host->port, &stats) : ENOENT;

	if (err == ENOENT)
		return;
	printf("port %" PRIu64 ": %" PRIu64 " frames written, %" PRIu64 " lost\n",
		host->pc->port, stats.written, stats.lost);
	if (err != 0)
		fprintf(stderr, "port %" PRIu64 ": %s\n", host->pc->port, rocade_error());
}
