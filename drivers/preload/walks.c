/* SPDX-License-Identifier: BSD-3-Clause */
/* The libc functions that walk through directories: libc calls its own opendir() and stat() in them,
 * not those of this library. */
/* glob() and glob64() are different functions here. */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/next.h"
#include "preload/paths.h"
#include "verbs/sysfs_tree.h"
#include "verbs/export.h"

/* ---- glob ---- */

/* Returns whether what the pattern matches can be in or above one of the served paths: what precedes its
 * first special character must agree with a root. */
static bool
pattern_may_match(const char *pattern)
{
	size_t fixed = pattern != NULL ? strcspn(pattern, "*?[{\\") : 0;
	const char *root;

	for (unsigned i = 0; fixed != 0 && (root = sysfs_root(i)) != NULL; i++) {
		size_t len = strlen(root);

		if (strncmp(pattern, root, fixed < len ? fixed : len) == 0)
			return true;
	}
	return false;
}

static void
directory_close(void *dir)
{
	(void)closedir(dir);
}

static void *
directory_open(const char *path)
{
	return opendir(path);
}

static struct dirent *
directory_read(void *dir)
{
	return readdir(dir);
}

static struct dirent64 *
directory_read64(void *dir)
{
	return readdir64(dir);
}

/* GLOB_ALTDIRFUNC has libc call functions of the caller, here those of this library. real: the function for
 * all other patterns. */
#define GLOB(name, real, read, stat_fn, lstat_fn, pattern, flags, failed, found)         \
	__extension__({                                                                  \
		__typeof__(*(found)) own_;                                               \
		int rc_;                                                                 \
                                                                                         \
		if (((flags)&GLOB_ALTDIRFUNC) != 0 || !pattern_may_match(pattern)) {     \
			rc_ = (real)(pattern, flags, failed, found);                     \
		} else {                                                                 \
			own_ = *(found);                                                 \
			own_.gl_opendir = directory_open;                                \
			own_.gl_readdir = read;                                          \
			own_.gl_closedir = directory_close;                              \
			own_.gl_stat = stat_fn;                                          \
			own_.gl_lstat = lstat_fn;                                        \
			rc_ = NEXT_FUNCTION(name)(                                       \
				pattern, (flags) | GLOB_ALTDIRFUNC, failed, &own_);      \
			(found)->gl_pathc = own_.gl_pathc;                               \
			(found)->gl_pathv = own_.gl_pathv;                               \
			(found)->gl_offs = own_.gl_offs;                                 \
			(found)->gl_flags = own_.gl_flags & ~GLOB_ALTDIRFUNC;            \
		}                                                                        \
		rc_;                                                                     \
	})

#define GLOB_FUNCTIONS(scope, glob_fn, glob64_fn, next, next64)                          \
	scope int glob_fn(const char *pattern, int flags,                                \
		int (*failed)(const char *path, int err), glob_t *found)                 \
	{                                                                                \
		return GLOB(glob, next, directory_read, stat, lstat, pattern, flags,     \
			failed, found);                                                  \
	}                                                                                \
                                                                                         \
	scope int glob64_fn(const char *pattern, int flags,                              \
		int (*failed)(const char *path, int err), glob64_t *found)               \
	{                                                                                \
		return GLOB(glob64, next64, directory_read64, stat64, lstat64, pattern,  \
			flags, failed, found);                                           \
	}
GLOB_FUNCTIONS(EXPORT, glob, glob64, NEXT_FUNCTION(glob), NEXT_FUNCTION(glob64))

/* Programs that were linked with glibc before 2.27 leave gl_lstat unset, as its version of the function does
 * not call it. drivers/preload/glob.map has the versions. */
#ifdef GLOB_OLD
#define NEXT_OLD(name)                                                                   \
	((__typeof__(&name))(uintptr_t)real_dlvsym()(RTLD_NEXT, #name, GLOB_OLD))
int glob_old(const char *pattern, int flags, int (*failed)(const char *path, int err),
	glob_t *found);
int glob64_old(const char *pattern, int flags, int (*failed)(const char *path, int err),
	glob64_t *found);
GLOB_FUNCTIONS(EXPORT, glob_old, glob64_old, NEXT_OLD(glob), NEXT_OLD(glob64))
__asm__(".symver glob_old, glob@" GLOB_OLD);
__asm__(".symver glob64_old, glob64@" GLOB_OLD);
#endif

/* ---- ftw, nftw ---- */

/* The caller's function of the walk that this thread is in. */
static __thread union {
	__ftw_func_t ftw;
	__ftw64_func_t ftw64;
	__nftw_func_t nftw;
	__nftw64_func_t nftw64;
} walk;

#define FTW(name, stat_type)                                                             \
	static int name##_shown(const char *path, const struct stat_type *st, int type)  \
	{                                                                                \
		return walk.name(path + path_hidden(path), st, type);                    \
	}                                                                                \
                                                                                         \
	static WITH_BUFFER int name##_served(const char *path,                           \
		int (*function)(const char *, const struct stat_type *, int), int fds)   \
	{                                                                                \
		__typeof__(walk) before = walk;                                          \
		struct path_buf buf;                                                     \
		int rc;                                                                  \
                                                                                         \
		path = path_serve(path, &buf);                                           \
		if (!path_is_in_tree(path))                                              \
			return NEXT_FUNCTION(name)(path, function, fds);                 \
		walk.name = function;                                                    \
		rc = NEXT_FUNCTION(name)(path, name##_shown, fds);                       \
		walk = before;                                                           \
		return rc;                                                               \
	}                                                                                \
                                                                                         \
	EXPORT int name(const char *path,                                                \
		int (*function)(const char *, const struct stat_type *, int), int fds)   \
	{                                                                                \
		return path_may_be_served(path)                                          \
			       ? name##_served(path, function, fds)                      \
			       : NEXT_FUNCTION(name)(path, function, fds);               \
	}
FTW(ftw, stat)
FTW(ftw64, stat64)

#define NFTW(name, stat_type)                                                            \
	static int name##_shown(const char *path, const struct stat_type *st, int type,  \
		struct FTW *place)                                                       \
	{                                                                                \
		int hidden = (int)path_hidden(path);                                     \
		struct FTW moved = {place->base - hidden, place->level};                 \
                                                                                         \
		return walk.name(path + hidden, st, type, &moved);                       \
	}                                                                                \
                                                                                         \
	static WITH_BUFFER int name##_served(const char *path,                           \
		int (*function)(                                                         \
			const char *, const struct stat_type *, int, struct FTW *),      \
		int fds, int flags)                                                      \
	{                                                                                \
		__typeof__(walk) before = walk;                                          \
		struct path_buf buf;                                                     \
		int rc;                                                                  \
                                                                                         \
		path = path_serve(path, &buf);                                           \
		if (!path_is_in_tree(path))                                              \
			return NEXT_FUNCTION(name)(path, function, fds, flags);          \
		walk.name = function;                                                    \
		rc = NEXT_FUNCTION(name)(path, name##_shown, fds, flags);                \
		walk = before;                                                           \
		return rc;                                                               \
	}                                                                                \
                                                                                         \
	EXPORT int name(const char *path,                                                \
		int (*function)(                                                         \
			const char *, const struct stat_type *, int, struct FTW *),      \
		int fds, int flags)                                                      \
	{                                                                                \
		return path_may_be_served(path)                                          \
			       ? name##_served(path, function, fds, flags)               \
			       : NEXT_FUNCTION(name)(path, function, fds, flags);        \
	}
NFTW(nftw, stat)
NFTW(nftw64, stat64)

/* ---- fts ---- */

static WITH_BUFFER char *
fts_root_copy(const char *path)
{
	struct path_buf buf;

	return strdup(path_serve(path, &buf));
}

/* Replaces the paths. Returns false, with errno, if there is no memory. *out: NULL if none is served. */
static bool
fts_roots_serve(char *const *paths, char ***out)
{
	size_t count = 0;
	bool any = false;

	*out = NULL;
	for (; paths[count] != NULL; count++)
		any |= path_may_be_served(paths[count]);
	if (!any)
		return true;
	*out = calloc(count + 1, sizeof(char *));
	for (size_t i = 0; *out != NULL && i < count; i++) {
		(*out)[i] = fts_root_copy(paths[i]);
		if ((*out)[i] == NULL)
			return false;
	}
	return *out != NULL;
}

static void
fts_roots_free(char **roots)
{
	for (size_t i = 0; roots != NULL && roots[i] != NULL; i++)
		free(roots[i]);
	free(roots);
}

/*
 * An entry's path is in the buffer fts_path of the walk. The caller sees its end only; before the next
 * call libc gets the whole one again.
 */
#define FTS_CALLS(open, read, children, walk_type, entry_type)                           \
	static void open##_hide(walk_type *fts, entry_type *entry)                       \
	{                                                                                \
		unsigned hidden = entry != NULL && entry->fts_path == fts->fts_path      \
					  ? path_hidden(entry->fts_path)                 \
					  : 0;                                           \
                                                                                         \
		if (hidden != 0 && entry->fts_pathlen > hidden) {                        \
			entry->fts_path += hidden;                                       \
			entry->fts_pathlen =                                             \
				(unsigned short)(entry->fts_pathlen - hidden);           \
		}                                                                        \
	}                                                                                \
                                                                                         \
	static void open##_restore(walk_type *fts)                                       \
	{                                                                                \
		entry_type *entry = fts->fts_cur;                                        \
		ptrdiff_t hidden = entry != NULL && entry->fts_path != NULL              \
					   ? entry->fts_path - fts->fts_path             \
					   : 0;                                          \
                                                                                         \
		if (hidden > 0 && hidden == (ptrdiff_t)path_hidden(fts->fts_path)) {     \
			entry->fts_path = fts->fts_path;                                 \
			entry->fts_pathlen =                                             \
				(unsigned short)(entry->fts_pathlen + hidden);           \
		}                                                                        \
	}                                                                                \
                                                                                         \
	EXPORT walk_type *open(char *const *paths, int options,                          \
		int (*order)(const entry_type **, const entry_type **))                  \
	{                                                                                \
		walk_type *fts = NULL;                                                   \
		char **roots;                                                            \
                                                                                         \
		if (fts_roots_serve(paths, &roots))                                      \
			fts = NEXT_FUNCTION(open)(                                       \
				roots != NULL ? roots : paths, options, order);          \
		fts_roots_free(roots);                                                   \
		return fts;                                                              \
	}                                                                                \
                                                                                         \
	EXPORT entry_type *read(walk_type *fts)                                          \
	{                                                                                \
		entry_type *entry;                                                       \
                                                                                         \
		open##_restore(fts);                                                     \
		entry = NEXT_FUNCTION(read)(fts);                                        \
		open##_hide(fts, entry);                                                 \
		return entry;                                                            \
	}                                                                                \
                                                                                         \
	EXPORT entry_type *children(walk_type *fts, int options)                         \
	{                                                                                \
		open##_restore(fts);                                                     \
		return NEXT_FUNCTION(children)(fts, options);                            \
	}
FTS_CALLS(fts_open, fts_read, fts_children, FTS, FTSENT)
FTS_CALLS(fts64_open, fts64_read, fts64_children, FTS64, FTSENT64)
