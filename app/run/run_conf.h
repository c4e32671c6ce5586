/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of rocade-run, and what its files offer each other. */
#ifndef RUN_RUN_CONF_H
#define RUN_RUN_CONF_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRAM "rocade-run"
#define EXIT_NOT_FOUND 127

/* Whether the devices of the host are in the program's list of devices. AS_SET: as ROCADE_OFF says. */
enum host_devices { HOST_DEVICES_SHOW, HOST_DEVICES_HIDE, HOST_DEVICES_AS_SET };

struct conf {
	const char *program;
	const char *socket;
	const char *device;
	const char *library;
	const char *daemon;
	const char *suppressions; /* for ThreadSanitizer */
	uint64_t daemon_uid;      /* UINT64_MAX: not given */
	const char *impair,
		*impair_seed; /* for the daemon, as they were given; or NULL */
	const char *faults, *seed, *fault_journal; /* as they were given, or NULL */
	bool faults_inherited; /* from a rocade-faults or rocade-run that started this one */
	uint8_t host_devices; /* enum host_devices */
	bool start_local;
	bool no_advice;
	bool mount;
	bool explain;
};

/* run_main.c: sets the environment of the program. Returns 0 or an exit code. */
int environment_set(const struct conf *s);
/* run_main.c: becomes the program. */
void program_exec(char **argv);

/* start_local.c: runs the program beside a daemon of its own. Returns the exit status of the
 * program, or 128 + n for signal n, as shells do. */
int local_run(struct conf *s, char **argv);
/* start_local.c: runs the program with --mount, and keeps the files of the namespace current. Returns as
 * local_run(). */
int mounted_run(struct conf *s, char **argv);

#endif
