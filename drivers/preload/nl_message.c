/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <string.h>

#include "preload/nl_message.h"

void
nl_append(struct nl_out *out, const void *bytes, size_t len)
{
	size_t padded = NLMSG_ALIGN(len);

	if (out->full || padded < len || padded > sizeof(out->bytes) - out->len) {
		out->full = true;
		return;
	}
	memset(out->bytes + out->len, 0, padded);
	if (len > 0)
		memcpy(out->bytes + out->len, bytes, len);
	out->len += padded;
}

void
nl_begin(struct nl_out *out, const struct nlmsghdr *asked, uint32_t port, uint16_t type,
	uint16_t flags)
{
	struct nlmsghdr hdr = {.nlmsg_type = type,
		.nlmsg_flags = flags,
		.nlmsg_seq = asked->nlmsg_seq,
		.nlmsg_pid = port};

	out->len = 0;
	out->full = false;
	nl_append(out, &hdr, sizeof(hdr));
}

int
nl_end(struct nl_out *out)
{
	uint32_t len = (uint32_t)out->len;

	memcpy(out->bytes + offsetof(struct nlmsghdr, nlmsg_len), &len, sizeof(len));
	return out->full ? -EMSGSIZE : 0;
}

void
nl_put(struct nl_out *out, uint16_t type, const void *value, size_t len)
{
	struct nlattr attr = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};

	if (len > UINT16_MAX - NLA_HDRLEN) {
		out->full = true;
		return;
	}
	nl_append(out, &attr, sizeof(attr));
	nl_append(out, value, len);
}

void
nl_put_u8(struct nl_out *out, uint16_t type, uint8_t value)
{
	nl_put(out, type, &value, sizeof(value));
}

void
nl_put_u32(struct nl_out *out, uint16_t type, uint32_t value)
{
	nl_put(out, type, &value, sizeof(value));
}

void
nl_put_u64(struct nl_out *out, uint16_t type, uint64_t value)
{
	nl_put(out, type, &value, sizeof(value));
}

void
nl_put_text(struct nl_out *out, uint16_t type, const char *text)
{
	nl_put(out, type, text, strlen(text) + 1);
}

size_t
nl_nest(struct nl_out *out, uint16_t type)
{
	size_t at = out->len;

	nl_put(out, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void
nl_nest_end(struct nl_out *out, size_t nest)
{
	uint16_t len = (uint16_t)(out->len - nest);

	if (!out->full)
		memcpy(out->bytes + nest + offsetof(struct nlattr, nla_len), &len,
			sizeof(len));
}

bool
nl_attr_next(const uint8_t *bytes, size_t len, size_t *at, struct nl_attr *attr)
{
	struct nlattr hdr;

	if (*at > len || len - *at < sizeof(hdr))
		return false;
	memcpy(&hdr, bytes + *at, sizeof(hdr));
	if (hdr.nla_len < sizeof(hdr) || hdr.nla_len > len - *at)
		return false;
	*attr = (struct nl_attr){.type = hdr.nla_type & NLA_TYPE_MASK,
		.len = (uint16_t)(hdr.nla_len - sizeof(hdr)),
		.value = bytes + *at + sizeof(hdr)};
	*at += NLA_ALIGN(hdr.nla_len);
	return true;
}
