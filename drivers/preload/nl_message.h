/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of netlink(7), without padding of numbers of 64 bits: readers copy these. */
#ifndef ROCADE_PRELOAD_NL_MESSAGE_H
#define ROCADE_PRELOAD_NL_MESSAGE_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NL_OUT_MAX 4096

/* A message that is being written. */
struct nl_out {
	uint8_t bytes[NL_OUT_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	size_t len;
	bool full; /* something did not fit */
};

/* Begins a message that answers another one. port: of the socket that has asked. */
void nl_begin(struct nl_out *out, const struct nlmsghdr *asked, uint32_t port,
	uint16_t type, uint16_t flags);
/* Appends bytes behind the header, and padding. */
void nl_append(struct nl_out *out, const void *bytes, size_t len);
void nl_put(struct nl_out *out, uint16_t type, const void *value, size_t len);
void nl_put_u8(struct nl_out *out, uint16_t type, uint8_t value);
void nl_put_u32(struct nl_out *out, uint16_t type, uint32_t value);
void nl_put_u64(struct nl_out *out, uint16_t type, uint64_t value);
void nl_put_text(struct nl_out *out, uint16_t type, const char *text);
/* Begins an attribute of attributes, and returns where it is, for nl_nest_end(). */
size_t nl_nest(struct nl_out *out, uint16_t type);
void nl_nest_end(struct nl_out *out, size_t nest);
/* Ends the message. Returns 0 or -EMSGSIZE. */
int nl_end(struct nl_out *out);

/* An attribute of a message: its value is in the message. */
struct nl_attr {
	uint16_t type, len;
	const uint8_t *value;
};

/* Reads the attribute at *at, and moves that behind it. Returns false behind the last one, and where one is cut
 * off. */
bool nl_attr_next(const uint8_t *bytes, size_t len, size_t *at, struct nl_attr *attr);

#endif
