/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <unistd.h>

#include <common/beside.h>

const char *
path_beside_self(const char *relative, const char *installed, char *buf, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", buf, size - 1);
	char *slash;

	if (len <= 0)
		return installed;
	buf[len] = '\0';
	slash = strrchr(buf, '/');
	if (slash == NULL || (size_t)(slash - buf) + strlen(relative) + 2 > size)
		return installed;
	strcpy(slash + 1, relative);
	return access(buf, F_OK) == 0 ? buf : installed;
}
