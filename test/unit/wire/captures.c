/* SPDX-License-Identifier: BSD-3-Clause */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "captures.h"
#include "frame.h"
#include "pcap.h"

struct captured captured[CAPTURED_FRAMES];
size_t captured_count;

static struct pcap_file files[256];
static size_t file_count;

static int
frames_add(const char *path, const struct pcap_file *file)
{
	const char *name = strrchr(path, '/') + 1;

	if (captured_count + file->count > CAPTURED_FRAMES)
		return -1;
	for (size_t i = 0; i < file->count; i++) {
		struct captured *f = &captured[captured_count++];

		snprintf(f->capture, sizeof(f->capture), "%.*s", (int)strlen(name) - 5,
			name);
		f->number = (unsigned)i + 1;
		f->data = file->frames[i].data;
		f->len = file->frames[i].len;
		f->ip_off = be16_at(f->data + 12) == 0x8100 ? 18 : 14;
		f->tci = f->ip_off == 18 ? (uint16_t)be16_at(f->data + 14) : 0;
		f->vlan = f->tci & 0xFFF;
	}
	return 0;
}

int
captures_load(const char *folder)
{
	char pattern[PATH_MAX];
	glob_t paths;
	int err;

	snprintf(pattern, sizeof(pattern), "%s/*.pcap", folder);
	err = glob(pattern, 0, NULL, &paths);
	if (err != 0) {
		fprintf(stderr, "%s: no captures\n", folder);
		return -1;
	}
	for (size_t i = 0; i < paths.gl_pathc && err == 0; i++) {
		const char *path = paths.gl_pathv[i];
		struct pcap_file *file = &files[file_count];

		err = file_count == 256 ? -1 : pcap_file_load(file, path);
		if (err == 0) {
			file_count++;
			err = frames_add(path, file);
		}
		if (err != 0)
			fprintf(stderr, "%s: cannot be read, or one too many\n", path);
	}
	globfree(&paths);
	return err != 0 ? -1 : 0;
}

void
captures_unload(void)
{
	while (file_count > 0)
		pcap_file_unload(&files[--file_count]);
	captured_count = 0;
}

int
captures_setup(void **state)
{
	return captures_load(CAPTURES);
}

int
captures_teardown(void **state)
{
	captures_unload();
	return 0;
}
