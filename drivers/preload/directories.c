/* SPDX-License-Identifier: BSD-3-Clause */
/* The libc functions that list a directory. The directory with the device's network interface is
 * the kernel's with all interfaces, of which readdir() shows one. */
/* readdir() and readdir64() are different functions here. */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "preload/next.h"
#include "preload/paths.h"
#include "verbs/export.h"

#define DIRECTORIES 16

/* Open directories that show one interface. Every call of readdir() reads it. There is no lock,
 * because a child of fork() may list a directory before exec(). */
static DIR *directories[DIRECTORIES];

/* Children of fork() call these functions before exec(), where the dynamic loader must not be
 * called. So the constructor below looks them up. */
#define FIND(name)                                                                       \
	static __typeof__(&name) next_##name(void)                                       \
	{                                                                                \
		return NEXT_FUNCTION(name);                                              \
	}
FIND(opendir)
FIND(readdir)
FIND(readdir64)
FIND(closedir)
#undef FIND

static __attribute__((constructor)) void
directory_functions_find(void)
{
	(void)next_opendir();
	(void)next_readdir();
	(void)next_readdir64();
	(void)next_closedir();
}

/* Replaces a member of the table. Returns whether there was one. */
static bool
directory_swap(DIR *from, DIR *to)
{
	for (unsigned i = 0; i < DIRECTORIES; i++) {
		DIR *expected = from;

		if (__atomic_load_n(&directories[i], __ATOMIC_RELAXED) == from &&
			__atomic_compare_exchange_n(&directories[i], &expected, to, false,
				__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static bool
directory_shows(const DIR *dir, const char *name)
{
	for (unsigned i = 0; i < DIRECTORIES; i++) {
		if (__atomic_load_n(&directories[i], __ATOMIC_RELAXED) == dir)
			return name[0] == '.' || strcmp(name, PATH_INTERFACE) == 0;
	}
	return true;
}

EXPORT DIR *
opendir(const char *path)
{
	struct path_served served;
	DIR *dir;

	if (!path_serve(path, &served))
		return next_opendir()(path);
	if (!served.one_interface) {
		path_done(&served);
		return next_opendir()(path);
	}
	dir = next_opendir()(served.path);
	path_done(&served);
	if (dir == NULL || directory_swap(NULL, dir))
		return dir;
	next_closedir()(dir);
	errno = EMFILE;
	return NULL;
}

EXPORT struct dirent *
readdir(DIR *dir)
{
	struct dirent *entry;

	do {
		entry = next_readdir()(dir);
	} while (entry != NULL && !directory_shows(dir, entry->d_name));
	return entry;
}

EXPORT struct dirent64 *
readdir64(DIR *dir)
{
	struct dirent64 *entry;

	do {
		entry = next_readdir64()(dir);
	} while (entry != NULL && !directory_shows(dir, entry->d_name));
	return entry;
}

EXPORT int
closedir(DIR *dir)
{
	/* Before another thread can open a directory at the same address. */
	(void)directory_swap(dir, NULL);
	return next_closedir()(dir);
}
