/* SPDX-License-Identifier: BSD-3-Clause */
/* The command that answers about nodes in /dev, by the files that the program sees. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "preload/nldev_query.h"
#include "preload/paths.h"
#include "preload/preload_channel.h"

/* Reads a file that the program sees. Returns false if it cannot be read. */
static WITH_BUFFER bool
seen_read(const char *path, char *text, size_t size)
{
	struct path_buf buf;
	int fd = open(path_serve(path, &buf), O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, text, size - 1) : -1;

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	return len > 0;
}

static int
node_give(struct nldev_query *q, const char *name, unsigned major_number,
	unsigned minor_number, const char *abi)
{
	uint64_t number = (uint64_t)major_number << 8 | (minor_number & 0xff) |
			  (uint64_t)(minor_number & ~0xffu) << 12;

	nldev_begin(q, 0);
	nl_put_u64(&q->out, RDMA_NLDEV_ATTR_CHARDEV, number);
	nl_put_u64(&q->out, RDMA_NLDEV_ATTR_CHARDEV_ABI, strtoull(abi, NULL, 10));
	nl_put_text(&q->out, RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
	return nldev_give(q);
}

/* Stores the first entry of a directory that the program sees. */
static WITH_BUFFER bool
first_entry_read(const char *path, char *name, size_t size)
{
	struct path_buf buf;
	struct dirent *entry;
	DIR *dir = opendir(path_serve(path, &buf));
	bool found = false;

	while (dir != NULL && !found && (entry = readdir(dir)) != NULL)
		found = entry->d_name[0] != '.' &&
			snprintf(name, size, "%s", entry->d_name) < (int)size;
	if (dir != NULL)
		closedir(dir);
	return found;
}

static int
uverbs_get(struct nldev_query *q)
{
	char folder[160], path[256], name[32], number[32], abi[32];
	unsigned major_number, minor_number;
	struct device_facts facts;
	int rc = nldev_device_find(q, false, &facts);

	if (rc != 0)
		return rc;
	snprintf(folder, sizeof(folder),
		"/sys/class/infiniband/%s/device/infiniband_verbs", facts.name);
	if (!first_entry_read(folder, name, sizeof(name)))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%s/dev", folder, name);
	if (!seen_read(path, number, sizeof(number)) ||
		sscanf(number, "%u:%u", &major_number, &minor_number) != 2)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%s/abi_version", folder, name);
	return seen_read(path, abi, sizeof(abi))
		       ? node_give(q, name, major_number, minor_number, abi)
		       : -ENOENT;
}

/* librdmacm compares the number with that of the file that it opens. */
static int
cm_node_get(struct nldev_query *q)
{
	dev_t number = channel_device();
	char abi[32];

	return seen_read("/sys/class/misc/rdma_cm/abi_version", abi, sizeof(abi))
		       ? node_give(q, "rdma_cm", major(number), minor(number), abi)
		       : -ENOENT;
}

int
nldev_chardev_get(struct nldev_query *q)
{
	if (q->chardev[0] == '\0' || (q->port.given && q->port.value != NLDEV_PORT))
		return -EINVAL;
	if (strcmp(q->chardev, "uverbs") == 0 && q->device.given)
		return uverbs_get(q);
	if (strcmp(q->chardev, "rdma_cm") == 0 && !q->device.given)
		return cm_node_get(q);
	return -ENOENT;
}
