/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcap.h"

#define MAGIC_US 0xA1B2C3D4u
#define MAGIC_NS 0xA1B23C4Du
#define FILE_HDR_LEN 24
#define RECORD_HDR_LEN 16
#define LINKTYPE_OFF 20
#define LINKTYPE_ETHERNET 1

struct format {
	bool swapped;
	uint32_t ns_per_unit;
};

static uint32_t
word_get(const struct format *format, const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return format->swapped ? __builtin_bswap32(word) : word;
}

/* Sets *bytes to NULL for an empty file. */
static int
bytes_load(const char *path, uint8_t **bytes, size_t *len)
{
	FILE *stream = fopen(path, "rb");
	uint8_t *all = NULL;
	size_t used = 0, size = 0;

	if (stream == NULL)
		return -errno;
	do {
		uint8_t *more = realloc(all, size += 65536);

		if (more == NULL) {
			free(all);
			fclose(stream);
			return -ENOMEM;
		}
		all = more;
		used += fread(all + used, 1, size - used, stream);
	} while (used == size);
	if (ferror(stream)) {
		free(all);
		fclose(stream);
		return -EIO;
	}
	fclose(stream);
	*bytes = all;
	*len = used;
	return 0;
}

static int
format_find(struct format *format, const uint8_t *bytes, size_t len)
{
	static const struct format known = {.swapped = false};
	uint32_t magic;

	if (len < FILE_HDR_LEN)
		return -EINVAL;
	magic = word_get(&known, bytes);
	format->swapped = magic == __builtin_bswap32(MAGIC_US) ||
			  magic == __builtin_bswap32(MAGIC_NS);
	magic = word_get(format, bytes);
	if (magic != MAGIC_US && magic != MAGIC_NS)
		return -EINVAL;
	format->ns_per_unit = magic == MAGIC_US ? 1000 : 1;
	return word_get(format, bytes + LINKTYPE_OFF) == LINKTYPE_ETHERNET ? 0 : -EINVAL;
}

/* Counts the frames and, unless `frames` is NULL, fills the array. */
static int
frames_walk(const struct format *format, const uint8_t *bytes, size_t len,
	struct pcap_frame *frames, size_t *count)
{
	size_t n = 0;

	for (size_t off = FILE_HDR_LEN; off < len; n++) {
		const uint8_t *record = bytes + off;
		uint32_t frame_len;

		if (len - off < RECORD_HDR_LEN)
			return -EINVAL;
		off += RECORD_HDR_LEN;
		frame_len = word_get(format, record + 8);
		if (len - off < frame_len)
			return -EINVAL;
		off += frame_len;
		if (frames == NULL)
			continue;
		frames[n] = (struct pcap_frame){
			.data = record + RECORD_HDR_LEN,
			.len = frame_len,
			.wire_len = word_get(format, record + 12),
			.time_ns = word_get(format, record) * UINT64_C(1000000000) +
				   (uint64_t)word_get(format, record + 4) *
					   format->ns_per_unit,
		};
	}
	*count = n;
	return 0;
}

int
pcap_file_load(struct pcap_file *file, const char *path)
{
	struct pcap_frame *frames;
	struct format format;
	uint8_t *bytes = NULL;
	size_t len = 0, count = 0;
	int err;

	err = bytes_load(path, &bytes, &len);
	if (err)
		return err;
	err = format_find(&format, bytes, len);
	if (err == 0)
		err = frames_walk(&format, bytes, len, NULL, &count);
	if (err) {
		free(bytes);
		return err;
	}
	/* One more than needed, so that an empty capture is not a failed allocation. */
	frames = calloc(count + 1, sizeof(*frames));
	if (frames == NULL) {
		free(bytes);
		return -ENOMEM;
	}
	frames_walk(&format, bytes, len, frames, &count);
	*file = (struct pcap_file){.bytes = bytes, .frames = frames, .count = count};
	return 0;
}

void
pcap_file_unload(struct pcap_file *file)
{
	free(file->frames);
	free(file->bytes);
	*file = (struct pcap_file){0};
}
