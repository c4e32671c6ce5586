/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of libibverbs without which librdmacm is not loaded, or uses no device. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "fake.h"

/* Not called by the tests. */
#define COPY(name)                                                                       \
	void name(void *dst, void *src);                                                 \
	void name(void *dst, void *src)                                                  \
	{                                                                                \
		(void)dst;                                                               \
		(void)src;                                                               \
	}

COPY(ibv_copy_ah_attr_from_kern)
COPY(ibv_copy_path_rec_from_kern)
COPY(ibv_copy_qp_attr_from_kern)

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

const char *
ibv_get_sysfs_path(void)
{
	return "/sys";
}

int
ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	(void)dir;
	(void)file;
	(void)buf;
	(void)size;
	errno = ENOENT;
	return -1;
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	memset(attr, 0, sizeof(*attr));
	return 0;
}
