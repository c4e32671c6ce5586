/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "verbs/sysfs_texts.h"
#include "verbs/sysfs_tree.h"

#define SLOTS 32         /* of a PCI bus */
#define UVERBS_MAX 1024  /* numbers that are tried */
#define UVERBS_MINOR 192 /* IB_UVERBS_BASE_MINOR of the kernel */
#define CLASS "sys/class/infiniband/"
/* Where a new text is written: in the file system of the files, but in no directory of a device. */
#define NEW_FILE "sys/devices/pciffff:ff/.new"

enum row_kind { ROW_TEXT, ROW_MADE, ROW_LIVE, ROW_LINK, ROW_OTHERS };

static const struct row {
	enum row_kind kind;
	const char *path;
	const char *text; /* or the target of a link */
	sysfs_text_fn *function;
} rows[] = {
#define SYSFS_TEXT(path, text) {ROW_TEXT, path, text, NULL},
#define SYSFS_MADE(path, function) {ROW_MADE, path, NULL, function},
#define SYSFS_LIVE(path, function) {ROW_LIVE, path, NULL, function},
#define SYSFS_LINK(path, target) {ROW_LINK, path, target, NULL},
#define SYSFS_OTHERS(path) {ROW_OTHERS, path, NULL, NULL},
#include "verbs/sysfs.def"
};

/* The values of @N, @S, @U and @D; NULL: of no device. */
struct names {
	const char *device;
	unsigned slot, uverbs;
};

static void
expand(const char *from, const struct names *names, unsigned index, char *to, size_t size)
{
	size_t len = 0;

	for (; *from != '\0' && len + 1 < size; from++) {
		char one[64] = {*from, '\0'};

		if (*from == '#') {
			snprintf(one, sizeof(one), "%u", index);
		} else if (*from == '@') {
			from++;
			if (*from == 'N')
				snprintf(one, sizeof(one), "%s", names->device);
			else
				snprintf(one, sizeof(one), *from == 'S' ? "%02x" : "%u",
					*from == 'S'   ? names->slot
					: *from == 'U' ? names->uverbs
						       : UVERBS_MINOR + names->uverbs);
		}
		len += (size_t)snprintf(to + len, size - len, "%s", one);
	}
	to[RTE_MIN(len, size - 1)] = '\0';
}

/* Makes the directories that lead to the path. */
static int
parents_make(int root, const char *path)
{
	char part[PATH_MAX];
	const char *last = strrchr(path, '/');

	/* The row before has made them, mostly. */
	snprintf(part, sizeof(part), "%.*s", last != NULL ? (int)(last - path) : 0, path);
	if (last == NULL || mkdirat(root, part, 0755) == 0 || errno == EEXIST)
		return 0;
	for (const char *slash = strchr(path, '/'); slash != NULL;
		slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (mkdirat(root, part, 0755) != 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* A file that is there is the kernel's, of all devices. */
static int
file_write(int root, const char *path, const char *text)
{
	size_t len = strlen(text);
	int fd, rc = 0;

	if (!file_length_allowed(len))
		return -EFBIG;
	fd = openat(
		root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	if (write(fd, text, len) != (ssize_t)len)
		rc = -EIO;
	(void)fchmod(fd, 0444); /* whatever the umask is */
	close(fd);
	return rc;
}

/* Another device or the kernel may have the name: the first one stays. */
static int
link_make(int root, const char *path, const char *target)
{
	return symlinkat(target, root, path) == 0 || errno == EEXIST ? 0 : -errno;
}

/* Links to what the kernel has, so that ".." and lists lead to it. */
static int
others_make(int root, const char *path)
{
	char target[PATH_MAX];
	struct dirent *entry;
	DIR *dir = opendir(path);
	int rc = 0;

	if (mkdirat(root, path + 1, 0755) != 0 && errno != EEXIST)
		rc = -errno;
	if (dir == NULL)
		return rc;
	while (rc == 0 && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' ||
			snprintf(target, sizeof(target), "%s/%s", path, entry->d_name) >=
				(int)sizeof(target))
			continue;
		rc = link_make(root, target + 1, target);
	}
	closedir(dir);
	return rc;
}

static int
row_make(int root, const struct row *row, const struct names *names, unsigned index,
	const struct device_facts *facts)
{
	char path[PATH_MAX], text[SYSFS_TEXT_MAX];
	int rc;

	expand(row->path + 1, names, index, path, sizeof(path));
	rc = parents_make(root, path);
	if (rc != 0)
		return rc;
	if (row->function != NULL)
		row->function(facts, index, text);
	else if (row->text != NULL)
		expand(row->text, names, index, text, sizeof(text));
	switch (row->kind) {
	case ROW_LINK:
		return link_make(root, path, text);
	case ROW_OTHERS:
		return others_make(root, row->path);
	default:
		return file_write(root, path, text);
	}
}

/* names->device NULL: the rows of no device. */
static int
rows_make(int root, const struct names *names, const struct device_facts *facts)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < RTE_DIM(rows); i++) {
		const char *path = rows[i].path;
		unsigned count = strchr(path, '#') != NULL ? DEV_GIDS : 1;

		if ((strchr(path, '@') != NULL) != (names->device != NULL))
			continue;
		for (unsigned k = 0; rc == 0 && k < count; k++)
			rc = row_make(root, &rows[i], names, k, facts);
	}
	return rc;
}

int
sysfs_tree_make(int root)
{
	const struct names none = {.device = NULL};

	return rows_make(root, &none, NULL);
}

/* Returns whether the tree, or the kernel, has the path. */
static bool
taken(int root, const char *path)
{
	struct stat st;

	return fstatat(root, path + 1, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	       fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool
names_choose(int root, const char *device, struct names *names)
{
	char path[PATH_MAX];

	*names = (struct names){.device = device};
	for (;; names->slot++) {
		expand("/sys/devices/pciffff:ff/ffff:ff:@S.0", names, 0, path,
			sizeof(path));
		if (names->slot == SLOTS || !taken(root, path))
			break;
	}
	for (;; names->uverbs++) {
		expand("/sys/class/infiniband_verbs/uverbs@U", names, 0, path,
			sizeof(path));
		if (names->uverbs == UVERBS_MAX || !taken(root, path))
			break;
	}
	return names->slot < SLOTS && names->uverbs < UVERBS_MAX;
}

int
sysfs_device_add(int root, const struct device_facts *facts)
{
	struct names names;

	return names_choose(root, facts->name, &names) ? rows_make(root, &names, facts)
						       : -ENOSPC;
}

static void
link_remove(int root, const char *folder, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path))
		(void)unlinkat(root, path, 0);
}

/* Removes the links to the uverbs device of a PCI function. */
static void
uverbs_remove(int root, const char *function)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;
	int fd;

	if (snprintf(path, sizeof(path), "%s/infiniband_verbs", function) >=
		(int)sizeof(path))
		return;
	fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		link_remove(root, "sys/class/infiniband_verbs", entry->d_name);
		link_remove(root, "dev/infiniband", entry->d_name);
	}
	if (dir != NULL)
		closedir(dir);
}

void
sysfs_device_remove(int root, const char *name)
{
	char path[PATH_MAX], target[PATH_MAX], function[PATH_MAX], *end;
	ssize_t len;

	snprintf(path, sizeof(path), CLASS "%s", name);
	len = readlinkat(root, path, target, sizeof(target) - 1);
	if (len <= 0)
		return;
	target[len] = '\0';
	/* "../../devices/BUS/FUNCTION/infiniband/NAME" */
	end = strstr(target, "/infiniband/");
	if (end == NULL || strncmp(target, "../../", 6) != 0)
		return;
	*end = '\0';
	if (snprintf(function, sizeof(function), "sys/%s", target + 6) >=
		(int)sizeof(function))
		return;
	uverbs_remove(root, function);
	link_remove(root, "dev/infiniband", name);
	link_remove(root, "sys/class/infiniband", name);
	sysfs_tree_remove(root, function);
}

void
sysfs_devices_sweep(int root, bool (*is_used)(const char *name))
{
	int fd = openat(root, CLASS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] != '.' && !is_used(entry->d_name))
			sysfs_device_remove(root, entry->d_name);
	}
	if (dir != NULL)
		closedir(dir);
}

bool
sysfs_device_is_there(int root, const struct device_facts *facts)
{
	char path[PATH_MAX], text[SYSFS_TEXT_MAX], guid[SYSFS_TEXT_MAX];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), CLASS "%s/node_guid", facts->name);
	fd = openat(root, path, O_RDONLY | O_CLOEXEC);
	len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	guid_text(facts, 0, guid);
	return len == (ssize_t)strlen(guid) && memcmp(text, guid, (size_t)len) == 0;
}

void
sysfs_tree_remove(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) != 0 && errno == EISDIR)
			sysfs_tree_remove(fd, entry->d_name);
	}
	if (dir != NULL)
		closedir(dir);
	(void)unlinkat(folder, name, AT_REMOVEDIR);
}

/* The rest of a row's path behind the device's name. */
static const char *
row_rest(const struct row *row)
{
	return strstr(row->path, "/@N/") + strlen("/@N/");
}

/* Returns how many characters at the end of the path the rest of a row is, or 0. */
static size_t
rest_match(const char *path, size_t path_len, const char *rest, unsigned *index)
{
	size_t i = path_len, k = strlen(rest);
	unsigned unit = 1;

	for (*index = 0; k > 0; k--) {
		size_t digits = 0;

		if (rest[k - 1] != '#') {
			if (i == 0 || path[--i] != rest[k - 1])
				return 0;
			continue;
		}
		for (; i > 0 && path[i - 1] >= '0' && path[i - 1] <= '9' && digits < 3;
			i--, digits++, unit *= 10)
			*index += (unsigned)(path[i - 1] - '0') * unit;
		/* The kernel's names have no leading zeros. */
		if (digits == 0 || (digits > 1 && path[i] == '0') || *index >= DEV_GIDS)
			return 0;
	}
	return path_len - i;
}

bool
sysfs_live_find(const char *path, struct sysfs_live *live)
{
	size_t len = strlen(path);

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		size_t rest, end, begin;

		if (rows[i].kind != ROW_LIVE)
			continue;
		rest = rest_match(path, len, row_rest(&rows[i]), &live->index);
		if (rest == 0 || len < rest + 2 || path[len - rest - 1] != '/')
			continue;
		end = begin = len - rest - 1;
		while (begin > 0 && path[begin - 1] != '/')
			begin--;
		if (end == begin || end - begin >= sizeof(live->device))
			continue;
		live->row = i;
		snprintf(live->device, sizeof(live->device), "%.*s", (int)(end - begin),
			path + begin);
		return true;
	}
	return false;
}

bool
sysfs_live_name(const char *name)
{
	unsigned index;

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		const char *last = strrchr(rows[i].path, '/') + 1;

		if (rows[i].kind == ROW_LIVE &&
			rest_match(name, strlen(name), last, &index) == strlen(name) &&
			name[0] != '\0')
			return true;
	}
	return false;
}

int
sysfs_live_write(
	int root, const struct sysfs_live *live, const struct device_facts *facts)
{
	char path[PATH_MAX], rest[PATH_MAX], text[SYSFS_TEXT_MAX], made[64];
	uint64_t number;
	int rc;

	rows[live->row].function(facts, live->index, text);
	expand(row_rest(&rows[live->row]), NULL, live->index, rest, sizeof(rest));
	if (snprintf(path, sizeof(path), CLASS "%s/%s", facts->name, rest) >=
		(int)sizeof(path))
		return -ENAMETOOLONG;
	/* Processes of two PID namespaces may share the tree. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint64_t)gettid();
	snprintf(made, sizeof(made), NEW_FILE ".%016" PRIx64, number);
	rc = file_write(root, made, text);
	if (rc == 0 && renameat(root, made, root, path) != 0)
		rc = -errno;
	if (rc != 0)
		(void)unlinkat(root, made, 0);
	return rc;
}

bool
sysfs_live_counts(const struct sysfs_live *live)
{
	return strstr(rows[live->row].path, "counters/") != NULL;
}

int
sysfs_live_write_down(int root, const struct sysfs_live *live)
{
	struct device_facts facts = {.link_up = false};

	if (rows[live->row].function != state_text &&
		rows[live->row].function != phys_state_text)
		return 0;
	snprintf(facts.name, sizeof(facts.name), "%s", live->device);
	return sysfs_live_write(root, live, &facts);
}

void
sysfs_device_write_down(int root, const char *name)
{
	struct sysfs_live live = {.index = 0};

	snprintf(live.device, sizeof(live.device), "%s", name);
	for (; live.row < RTE_DIM(rows); live.row++)
		(void)sysfs_live_write_down(root, &live);
}

int
sysfs_device_refresh(int root, const struct device_facts *facts)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < RTE_DIM(rows); i++) {
		struct sysfs_live live = {.row = i};
		unsigned count = strchr(rows[i].path, '#') != NULL ? DEV_GIDS : 1;

		if (rows[i].kind != ROW_LIVE)
			continue;
		for (; rc == 0 && live.index < count; live.index++)
			rc = sysfs_live_write(root, &live, facts);
	}
	return rc;
}
