/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-run: starts a program with Rocade's verbs devices. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <rocade/rocade.h>
#include <rocade/status.h>

#include <common/beside.h>
#include <common/impair_option.h>
#include <common/number.h>
#include <common/options.h>

#include "env_list.h"
#include "fault_env.h"
#include "preload_check.h"
#include "run_conf.h"
#include "sanitizer_env.h"
#include "stacks.h"

#define NO_UID UINT64_MAX
#define HOST_DEVICES "host-devices" /* in ROCADE_OFF */
#define PRELOAD_SEPARATORS ": "     /* ld.so(8) */

static const char *const host_devices[] = {
	[HOST_DEVICES_SHOW] = "show", [HOST_DEVICES_HIDE] = "hide", NULL};

static bool
impair_keep(struct conf *s, const char *value)
{
	struct rocade_impair impair = {0};

	s->impair = value;
	return impair_parse(value, &impair) == NULL;
}

/* Keeps a seed as it was given. */
static bool
seed_keep(const char **seed, const char *value)
{
	uint64_t number;

	*seed = value;
	return parse_number(value, 0, UINT64_MAX, &number);
}

static bool
impair_seed_keep(struct conf *s, const char *value)
{
	return seed_keep(&s->impair_seed, value);
}

static bool
fault_seed_keep(struct conf *s, const char *value)
{
	return seed_keep(&s->seed, value);
}

/* Of two scripts one would have no effect: `rocade-faults replay` gives the first one. */
static bool
faults_keep(struct conf *s, const char *value)
{
	if (s->faults != NULL)
		return false;
	s->faults = value;
	return true;
}

#define SEED_VALID "a number from 0 to 18446744073709551615"
#define MEMBER(field) OPTION_MEMBER(struct conf, field)
static const struct option_row option_rows[] = {
	{OPTION_TEXT, 0, "socket", "PATH", MEMBER(socket),
		.text = "the daemon's socket (default: as for rocaded)"},
	{OPTION_TEXT, 0, "device", "NAME", MEMBER(device),
		.text = "fail unless the daemon's device has this name"},
	{OPTION_NUM, 0, "daemon-uid", "UID", MEMBER(daemon_uid), .max = UINT32_MAX - 1,
		.text = "accept a daemon of this user (default: of root and of yours)"},
	{OPTION_FLAG, 0, "start-local", NULL, MEMBER(start_local), .max = true,
		.text = "run a private `rocaded --local` as long as PROGRAM runs"},
	{OPTION_WORD, 0, "host-devices", "WHICH", MEMBER(host_devices),
		.words = host_devices,
		.text = "show the host's own devices beside Rocade's, or hide them (show; "
			"with --start-local hide)"},
	{OPTION_FLAG, 0, "mount", NULL, MEMBER(mount), .max = true,
		.text = "show the device's files to all programs, in a mount namespace"},
	{OPTION_FLAG, 0, "explain", NULL, MEMBER(explain), .max = true,
		.text = "print at the end for what PROGRAM has looked in vain"},
	{OPTION_FN, 0, "impair", "LIST", .set = impair_keep, .valid = IMPAIR_VALID,
		.text = "with --start-local: lose, duplicate, reorder and corrupt packets on "
			"purpose: loss=1%,dup=1%,reorder=1%,corrupt=0.1%"},
	{OPTION_FN, 0, "impair-seed", "N", .set = impair_seed_keep, .valid = SEED_VALID,
		.text = "seed of these faults (default: 1)"},
	{OPTION_FN, 0, "faults", "FILE", .set = faults_keep,
		.valid = "no second script: --faults is given twice",
		.text = "refuse calls of PROGRAM, and of what it starts, as the script FILE "
			"says: rocade-faults(1) (default: the script of ROCADE_FAULTS)"},
	{OPTION_FN, 0, "seed", "N", .set = fault_seed_keep, .valid = SEED_VALID,
		.text = "seed of the script's probabilities (default: 1)"},
	{OPTION_TEXT, 0, "fault-journal", "FILE", MEMBER(fault_journal),
		.text = "write a line to FILE for each call that the script refuses"},
	{OPTION_FLAG, 0, "no-advice", NULL, MEMBER(no_advice), .max = true,
		.text = "print no line of advice: before a PROGRAM that cannot use the device, "
			"and when PROGRAM has ended after errors"},
	{OPTION_TEXT, 0, "library", "PATH", MEMBER(library),
		.text = "the librocade-verbs.so to preload"},
	{OPTION_TEXT, 0, "daemon", "PATH", MEMBER(daemon),
		.text = "the rocaded for --start-local"},
	{OPTION_HELP, .name = "help"},
	{OPTION_VERSION, .name = "version"},
};

static const struct options options = {.program = PROGRAM,
	.usage = "Usage: " PROGRAM " [OPTION]... PROGRAM [ARGUMENT]...\n"
		 "Starts a program that uses libibverbs on the device of rocaded(8).\n\n",
	.notes = "  --help, --version\n",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.column = 19,
	.operands = true,
	.why = impair_why};

/* The program may change its directory, and others that it starts look for the file, too. A path that would be
 * longer than size, or get one of these characters, stays as it is. */
static const char *
path_absolute(const char *path, const char *without, char *buf, size_t size)
{
	size_t len;

	if (path == NULL || path[0] == '/' || getcwd(buf, size) == NULL ||
		strpbrk(buf, without) != NULL)
		return path;
	len = strlen(buf);
	return snprintf(buf + len, size - len, "/%s", path) < (int)(size - len) ? buf
										: path;
}

/* Fails without the device: the program might run without RDMA unnoticed. */
static int
device_find(const struct conf *s, char name[ROCADE_NAME_MAX])
{
	int err = rocade_device_name(s->socket, name);

	if (err != 0)
		fprintf(stderr, PROGRAM ": %s\n", rocade_error());
	if (err == EPERM)
		fprintf(stderr, PROGRAM
			": a daemon reads all that its clients send; --daemon-uid "
			"UID accepts that of a user whom you trust\n");
	else if (err == ENOENT || err == ECONNREFUSED)
		fprintf(stderr,
			PROGRAM ": `rocaded --local &` starts a daemon, --start-local "
				"one for this program only;\n" PROGRAM
				": --socket or $ROCADE_SOCKET selects its socket\n");
	if (err != 0)
		return EXIT_RUN;
	if (s->device != NULL && strcmp(s->device, name) != 0) {
		fprintf(stderr,
			PROGRAM ": the daemon's device is '%s', not '%s' as --device "
				"requires\n",
			name, s->device);
		return EXIT_RUN;
	}
	return 0;
}

static void
host_devices_set(const struct conf *s)
{
	bool hide = s->host_devices == HOST_DEVICES_HIDE;

	if (s->host_devices == HOST_DEVICES_AS_SET)
		hide = s->start_local;
	if (hide)
		env_prepend("ROCADE_OFF", HOST_DEVICES, ",");
	else if (s->host_devices == HOST_DEVICES_SHOW)
		env_remove("ROCADE_OFF", HOST_DEVICES, ",");
}

/* ld.so would go on without a file that is no shared library. The program would run without RDMA unnoticed. */
static bool
library_check(const char *path)
{
	char magic[SELFMAG];
	FILE *file = fopen(path, "re");
	bool read = file != NULL && fread(magic, sizeof(magic), 1, file) == 1;

	if (file == NULL)
		fprintf(stderr, PROGRAM ": cannot read %s: %s (see --library)\n", path,
			strerror(errno));
	else
		fclose(file);
	if (file != NULL && (!read || memcmp(magic, ELFMAG, SELFMAG) != 0)) {
		fprintf(stderr,
			PROGRAM ": '%s' is no shared library: expected the path of "
				"librocade-verbs.so (see --library)\n",
			path);
		return false;
	}
	return file != NULL;
}

int
environment_set(const struct conf *s)
{
	char device[ROCADE_NAME_MAX], uid[24];
	int rc;

	if (s->daemon_uid != NO_UID) {
		snprintf(uid, sizeof(uid), "%" PRIu64, s->daemon_uid);
		setenv("ROCADE_DAEMON_UID", uid, 1);
	}
	rc = device_find(s, device);
	if (rc != 0)
		return rc;
	if (!library_check(s->library))
		return EXIT_RUN;
	if (s->socket != NULL)
		setenv("ROCADE_SOCKET", s->socket, 1);
	host_devices_set(s);
	if (s->explain)
		setenv("ROCADE_EXPLAIN", "1", 1);
	if (s->no_advice)
		env_prepend("ROCADE_OFF", "advice", ",");
	if (!env_has("ROCADE_OFF", "advice", ","))
		preload_check(s->program, s->mount);
	env_prepend("LD_PRELOAD", s->library, PRELOAD_SEPARATORS);
	faults_env_set(s, PRELOAD_SEPARATORS);
	stacks_env_set(device);
	sanitizer_env_set(s->suppressions);
	return 0;
}

void
program_exec(char **argv)
{
	execvp(argv[0], argv);
	fprintf(stderr, PROGRAM ": cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(EXIT_NOT_FOUND);
}

/* Options that require others. */
static bool
options_fit(const struct conf *s)
{
	if (s->impair != NULL && !s->start_local)
		fprintf(stderr, PROGRAM
			": --impair requires --start-local: a daemon that is started "
			"otherwise has an option --impair itself\n");
	else if (s->impair_seed != NULL && s->impair == NULL)
		fprintf(stderr, PROGRAM ": --impair-seed requires --impair\n");
	else if (s->seed != NULL && s->faults == NULL)
		fprintf(stderr, PROGRAM ": --seed requires --faults\n");
	else if (s->fault_journal != NULL && s->faults == NULL)
		fprintf(stderr, PROGRAM ": --fault-journal requires --faults\n");
	else
		return true;
	return false;
}

int
main(int argc, char **argv)
{
	char library[4096], daemon[4096], suppressions[4096];
	char faults[4096], journal[4096];
	char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct conf s = {.daemon_uid = NO_UID, .host_devices = HOST_DEVICES_AS_SET};
	int rc = options_read(&options, &s, argc, argv);

	if (rc >= 0)
		return rc;
	if (optind == argc) {
		fprintf(stderr, PROGRAM ": missing PROGRAM (see --help)\n");
		return EXIT_USAGE;
	}
	if (!options_fit(&s))
		return EXIT_USAGE;
	s.program = argv[optind];
	s.library =
		path_absolute(s.library, PRELOAD_SEPARATORS, library, sizeof(library));
	if (s.socket == NULL)
		s.socket = getenv("ROCADE_SOCKET");
	if (s.socket != NULL && s.socket[0] != '\0')
		s.socket = path_absolute(s.socket, "", socket_path, sizeof(socket_path));
	if (s.library == NULL)
		s.library = path_beside_self("../../drivers/librocade-verbs.so",
			ROCADE_LIBRARY, library, sizeof(library));
	if (strpbrk(s.library, PRELOAD_SEPARATORS) != NULL) {
		fprintf(stderr,
			PROGRAM
			": invalid value '%s' for --library: expected a path "
			"without blanks and colons, which separate the entries of "
			"LD_PRELOAD\n",
			s.library);
		return EXIT_USAGE;
	}
	if (s.daemon == NULL)
		s.daemon = path_beside_self(
			"../rocaded/rocaded", ROCADE_DAEMON, daemon, sizeof(daemon));
	s.suppressions = path_beside_self("../../drivers/preload/tsan.supp",
		ROCADE_SUPPRESSIONS, suppressions, sizeof(suppressions));
	faults_inherit(&s);
	s.faults = path_absolute(s.faults, "", faults, sizeof(faults));
	s.fault_journal = path_absolute(s.fault_journal, "", journal, sizeof(journal));
	rc = faults_check(&s);
	if (rc != 0)
		return rc;
	if (s.start_local)
		return local_run(&s, argv + optind);
	if (s.mount)
		return mounted_run(&s, argv + optind);
	rc = environment_set(&s);
	if (rc != 0)
		return rc;
	program_exec(argv + optind);
	return EXIT_NOT_FOUND;
}
