/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/paths.h"
#include "preload/served.h"

#define NODES "/dev/infiniband/"
#define CLASS "/sys/class/infiniband/"
#define CM_ABI "/sys/class/misc/rdma_cm/abi_version"
#define NAME_MAX_LEN 64 /* as IBV_SYSFS_NAME_MAX */
#define GID_MAX 16      /* size of the GID table of every Rocade device */

/* Paths below the directory of a device; '#' stands for a GID index. Other files are
 * missing, as for kernel devices without hardware. */
static const struct {
	const char *path;
	const char *text;
} files[] = {
	/* Without it UCX and NCCL take the GID for RoCE v1. */
	{"ports/1/gid_attrs/types/#", "RoCE v2\n"},
	{"ports/1/gid_attrs/ndevs/#", PATH_INTERFACE "\n"},
};

#define FILE_COUNT (sizeof(files) / sizeof(files[0]))

/* Returns whether the text is the decimal number of a GID index and nothing more. */
static bool
is_gid_index(const char *text)
{
	unsigned value = 0, digits = 0;

	if (text[0] == '0')
		return text[1] == '\0';
	for (; *text >= '0' && *text <= '9' && digits < 3; text++, digits++)
		value = value * 10 + (unsigned)(*text - '0');
	return digits != 0 && *text == '\0' && value < GID_MAX;
}

static const char *
text_find(const char *path)
{
	for (size_t i = 0; i < FILE_COUNT; i++) {
		size_t stem = strlen(files[i].path) - 1;

		if (strncmp(path, files[i].path, stem) == 0 && is_gid_index(path + stem))
			return files[i].text;
	}
	return NULL;
}

/* Returns whether one of the files is in this directory or below it. */
static bool
is_directory(const char *path)
{
	size_t len = strlen(path);

	while (len > 0 && path[len - 1] == '/')
		len--;
	for (size_t i = 0; i < FILE_COUNT; i++) {
		if (len == 0 || (strncmp(files[i].path, path, len) == 0 &&
					files[i].path[len] == '/'))
			return true;
	}
	return false;
}

/* Returns the rest behind a component of the path and the slashes that follow, or NULL. */
static const char *
path_after(const char *path, const char *component)
{
	size_t len = strlen(component);

	if (strncmp(path, component, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path + len + strspn(path + len, "/");
}

static bool
text_file_create(const char *text, struct path_served *out)
{
	size_t len = strlen(text);

	out->fd = memfd_create("rocade-sysfs", MFD_CLOEXEC);
	if (out->fd < 0)
		return false;
	if (write(out->fd, text, len) != (ssize_t)len) {
		path_done(out);
		return false;
	}
	/* Each open() of this path starts at offset 0. */
	snprintf(out->buf, sizeof(out->buf), "/proc/self/fd/%d", out->fd);
	out->path = out->buf;
	return true;
}

/* Returns the rest of the path after the prefix and the name of one of Rocade's devices, or
 * NULL. */
static const char *
path_below(const char *path, const char *prefix)
{
	size_t prefix_len = strlen(prefix), len;
	char name[NAME_MAX_LEN];

	if (strncmp(path, prefix, prefix_len) != 0)
		return NULL;
	path += prefix_len;
	len = strcspn(path, "/");
	if (len == 0 || len >= sizeof(name))
		return NULL;
	memcpy(name, path, len);
	name[len] = '\0';
	return served_by.device(name) ? path + len : NULL;
}

/* Looks for a path of RDMA-CM, which all devices share. */
static bool
cm_path_serve(const char *path, struct path_served *out)
{
	if (strcmp(path, NODES "rdma_cm") == 0) {
		out->path = "/dev/null";
		return served_by.device(NULL);
	}
	return strcmp(path, CM_ABI) == 0 && served_by.device(NULL) &&
	       text_file_create("4\n", out);
}

/* Below device/net programs find the interface, as the kernel has it. */
static bool
interface_serve(const char *rest, struct path_served *out)
{
	static const char top[] = "/sys/class/net";
	const char *below = path_after(rest, "device");
	int len;

	if (below == NULL)
		return false;
	out->path = "/sys/class";
	if (*below == '\0')
		return true;
	below = path_after(below, "net");
	if (below == NULL)
		return false;
	out->path = top;
	out->one_interface = *below == '\0';
	if (out->one_interface)
		return true;
	below = path_after(below, PATH_INTERFACE);
	if (below == NULL)
		return false;
	len = snprintf(out->buf, sizeof(out->buf), "%s/" PATH_INTERFACE "%s%s", top,
		*below != '\0' ? "/" : "", below);
	out->path = out->buf;
	return len < (int)sizeof(out->buf);
}

static bool
device_path_serve(const char *path, struct path_served *out)
{
	const char *rest = path_below(path, NODES), *text;

	if (rest != NULL) {
		out->path = "/dev/null";
		return *rest == '\0';
	}
	rest = path_below(path, CLASS);
	if (rest == NULL)
		return false;
	while (*rest == '/')
		rest++;
	text = text_find(rest);
	if (text != NULL)
		return text_file_create(text, out);
	if (interface_serve(rest, out))
		return true;
	out->path = "/sys/class";
	return is_directory(rest);
}

bool
path_serve(const char *path, struct path_served *out)
{
	int err = errno;
	bool served;

	/* The quick test for most paths. */
	if (path == NULL || path[0] != '/' ||
		(strstr(path, "/infiniband/") == NULL &&
			strstr(path, "/rdma_cm/") == NULL))
		return false;
	out->fd = -1;
	out->one_interface = false;
	served = cm_path_serve(path, out) || device_path_serve(path, out);
	errno = err;
	return served;
}

void
path_done(const struct path_served *served)
{
	int err = errno;

	if (served->fd >= 0)
		close(served->fd);
	errno = err;
}
