/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "process_tree.h"

#define ENVIRONMENT_MAX (1024 * 1024)
#define ROOM 64
#define DAEMON "rocaded"
#define LOOK_NS 20000000
#define LOOKS 250 /* until the next signal */

/* Returns false if the process has ended. */
static bool
process_read(const char *pid, struct tree_process *out)
{
	char path[64], text[512], state, *begin, *end;
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[len] = '\0';
	begin = strchr(text, '(');
	end = strrchr(text, ')'); /* a name may have parentheses */
	if (begin == NULL || end == NULL ||
		sscanf(end, ") %c %d", &state, &out->parent) != 2)
		return false;
	*end = '\0';
	out->pid = atoi(text);
	snprintf(out->name, sizeof(out->name), "%.15s", begin + 1);
	return state != 'Z' && state != 'X';
}

static bool
is_in_tree(const struct process_tree *t, unsigned count, pid_t pid)
{
	for (unsigned i = 0; i < count; i++) {
		if (t->all[i].pid == pid)
			return true;
	}
	return pid == getpid();
}

/* Moves those whose parents are in the tree to its begin, until no more are. */
static void
descendants_keep(struct process_tree *t)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < t->count; i++) {
		struct tree_process found = t->all[i];

		if (!is_in_tree(t, kept, found.parent))
			continue;
		memmove(&t->all[kept + 1], &t->all[kept], (i - kept) * sizeof(t->all[0]));
		t->all[kept++] = found;
		i = kept - 1; /* its children may stand before it */
	}
	t->count = kept;
}

static int
by_pid(const void *a, const void *b)
{
	pid_t one = ((const struct tree_process *)a)->pid;
	pid_t other = ((const struct tree_process *)b)->pid;

	return (one > other) - (one < other);
}

/* Returns false without memory. */
static bool
tree_grow(struct process_tree *t)
{
	unsigned room = t->room != 0 ? 2 * t->room : ROOM;
	struct tree_process *all = realloc(t->all, room * sizeof(*all));

	if (all == NULL)
		return false;
	t->all = all;
	t->room = room;
	return true;
}

void
process_tree_read(struct process_tree *t)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	t->count = 0;
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		if (t->count == t->room && !tree_grow(t))
			break;
		t->count += process_read(entry->d_name, &t->all[t->count]);
	}
	if (dir != NULL)
		closedir(dir);
	descendants_keep(t);
	if (t->count != 0)
		qsort(t->all, t->count, sizeof(t->all[0]), by_pid);
}

void
process_tree_free(struct process_tree *t)
{
	free(t->all);
	*t = (struct process_tree){.count = 0};
}

bool
process_variable(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64], *text = malloc(ENVIRONMENT_MAX);
	size_t len = 0, name_len = strlen(name);
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
	file = fopen(path, "re");
	if (file != NULL && text != NULL)
		len = fread(text, 1, ENVIRONMENT_MAX - 1, file);
	if (file != NULL)
		fclose(file);
	if (text != NULL)
		text[len] = '\0';
	for (size_t at = 0; at < len && !found; at += strlen(text + at) + 1) {
		found = strncmp(text + at, name, name_len) == 0 &&
			text[at + name_len] == '=';
		if (found)
			snprintf(out, size, "%s", text + at + name_len + 1);
	}
	free(text);
	return found;
}

static bool
is_named_so(const char *name, const char *const *names)
{
	while (*names != NULL && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static bool
is_of_daemons(const struct process_tree *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		if (strcmp(t->all[i].name, DAEMON) != 0)
			return false;
	}
	return true;
}

/* Sends a signal to all but those with one of these names, which end with NULL, and waits until there are none, for a
 * while. */
static bool
tree_signal(struct process_tree *t, int number, const char *const *spared)
{
	static const struct timespec look = {.tv_nsec = LOOK_NS};

	process_tree_read(t);
	for (unsigned i = 0; i < t->count; i++) {
		if (!is_named_so(t->all[i].name, spared))
			kill(t->all[i].pid, number);
	}
	for (unsigned i = 0; i < LOOKS; i++) {
		process_tree_read(t);
		/* Those that have just ended are read as none. */
		while (waitpid(-1, NULL, WNOHANG) > 0) {
		}
		if (t->count == 0)
			return true;
		if (is_named_so(DAEMON, spared) && is_of_daemons(t))
			return false; /* no rocade-run is left that would end them */
		nanosleep(&look, NULL);
	}
	return false;
}

void
process_tree_end(struct process_tree *t)
{
	/* rocade-run ends the daemon that it has started, and removes its socket. It waits for the program. */
	static const char *const daemon[] = {DAEMON, NULL},
				 *const both[] = {DAEMON, "rocade-run", NULL},
				 *const none[] = {NULL};

	if (tree_signal(t, SIGTERM, daemon) || tree_signal(t, SIGKILL, both) ||
		tree_signal(t, SIGTERM, none))
		return;
	tree_signal(t, SIGKILL, none);
}
