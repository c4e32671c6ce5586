/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that embeds Rocade finds its open ports in sysfs, and those only. */
#include <dirent.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"
#include "rdmacm_fixture.h"

#define CLASS "/sys/class/infiniband/"

/* Returns how many entries are there, beside those of the kernel. */
static unsigned
entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned count = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		count += strncmp(entry->d_name, "rocade", 6) == 0 ||
			 strncmp(entry->d_name, "uverbs", 6) == 0;
	if (dir != NULL)
		closedir(dir);
	return count;
}

static const char *
name_of(unsigned port)
{
	return ibv_get_device_name(rocade_port_device(ports[port]));
}

static void
expect_text(const char *device, const char *file, const char *want)
{
	char path[256], text[128] = "";
	FILE *stream;

	snprintf(path, sizeof(path), CLASS "%s/%s", device, file);
	stream = fopen(path, "r");
	assert_non_null(stream);
	assert_non_null(fgets(text, sizeof(text), stream));
	fclose(stream);
	assert_string_equal(text, want);
}

static void
expect_guid(unsigned port)
{
	uint64_t guid = be64toh(ibv_get_device_guid(rocade_port_device(ports[port])));
	char text[64];

	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48),
		(unsigned)(guid >> 32) & 0xFFFF, (unsigned)(guid >> 16) & 0xFFFF,
		(unsigned)guid & 0xFFFF);
	expect_text(name_of(port), "node_guid", text);
}

TEST(open_ports_have_files)
{
	char uevent[2][64], path[256];

	ports_open();
	assert_int_equal(entries(CLASS), 2);
	assert_int_equal(entries("/sys/class/infiniband_verbs"), 2);
	assert_int_equal(entries("/dev/infiniband"), 4);
	expect_text(name_of(0), "ports/1/gids/0",
		"0000:0000:0000:0000:0000:ffff:c000:0201\n");
	expect_text(name_of(1), "ports/1/gids/0",
		"0000:0000:0000:0000:0000:ffff:c000:0202\n");
	for (unsigned i = 0; i < 2; i++) {
		ssize_t len;

		snprintf(path, sizeof(path), CLASS "%s/device", name_of(i));
		len = readlink(path, uevent[i], sizeof(uevent[i]) - 1);
		assert_true(len > 0);
		uevent[i][len] = '\0';
	}
	/* Each is a device of its own. */
	assert_string_not_equal(uevent[0], uevent[1]);
	ports_close();
}

TEST(closed_ports_have_none)
{
	char path[256];

	/* More often than a bus has slots. */
	for (unsigned i = 0; i < 40; i++) {
		ports_open();
		assert_int_equal(entries(CLASS), 2);
		snprintf(path, sizeof(path), CLASS "%s/ports/1/state", name_of(1));
		assert_int_equal(access(path, R_OK), 0);
		expect_guid(1);
		port_close(1);
		assert_int_equal(access(path, R_OK), -1);
		assert_int_equal(entries(CLASS), 1);
		assert_int_equal(entries("/sys/class/infiniband_verbs"), 1);
		assert_int_equal(entries("/dev/infiniband"), 2);
		ports_close();
	}
	assert_int_equal(entries(CLASS), 0);
}
