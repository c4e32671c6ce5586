/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls each libc function that takes a path of a device, in each way in which a program can name the
 * path, and prints a line for each: FUNCTION WAY ok, or what it has found. test/e2e/sysfs.py has the
 * rows.  sysfs_calls DEVICE */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define CLASS "/sys/class/infiniband/"

/* Called in place of the functions without "2" or "chk" if _FORTIFY_SOURCE is set. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);
char *__realpath_chk(const char *path, char *resolved, size_t size);
char *__getcwd_chk(char *buf, size_t size, size_t room);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(
	int dirfd, const char *path, char *buf, size_t size, size_t room);

static char device[128]; /* its directory */
static char ports[192];  /* the directory ports/1 */
static const char *way;

static void
row(const char *function, int good)
{
	printf("%s %s %s\n", function, way, good ? "ok" : strerror(errno));
	errno = 0;
}

static int
text_is(int fd, const char *want)
{
	char text[64] = "";
	ssize_t len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	return len > 0 && strcmp(text, want) == 0;
}

static int
stream_is(FILE *stream, const char *want)
{
	char text[64] = "";
	int good = stream != NULL && fgets(text, sizeof(text), stream) != NULL &&
		   strcmp(text, want) == 0;

	if (stream != NULL)
		fclose(stream);
	return good;
}

/* ---- Functions on a file: path of ports/1/state ---- */

static void
opens(int dirfd, const char *path)
{
	static const char want[] = "4: ACTIVE\n";
	int fd;

	row("openat", text_is(openat(dirfd, path, O_RDONLY), want));
	row("openat64", text_is(openat64(dirfd, path, O_RDONLY), want));
	fd = openat(dirfd, path, O_WRONLY | O_TRUNC);
	row("openat-wronly", fd < 0 && errno == EACCES);
	if (dirfd != AT_FDCWD)
		return;
	row("open", text_is(open(path, O_RDONLY), want));
	row("open64", text_is(open64(path, O_RDONLY), want));
	row("__open_2", text_is(__open_2(path, O_RDONLY), want));
	row("__open64_2", text_is(__open64_2(path, O_RDONLY), want));
	row("__openat_2", text_is(__openat_2(AT_FDCWD, path, O_RDONLY), want));
	row("__openat64_2", text_is(__openat64_2(AT_FDCWD, path, O_RDONLY), want));
	row("fopen", stream_is(fopen(path, "r"), want));
	row("fopen64", stream_is(fopen64(path, "r"), want));
	row("freopen", stream_is(freopen(path, "r", fopen("/dev/null", "r")), want));
	row("freopen64",
		stream_is(freopen64(path, "r", fopen64("/dev/null", "r")), want));
	fd = creat(path, 0600);
	row("creat", fd < 0 && errno == EACCES);
	fd = open(path, O_RDWR);
	row("open-rdwr", fd < 0 && errno == EACCES);
	row("fopen-w", fopen(path, "w") == NULL && errno == EACCES);
}

static void
stats(int dirfd, const char *path)
{
	struct stat st = {.st_mode = 0};
	struct stat64 st64 = {.st_mode = 0};
	struct statx stx = {.stx_mode = 0};

	row("fstatat", fstatat(dirfd, path, &st, 0) == 0 && S_ISREG(st.st_mode));
	row("fstatat64", fstatat64(dirfd, path, &st64, 0) == 0 && S_ISREG(st64.st_mode));
	row("statx", statx(dirfd, path, 0, STATX_MODE | STATX_TYPE, &stx) == 0 &&
			     S_ISREG(stx.stx_mode));
	row("faccessat", faccessat(dirfd, path, R_OK, 0) == 0);
	if (dirfd != AT_FDCWD)
		return;
	row("stat", stat(path, &st) == 0 && S_ISREG(st.st_mode));
	row("stat64", stat64(path, &st64) == 0 && S_ISREG(st64.st_mode));
	row("lstat", lstat(path, &st) == 0 && S_ISREG(st.st_mode));
	row("lstat64", lstat64(path, &st64) == 0 && S_ISREG(st64.st_mode));
	row("access", access(path, R_OK) == 0);
	row("eaccess", eaccess(path, R_OK) == 0);
	row("euidaccess", euidaccess(path, R_OK) == 0);
}

/* ---- Functions on a directory: path of ports/1/gids ---- */

static int
is_gid(const char *name)
{
	return strcmp(name, "0") == 0 || strcmp(name, "15") == 0;
}

static int
directory_is(DIR *dir)
{
	struct dirent *entry;
	int found = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		found += is_gid(entry->d_name);
	if (dir != NULL)
		closedir(dir);
	return found == 2;
}

static int
directory64_is(DIR *dir)
{
	struct dirent64 *entry;
	int found = 0;

	while (dir != NULL && (entry = readdir64(dir)) != NULL)
		found += is_gid(entry->d_name);
	if (dir != NULL)
		closedir(dir);
	return found == 2;
}

static int walked, walked_wrong;
static char walk_root[PATH_MAX];

static void
walk_step(const char *path, int base)
{
	walked++;
	if (strncmp(path, walk_root, strlen(walk_root)) != 0 ||
		(base >= 0 &&
			base != (int)(strrchr(path, '/') ? strrchr(path, '/') - path + 1
							 : 0)))
		walked_wrong++;
}

static int
on_ftw(const char *path, const struct stat *st, int type)
{
	(void)st, (void)type;
	walk_step(path, -1);
	return 0;
}

static int
on_ftw64(const char *path, const struct stat64 *st, int type)
{
	(void)st, (void)type;
	walk_step(path, -1);
	return 0;
}

static int
on_nftw(const char *path, const struct stat *st, int type, struct FTW *place)
{
	(void)st, (void)type;
	walk_step(path, place->base);
	return 0;
}

static int
on_nftw64(const char *path, const struct stat64 *st, int type, struct FTW *place)
{
	(void)st, (void)type;
	walk_step(path, place->base);
	return 0;
}

/* 16 GIDs and their directory. */
static void
walk_row(const char *function, int rc)
{
	row(function, rc == 0 && walked == 17 && walked_wrong == 0);
	walked = walked_wrong = 0;
}

static int
fts_walk(const char *path, int options)
{
	char *const roots[] = {(char *)path, NULL};
	FTS *fts = fts_open(roots, options, NULL);
	FTSENT *entry;

	while (fts != NULL && (entry = fts_read(fts)) != NULL) {
		if (entry->fts_info == FTS_DP)
			continue;
		walk_step(entry->fts_path, -1);
		walked_wrong += entry->fts_pathlen != strlen(entry->fts_path);
		/* After it the entry's path ends in a slash. */
		if (entry->fts_info == FTS_D && fts_children(fts, FTS_NAMEONLY) == NULL)
			walked_wrong++;
	}
	return fts != NULL ? fts_close(fts) : -1;
}

static int
glob_is(const char *path)
{
	char pattern[PATH_MAX + 16], want[PATH_MAX + 16];
	glob_t found;
	glob64_t found64;
	int good;

	snprintf(pattern, sizeof(pattern), "%s/1[0-9]*", path);
	snprintf(want, sizeof(want), "%s/15", path);
	good = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 6 &&
	       strcmp(found.gl_pathv[5], want) == 0;
	globfree(&found);
	good &= glob64(pattern, 0, NULL, &found64) == 0 && found64.gl_pathc == 6 &&
		strcmp(found64.gl_pathv[5], want) == 0;
	globfree64(&found64);
	return good;
}

static void
directories(int dirfd, const char *path)
{
	struct dirent **list;
	struct dirent64 **list64;
	struct statfs fs;
	struct statvfs vfs;
	int fd;

	row("scandirat", scandirat(dirfd, path, &list, NULL, alphasort) == 18);
	fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY);
	row("fdopendir", directory_is(fd >= 0 ? fdopendir(fd) : NULL));
	if (dirfd != AT_FDCWD)
		return;
	row("opendir", directory_is(opendir(path)));
	row("readdir64", directory64_is(opendir(path)));
	row("scandir", scandir(path, &list, NULL, alphasort) == 18);
	row("scandir64", scandir64(path, &list64, NULL, alphasort64) == 18);
	row("statfs", statfs(path, &fs) == 0);
	row("statvfs", statvfs(path, &vfs) == 0);
	row("glob", glob_is(path));
	snprintf(walk_root, sizeof(walk_root), "%s", path);
	walk_row("ftw", ftw(path, on_ftw, 8));
	walk_row("ftw64", ftw64(path, on_ftw64, 8));
	walk_row("nftw", nftw(path, on_nftw, 8, FTW_PHYS));
	walk_row("nftw64", nftw64(path, on_nftw64, 8, 0));
	walk_row("fts", fts_walk(path, FTS_PHYSICAL));
	walk_row("fts-nochdir", fts_walk(path, FTS_LOGICAL | FTS_NOCHDIR));
}

/* ---- Functions with a path as result: path of the link in the class ---- */

static void
results(int dirfd, const char *path)
{
	static const char want[] = "/infiniband/";
	char text[PATH_MAX] = "", cwd[PATH_MAX];
	char *made;
	struct stat st = {.st_mode = 0};
	int here = open(".", O_RDONLY | O_DIRECTORY), there;

	row("readlinkat", readlinkat(dirfd, path, text, sizeof(text) - 1) > 0 &&
				  strncmp(text, "../../devices/", 14) == 0);
	row("fstatat-nofollow", fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
					S_ISLNK(st.st_mode));
	if (dirfd != AT_FDCWD) {
		close(here);
		return;
	}
	snprintf(text, sizeof(text), "%s/", path);
	row("lstat-slash", lstat(text, &st) == 0 && S_ISDIR(st.st_mode));
	snprintf(text, sizeof(text), "%s/.", path);
	row("lstat-dot", lstat(text, &st) == 0 && S_ISDIR(st.st_mode));
	memset(text, 0, sizeof(text));
	row("readlink", readlink(path, text, sizeof(text) - 1) > 0 &&
				strncmp(text, "../../devices/", 14) == 0);
	row("realpath", realpath(path, text) != NULL &&
				strncmp(text, "/sys/devices/", 13) == 0 &&
				strstr(text, want));
	row("__realpath_chk",
		__realpath_chk(path, cwd, sizeof(cwd)) != NULL && strcmp(cwd, text) == 0);
	row("__readlink_chk", __readlink_chk(path, cwd, 6, sizeof(cwd)) == 6 &&
				      strncmp(cwd, "../../", 6) == 0);
	row("__readlinkat_chk",
		__readlinkat_chk(AT_FDCWD, path, cwd, 6, sizeof(cwd)) == 6 &&
			strncmp(cwd, "../../", 6) == 0);
	made = canonicalize_file_name(path);
	row("canonicalize_file_name", made != NULL && strcmp(made, text) == 0);
	free(made);
	row("chdir", chdir(path) == 0);
	row("getcwd", getcwd(cwd, sizeof(cwd)) != NULL && strcmp(cwd, text) == 0);
	row("__getcwd_chk", __getcwd_chk(cwd, sizeof(cwd), sizeof(cwd)) != NULL &&
				    strcmp(cwd, text) == 0);
	made = get_current_dir_name();
	row("get_current_dir_name", made != NULL && strncmp(made, "/sys/", 5) == 0);
	free(made);
	there = open("ports", O_RDONLY | O_DIRECTORY);
	row("fchdir", there >= 0 && fchdir(there) == 0 && access("1/state", R_OK) == 0);
	(void)!fchdir(here);
	close(there);
	close(here);
}

static void
all(int dirfd, const char *prefix_ports, const char *prefix_class, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%sstate", prefix_ports);
	opens(dirfd, path);
	stats(dirfd, path);
	snprintf(path, sizeof(path), "%sgids", prefix_ports);
	directories(dirfd, path);
	if (prefix_class == NULL)
		return;
	snprintf(path, sizeof(path), "%s%s", prefix_class, name);
	results(dirfd, path);
}

int
main(int argc, char **argv)
{
	char path[PATH_MAX];
	int dir;

	if (argc != 2)
		return 2;
	snprintf(device, sizeof(device), CLASS "%s", argv[1]);
	snprintf(ports, sizeof(ports), "%s/ports/1/", device);
	way = "absolute";
	all(AT_FDCWD, ports, CLASS, argv[1]);
	/* By the link of the class, that of the PCI device, and back. */
	way = "link";
	snprintf(path, sizeof(path), "%s/device/infiniband/%s/ports/1/", device, argv[1]);
	all(AT_FDCWD, path, NULL, argv[1]);
	way = "chdir";
	row("chdir-ports", chdir(ports) == 0);
	all(AT_FDCWD, "", NULL, argv[1]);
	row("chdir-class", chdir(CLASS) == 0);
	results(AT_FDCWD, argv[1]);
	row("chdir-root", chdir("/") == 0);
	way = "descriptor";
	dir = open(ports, O_RDONLY | O_DIRECTORY);
	row("open-ports", dir >= 0);
	all(dir, "", NULL, argv[1]);
	close(dir);
	dir = open(CLASS, O_RDONLY | O_DIRECTORY);
	row("open-class", dir >= 0);
	results(dir, argv[1]);
	close(dir);
	return 0;
}
