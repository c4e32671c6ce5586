/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a classic pcap file (either byte order, micro- or nanoseconds, Ethernet) whole.
 */
#ifndef ROCADE_TEST_PCAP_H
#define ROCADE_TEST_PCAP_H

#include <stddef.h>
#include <stdint.h>

struct pcap_frame {
	const uint8_t *data;
	uint32_t
		len; /* bytes at data; less than wire_len in a capture that cuts frames */
	uint32_t wire_len;
	uint64_t time_ns;
};

struct pcap_file {
	uint8_t *bytes; /* what the frames point into */
	struct pcap_frame *frames;
	size_t count;
};

/* 0, or -errno: of opening and reading; -EINVAL for a file that is not such a capture or
 * ends inside a record. */
int
pcap_file_load(struct pcap_file *file, const char *path);
void
pcap_file_unload(struct pcap_file *file);

#endif
