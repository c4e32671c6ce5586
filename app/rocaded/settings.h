/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of rocaded, from its file and its options. */
#ifndef ROCADED_SETTINGS_H
#define ROCADED_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <rocade/daemon.h>

#define PROGRAM "rocaded"
#define ERR_MAX 512
#define SETTINGS_MAX 32
#define EAL_ARGS_MAX 64

enum kind { KIND_FLAG, KIND_TEXT, KIND_LIST, KIND_NUMBER, KIND_OCTAL, KIND_LEVEL };

struct row {
	const char *section;
	const char *key;
	const char *member; /* of struct settings */
	enum kind kind;
	/* in struct settings: const char * for TEXT and LIST, else uint32_t */
	size_t offset;
	uint32_t min, max;
	bool live;            /* can change on SIGHUP */
	const char *argument; /* name of the value in --help; "": none */
	const char *text;     /* for --help; line breaks are explicit */
};

extern const struct row rows[];
extern const unsigned row_count;

struct settings {
	struct rocade_daemon_conf conf;
	uint32_t local;
	uint32_t log_level;
	uint32_t vlan; /* settings_read() copies it to conf.vlan, which has 16 bits */
	uint32_t rx_desc, tx_desc; /* 0: the default */
	const char *port;
	const char *file;            /* path of the file; NULL: none */
	unsigned line[SETTINGS_MAX]; /* of the file, for each row; 0: not from the file */
	char *eal[EAL_ARGS_MAX];     /* from the file */
	unsigned eal_count;
	/* allocated; settings_fini() frees them */
	char *texts[SETTINGS_MAX + EAL_ARGS_MAX];
	unsigned text_count;
};

void settings_init(struct settings *s);
void settings_fini(struct settings *s);

/* Returns the row of a key; NULL: there is none. section: NULL for any. */
const struct row *settings_row_find(const char *section, const char *key);

/* Sets a setting from text. line: of the file, 0 for an option. Returns 0, or -1 with an
 * error that names neither line nor key. */
int settings_set(struct settings *s, const struct row *row, const char *value,
	unsigned line, char err[ERR_MAX]);
/* Returns a copy that lives as long as s. NULL: no memory, or too many texts. */
char *settings_text(struct settings *s, const char *text);

/* Reads the file. Returns 0, or -1 with an error that names the line, the key and the
 * valid values. */
int file_read(struct settings *s, const char *path, char err[ERR_MAX]);

/* Checks all that can be checked without opening anything. Returns 0, or -1 with an error
 * that names the line and the key, or the option. */
int settings_check(const struct settings *s, char err[ERR_MAX]);

/* Lists the keys that differ but cannot change at run time, separated by commas. */
void settings_need_restart(const struct settings *now, const struct settings *wanted,
	char *text, size_t size);

void settings_help_print(FILE *to);

/* eal.c: starts EAL with the arguments of the file and those of the command line, and
 * opens the port. Returns 0, or -1 after printing the error. */
int rocaded_port_open(const struct settings *s, int argc, char **argv,
	struct rocade_daemon_port **port);

/* telemetry.c: registers the commands for `dpdk-telemetry.py`. EAL must have been
 * started. The commands ask the daemon at this socket. */
void telemetry_start(const char *socket);

#endif
