/* SPDX-License-Identifier: BSD-3-Clause */
#include "preload_check.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "run_conf.h"

/* The interpreter of a script may be a script: execve(2) follows SCRIPTS_MAX of them. */
#define SCRIPTS_MAX 5
#define FIRST_LINE 255 /* of the first line, as the kernel reads it */
#define PATH_DEFAULT "/bin:/usr/bin"

enum reach {
	REACHED, /* or it cannot be told */
	IS_STATIC,
	IS_MUSL,
	IS_PRIVILEGED,
	IS_SCRIPT
};

static bool
is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As execvp(3). Returns false if there is none. */
static bool
program_find(const char *name, char path[PATH_MAX])
{
	const char *list = getenv("PATH"), *end;
	int len;

	if (strchr(name, '/') != NULL)
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	for (list = list != NULL ? list : PATH_DEFAULT; list != NULL;
		list = *end != '\0' ? end + 1 : NULL) {
		end = strchrnul(list, ':');
		len = end == list ? snprintf(path, PATH_MAX, "./%s", name)
				  : snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - list),
					    list, name);
		if (len < PATH_MAX && is_program(path))
			return true;
	}
	return false;
}

/* Reads the interpreter of an ELF file, the run-time linker. Returns 1; 0: the file has none; -1: it is no
 * ELF file of this kind of machine. */
static int
elf_interpreter(int fd, char path[PATH_MAX])
{
	ElfW(Ehdr) e;
	ElfW(Phdr) p;

	if (pread(fd, &e, sizeof(e), 0) != (ssize_t)sizeof(e) ||
		memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
		e.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
		e.e_phentsize != sizeof(p))
		return -1;
	for (unsigned i = 0; i < e.e_phnum; i++) {
		if (pread(fd, &p, sizeof(p), (off_t)(e.e_phoff + i * sizeof(p))) !=
			(ssize_t)sizeof(p))
			return -1;
		if (p.p_type != PT_INTERP)
			continue;
		if (p.p_filesz >= PATH_MAX ||
			pread(fd, path, p.p_filesz, (off_t)p.p_offset) !=
				(ssize_t)p.p_filesz)
			return -1;
		path[p.p_filesz] = '\0';
		return 1;
	}
	return 0;
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* Returns whether the file has the name of glibc's run-time linker, or is that of this program: it has no
 * interpreter, and loads what LD_PRELOAD names into the program that its arguments name. */
static bool
is_linker(const char *file, const struct stat *st)
{
	const char *name = base_name(file);
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char path[PATH_MAX];
	struct stat own;
	bool same = self >= 0 && elf_interpreter(self, path) == 1 &&
		    stat(path, &own) == 0 && own.st_dev == st->st_dev &&
		    own.st_ino == st->st_ino;

	if (self >= 0)
		close(self);
	return same || strncmp(name, "ld-linux", strlen("ld-linux")) == 0 ||
	       strncmp(name, "ld-2.", strlen("ld-2.")) == 0;
}

/* Returns whether execve(2) gives rights to the program, for which ld.so(8) preloads nothing. */
static bool
is_privileged(const char *path, const struct stat *st)
{
	const mode_t group = S_ISGID | S_IXGRP;
	struct statvfs vfs;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || statvfs(path, &vfs) != 0 ||
		(vfs.f_flag & ST_NOSUID) != 0)
		return false;
	return ((st->st_mode & S_ISUID) != 0 && st->st_uid != getuid()) ||
	       ((st->st_mode & group) == group && st->st_gid != getgid()) ||
	       (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

/* Reads the interpreter of a script. Returns whether it has one. */
static bool
script_interpreter(int fd, char path[PATH_MAX])
{
	char line[FIRST_LINE + 1];
	ssize_t n = pread(fd, line, FIRST_LINE, 0);
	const char *name;

	if (n < 2 || memcmp(line, "#!", 2) != 0)
		return false;
	line[n] = '\0';
	name = line + 2 + strspn(line + 2, " \t");
	snprintf(path, PATH_MAX, "%.*s", (int)strcspn(name, " \t\r\n"), name);
	return path[0] != '\0';
}

/* IS_SCRIPT: *next is its interpreter. */
static enum reach
file_reach(const char *path, char next[PATH_MAX])
{
	enum reach reach = REACHED;
	const char *name;
	struct stat st;
	int fd, found;

	/* The open of a FIFO would wait, and that of a device may do anything. */
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return REACHED;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	found = fd >= 0 ? elf_interpreter(fd, next) : -1;
	name = found == 1 ? base_name(next) : "";
	if (found == 0 && !is_linker(path, &st))
		reach = IS_STATIC;
	else if (strncmp(name, "ld-musl-", strlen("ld-musl-")) == 0)
		reach = IS_MUSL;
	else if (found < 0 && fd >= 0 && script_interpreter(fd, next))
		reach = IS_SCRIPT;
	else if (is_privileged(path, &st))
		reach = IS_PRIVILEGED;
	if (fd >= 0)
		close(fd);
	return reach;
}

void
preload_check(const char *program, bool mount)
{
	static const char *const why[] = {
		[IS_STATIC] =
			"is linked statically, so Rocade's library cannot be loaded into it "
			"and it finds no device of Rocade: link it with glibc and libibverbs as "
			"shared libraries (--mount shows it the device's files, but gives it no "
			"verbs)",
		[IS_MUSL] =
			"is linked with musl, and Rocade's library needs glibc: use a program "
			"that is linked with glibc, as those of Debian",
		[IS_PRIVILEGED] =
			"is set-user-ID, set-group-ID or has capabilities, and ld.so(8) preloads "
			"nothing for such a program: start it as the user whom it becomes",
	};
	char path[PATH_MAX], next[PATH_MAX];
	enum reach reach;
	unsigned scripts = 0;

	if (!program_find(program, path))
		return;
	while ((reach = file_reach(path, next)) == IS_SCRIPT && scripts++ < SCRIPTS_MAX)
		strcpy(path, next);
	if (reach == REACHED || reach == IS_SCRIPT || (mount && reach != IS_MUSL))
		return;
	if (scripts != 0)
		fprintf(stderr,
			PROGRAM ": '%s' is a script, and its interpreter '%s' %s\n",
			program, path, why[reach]);
	else
		fprintf(stderr, PROGRAM ": '%s' %s\n", program, why[reach]);
}
