/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests' capture reader: which files it reads, and which it refuses. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "pcap.h"

TEST(truncated_and_foreign_files_are_refused)
{
	static const uint8_t header[24] = {0xA1, 0xB2, 0xC3, 0xD4, 0, 2, 0, 4, [23] = 1};
	static const uint8_t record[20] = {
		0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0, 60, 'a', 'b', 'c', 'd'};
	char path[] = "/tmp/rocade-pcap-XXXXXX";
	uint8_t bytes[sizeof(header) + sizeof(record)];
	int fd = mkstemp(path);
	struct pcap_file file;

	assert_true(fd >= 0);
	memcpy(bytes, header, sizeof(header));
	memcpy(bytes + sizeof(header), record, sizeof(record));
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		bool whole = len == sizeof(header) || len == sizeof(bytes);

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bytes, len, 0), len);
		assert_int_equal(pcap_file_load(&file, path), whole ? 0 : -EINVAL);
		if (whole)
			assert_int_equal(file.count, len == sizeof(bytes));
		if (len == sizeof(bytes)) {
			assert_int_equal(file.frames[0].len, 4);
			assert_int_equal(file.frames[0].wire_len, 60);
			assert_int_equal(file.frames[0].time_ns, 5000009000);
			assert_memory_equal(file.frames[0].data, "abcd", 4);
		}
		if (whole)
			pcap_file_unload(&file);
	}
	bytes[23] = 101; /* raw IP */
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(pcap_file_load(&file, path), -EINVAL);
	bytes[0] = 0;
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(pcap_file_load(&file, path), -EINVAL);
	close(fd);
	unlink(path);
	assert_int_equal(pcap_file_load(&file, path), -ENOENT);
}
