/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rocade/rocade.h>

#include "verbs/sysfs_texts.h"

#define WORD 4 /* octets, in which IBA counts data (PortXmitData) */
#define CPUS_MAX 8192

void
cpu_list_text(const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, text, SYSFS_TEXT_MAX - 1) : -1;

	(void)facts;
	(void)index;
	if (fd >= 0)
		close(fd);
	if (len <= 0)
		len = snprintf(text, SYSFS_TEXT_MAX, "0\n");
	text[len] = '\0';
}

/* The same CPUs in words of 32, the highest first. */
void
cpu_mask_text(const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	uint32_t words[CPUS_MAX / 32] = {0};
	char list[SYSFS_TEXT_MAX], *at = list;
	unsigned long first, last, top = 0;
	int len = 0;

	cpu_list_text(facts, index, list);
	while (*at >= '0' && *at <= '9') {
		first = last = strtoul(at, &at, 10);
		if (*at == '-')
			last = strtoul(at + 1, &at, 10);
		for (; first <= last && first < CPUS_MAX; first++) {
			words[first / 32] |= UINT32_C(1) << first % 32;
			top = RTE_MAX(top, first / 32);
		}
		at += *at == ',';
	}
	/* The kernel pads the first word to the CPUs that there can be. */
	for (unsigned long i = top + 1; i-- > 0;)
		len += snprintf(text + len, (size_t)(SYSFS_TEXT_MAX - len),
			"%08" PRIx32 "%c", words[i], i > 0 ? ',' : '\n');
}

void
guid_text(const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	uint64_t guid = facts->guid;

	(void)index;
	snprintf(text, SYSFS_TEXT_MAX, "%04x:%04x:%04x:%04x\n",
		(unsigned)(guid >> 48) & 0xFFFF, (unsigned)(guid >> 32) & 0xFFFF,
		(unsigned)(guid >> 16) & 0xFFFF, (unsigned)guid & 0xFFFF);
}

void
version_text(const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	(void)facts;
	(void)index;
	snprintf(text, SYSFS_TEXT_MAX, "%s\n", rocade_version());
}

void
state_text(const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	(void)index;
	snprintf(text, SYSFS_TEXT_MAX, "%s\n", facts->link_up ? "4: ACTIVE" : "1: DOWN");
}

void
phys_state_text(
	const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	(void)index;
	snprintf(text, SYSFS_TEXT_MAX, "%s\n",
		facts->link_up ? "5: LinkUp" : "2: Polling");
}

void
gid_text(const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	const uint8_t *gid = facts->gids[index];

	for (unsigned i = 0; i < 16; i += 2)
		snprintf(text + i / 2 * 5, SYSFS_TEXT_MAX - i / 2 * 5, "%02x%02x%c",
			gid[i], gid[i + 1], i < 14 ? ':' : '\n');
}

/* As the kernel, which has no attributes of a GID that is not there. */
static void
attribute_text(const struct device_facts *facts, unsigned index, const char *there,
	char text[SYSFS_TEXT_MAX])
{
	static const uint8_t none[16];

	snprintf(text, SYSFS_TEXT_MAX, "%s",
		memcmp(facts->gids[index], none, 16) != 0 ? there : "");
}

void
gid_type_text(const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	attribute_text(facts, index, "RoCE v2\n", text);
}

void
gid_ndev_text(const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	attribute_text(facts, index, "lo\n", text);
}

static void
decimal_text(uint64_t number, char text[SYSFS_TEXT_MAX])
{
	snprintf(text, SYSFS_TEXT_MAX, "%" PRIu64 "\n", number);
}

void
xmit_data_text(
	const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	(void)index;
	decimal_text(facts->tx_bytes / WORD, text);
}

void
rcv_data_text(const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	(void)index;
	decimal_text(facts->rx_bytes / WORD, text);
}

void
xmit_packets_text(
	const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	(void)index;
	decimal_text(facts->tx_packets, text);
}

void
rcv_packets_text(
	const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX])
{
	(void)index;
	decimal_text(facts->rx_packets, text);
}
