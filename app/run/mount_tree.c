/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rocade/rocade.h>
#include <rocade/status.h>

#include <common/options.h>

#include "mount_tree.h"

#define SYSFS_MOUNTS 8

static int root_fd = -1; /* of "/" in the namespace */
static bool is_user;     /* in a user namespace, in which no device node can be made */
static char of_sysfs[SYSFS_MOUNTS][PATH_MAX]; /* covered directories of /sys */
static unsigned of_sysfs_count;

static bool
file_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);
	bool good = fd >= 0 && write(fd, text, len) == (ssize_t)len;

	if (fd >= 0)
		close(fd);
	return good;
}

/* A user may make a mount namespace in a user namespace. The program keeps its user, group and
 * supplementary groups. */
static bool
user_namespace_enter(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char users[64], groups[64];

	snprintf(users, sizeof(users), "%u %u 1", uid, uid);
	snprintf(groups, sizeof(groups), "%u %u 1", gid, gid);
	is_user = true;
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       file_put("/proc/self/setgroups", "deny") &&
	       file_put("/proc/self/uid_map", users) &&
	       file_put("/proc/self/gid_map", groups);
}

/* In the user namespace all other users have the same number. The daemon was accepted by its real one
 * before. */
static bool
daemon_uid_tell(const struct conf *s)
{
	char number[24] = "", device[ROCADE_NAME_MAX];
	FILE *file;

	if (rocade_device_name(s->socket, device) == 0)
		return true;
	file = fopen("/proc/sys/kernel/overflowuid", "re");
	if (file == NULL || fgets(number, sizeof(number), file) == NULL)
		snprintf(number, sizeof(number), "65534");
	if (file != NULL)
		fclose(file);
	number[strcspn(number, "\n")] = '\0';
	setenv("ROCADE_DAEMON_UID", number, 1);
	return rocade_device_name(s->socket, device) == 0;
}

/* Puts one entry of the directory below the new one into that: a link again, and else a bind mount. One that
 * the user may not reach is left out. */
static bool
entry_keep(int below, const char *directory, const char *name)
{
	char from[PATH_MAX], to[PATH_MAX], target[PATH_MAX];
	struct stat st;
	ssize_t len;
	int fd;

	if (fstatat(below, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT || errno == EACCES;
	if (snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", below, name) >=
			(int)sizeof(from) ||
		snprintf(to, sizeof(to), "%s/%s", directory, name) >= (int)sizeof(to))
		return false;
	if (S_ISLNK(st.st_mode)) {
		len = readlinkat(below, name, target, sizeof(target) - 1);
		if (len < 0)
			return false;
		target[len] = '\0';
		return symlink(target, to) == 0;
	}
	/* The kernel looks for pts beside the node that is opened, and finds none beside a bind mount
	 * (Documentation/filesystems/devpts). */
	if (S_ISCHR(st.st_mode) && strcmp(name, "ptmx") == 0)
		return symlink("pts/ptmx", to) == 0;
	if (S_ISDIR(st.st_mode)) {
		if (mkdir(to, 0755) != 0)
			return false;
	} else {
		fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			return false;
		close(fd);
	}
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0)
		return true;
	return errno == EACCES && (S_ISDIR(st.st_mode) ? rmdir(to) : unlink(to)) == 0;
}

static unsigned long
mount_flags(void)
{
	return MS_NOSUID | MS_NOEXEC | (is_user ? MS_NODEV : 0);
}

/* Mounts a directory of memory over this one, with the same entries. */
static bool
directory_cover(const char *directory)
{
	int below = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	DIR *list = opendir(directory);
	bool good = below >= 0 && list != NULL &&
		    mount("rocade", directory, "tmpfs", mount_flags(), "mode=755") == 0;
	struct dirent *entry;

	while (good && (entry = readdir(list)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			good = entry_keep(below, directory, entry->d_name);
	}
	if (list != NULL)
		closedir(list);
	if (below >= 0)
		close(below);
	return good;
}

/* Where the machine's pseudo-terminals are opened by /dev/ptmx only, the namespace has pseudo-terminals of its
 * own. */
static void
terminals_keep(void)
{
	struct stat st;

	if (stat("/dev/pts/ptmx", &st) == 0 && (st.st_mode & 0666) != 0666)
		(void)mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
			"newinstance,ptmxmode=0666,mode=0620");
}

/* Notes a covered directory of /sys. Returns false if there are too many. */
static bool
sysfs_note(const char *directory)
{
	if (strncmp(directory, "/sys/", 5) != 0)
		return true;
	if (of_sysfs_count == SYSFS_MOUNTS) {
		errno = ENOSPC;
		return false;
	}
	strcpy(of_sysfs[of_sysfs_count++], directory);
	return true;
}

/* Covers each directory in which one of the tree's paths has to be made: neither the kernel's own files
 * nor those of the machine change. *covered: the last one. */
static bool
directories_cover(const char **covered)
{
	static char directory[PATH_MAX], before[PATH_MAX];
	const char *root;

	*covered = directory;
	for (unsigned i = 0; (root = rocade_sysfs_root(i)) != NULL; i++) {
		snprintf(directory, sizeof(directory), "%s", root);
		if (access(directory, F_OK) != 0)
			*strrchr(directory, '/') = '\0';
		/* Two roots may be in one directory; a path that is there now is in it. */
		if (strcmp(directory, before) == 0)
			continue;
		if (!sysfs_note(directory) || !directory_cover(directory))
			return false;
		if (strcmp(directory, "/dev") == 0)
			terminals_keep();
		strcpy(before, directory);
	}
	return true;
}

static int
failed(const char *what, const char *path)
{
	fprintf(stderr, PROGRAM ": --mount: cannot %s%s: %s\n", what, path,
		strerror(errno));
	return EXIT_RUN;
}

/* This process may be a program of another rocade-run: its calls mean the kernel's files. */
static int
paths_make(const struct conf *s)
{
	const char *covered, *off = getenv("ROCADE_OFF");
	char *before = off != NULL ? strdup(off) : NULL;
	int rc = 0;

	setenv("ROCADE_OFF", "sysfs", 1);
	if (!directories_cover(&covered))
		rc = failed("mount over ", covered);
	else if (!daemon_uid_tell(s))
		rc = failed("connect to the daemon in the namespace", "");
	root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (rc == 0 && rocade_sysfs_make(s->socket, root_fd) != 0) {
		fprintf(stderr, PROGRAM ": --mount: %s\n", rocade_error());
		rc = EXIT_RUN;
	}
	if (before != NULL)
		setenv("ROCADE_OFF", before, 1);
	else
		unsetenv("ROCADE_OFF");
	free(before);
	return rc;
}

int
mount_enter(const struct conf *s)
{
	if (unshare(CLONE_NEWNS) != 0 && (errno != EPERM || !user_namespace_enter())) {
		fprintf(stderr,
			PROGRAM
			": --mount needs root, or a kernel and a container that allow "
			"user namespaces (unshare: %s); without --mount, programs that "
			"are linked dynamically find the device's files, too\n",
			strerror(errno));
		return EXIT_RUN;
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
		return failed("make the mounts private", "");
	return paths_make(s);
}

int
mount_program_enter(void)
{
	if (root_fd < 0)
		return 0;
	if (unshare(CLONE_NEWNS) != 0) {
		fprintf(stderr,
			PROGRAM ": --mount: the files are not read-only for the program: "
				"a second mount namespace is refused: %s\n",
			strerror(errno));
		return 0;
	}
	for (unsigned i = 0; i < of_sysfs_count; i++) {
		if (mount(NULL, of_sysfs[i], NULL,
			    MS_REMOUNT | MS_BIND | MS_RDONLY | mount_flags(), NULL) != 0)
			return failed("make read-only: ", of_sysfs[i]);
	}
	return 0;
}

void
mount_refresh(const struct conf *s)
{
	if (root_fd >= 0)
		(void)rocade_sysfs_refresh(s->socket, root_fd);
}
