/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of rocaded, from its file and its options. */
#ifndef ROCADED_SETTINGS_H
#define ROCADED_SETTINGS_H

#include <stdio.h>

#include <rocade/daemon.h>

#include <common/options.h>

#include "metrics.h"

#define PROGRAM "rocaded"
#define SETTINGS_MAX 32
#define EAL_ARGS_MAX 64
#define FILE_MAX 65535
#define ADDRESSES_MAX 1024

/* `use` of a row: its section in the file, and whether it can change on SIGHUP. */
enum setting_use { NO_SECTION, DAEMON, PORT, CLIENTS, SECTION = 3, LIVE = 4 };

struct conf {
	struct rocade_daemon_conf daemon;
	bool local;
	uint32_t log_level;
	uint32_t seccomp; /* enum filter_mode */
	struct metrics_address metrics;
	const char *user;          /* NULL: stay the user that has started the daemon */
	uint16_t rx_desc, tx_desc; /* 0: the default */
	uint16_t queues;           /* of the port; 0: one */
	const char *port;
	const char *config, *check_config; /* paths of the file; NULL: none */
	const char *file;                  /* path of the file that was read */
	unsigned line[SETTINGS_MAX]; /* of the file, for each row; 0: not from the file */
	char *eal[EAL_ARGS_MAX];     /* from the file; settings_fini() frees them */
	unsigned eal_count;
	char text[FILE_MAX + 1]; /* of the file; the settings point into it */
	char addresses[ADDRESSES_MAX];
};

extern const struct options rocaded_options;

void settings_init(struct conf *s);
void settings_fini(struct conf *s);

/* Reads the file. Returns 0, or -1 with an error that names the line, the key and the
 * valid values. */
int file_read(struct conf *s, const char *path, char err[ERR_MAX]);

/* Checks all that can be checked without opening anything. Returns 0, or -1 with an error
 * that names the line and the key, or the option. */
int settings_check(const struct conf *s, char err[ERR_MAX]);

/* Lists the keys that differ but cannot change at run time, separated by commas. */
void settings_need_restart(
	const struct conf *now, const struct conf *wanted, char *text, size_t size);

/* eal.c: starts EAL with the arguments of the file and those of the command line, and
 * opens the port. Returns 0, or -1 after printing the error. */
int rocaded_port_open(
	const struct conf *s, int argc, char **argv, struct rocade_daemon_port **port);

/* eal.c: runs the further queues of the daemon on lcores of EAL. Returns 0, or -1 after printing
 * the error. */
int rocaded_queues_start(const struct conf *s, struct rocade_daemon *daemon);
/* Returns when they have ended. */
void rocaded_queues_stop(struct rocade_daemon *daemon);

/* eal.c: the CPUs on which the program was started and no lcore runs; all, if there is no other; none, if
 * the kernel has not said on which: of more than CPU_SETSIZE. With a port. */
void rocaded_other_cpus(cpu_set_t *cpus);

/* telemetry.c: registers the commands for `dpdk-telemetry.py`. EAL must have been
 * started. The commands ask own_status.c. */
void telemetry_start(void);

#endif
