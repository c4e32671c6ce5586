/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices of the system. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host.h"

static int member = -1;

const char *
host_open(char **options, unsigned count, bool loop)
{
	(void)options;
	if (loop)
		return "--loop is not supported";
	return count != 0 ? "the system's devices take no options" : NULL;
}

const char *
host_device(unsigned which)
{
	(void)which;
	return NULL; /* the first one, unless the command line names another */
}

/* The kernel driver adds the group's MAC to the interface, but the IP stack must join the
 * group too. */
const char *
host_join(const union ibv_gid *group, unsigned ifindex)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct ip_mreqn four = {.imr_ifindex = (int)ifindex};
	struct ipv6_mreq six = {.ipv6mr_interface = ifindex};
	bool is_four = memcmp(group->raw, mapped, sizeof(mapped)) == 0;
	int err;

	host_leave();
	member = socket(is_four ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
	memcpy(&four.imr_multiaddr, group->raw + 12, 4);
	memcpy(&six.ipv6mr_multiaddr, group->raw, 16);
	if (is_four)
		err = setsockopt(
			member, IPPROTO_IP, IP_ADD_MEMBERSHIP, &four, sizeof(four));
	else
		err = setsockopt(
			member, IPPROTO_IPV6, IPV6_JOIN_GROUP, &six, sizeof(six));
	return err == 0 ? NULL : "the interface cannot join the group";
}

void
host_leave(void)
{
	if (member >= 0)
		close(member);
	member = -1;
}

void
host_stop(void)
{
}

void
host_report(void)
{
}

void
host_close(void)
{
}
