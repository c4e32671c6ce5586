/* SPDX-License-Identifier: BSD-3-Clause */
/* A device, messages of netlink about it, and the answers. */
#ifndef ROCADE_TEST_NLDEV_FIXTURE_H
#define ROCADE_TEST_NLDEV_FIXTURE_H

#include <rdma/rdma_netlink.h>

#include "case.h"
#include "preload/nl_message.h"
#include "preload/nldev.h"
#include "verbs/device_facts.h"

#define INDEX 0x40000007u /* of the device */
#define SEQ 77            /* of all messages */
#define OWN 4711          /* the socket's port ID */
#define GIVEN_MAX 64

extern struct device_facts rocade0;
extern bool absent; /* the daemon has ended */

struct message {
	_Alignas(NLMSG_ALIGNTO) uint8_t bytes[512];
	size_t len;
};

/* Make requests: of no device, of the device, and of its port. */
struct message message_make(unsigned command, unsigned flags);
struct message device_message(unsigned command, unsigned flags);
struct message port_message(unsigned command, unsigned flags);
void message_add(struct message *m, uint16_t type, const void *value, uint16_t len);
void message_add_u32(struct message *m, uint16_t type, uint32_t value);

/* The datagrams that the last message was answered with. */
extern struct nldev_answers {
	unsigned count;
	struct {
		struct nlmsghdr hdr;
		uint8_t bytes[NL_OUT_MAX];
		size_t len;
	} given[GIVEN_MAX];
	int rc; /* of the next ones */
} answers;

/* From memory of just this length, so that AddressSanitizer sees what is read behind it. */
int ask_bytes(const void *bytes, size_t len, bool capped);
void ask(const struct message *m);
int32_t result_of(unsigned i);
/* Finds the n-th attribute of a type. */
bool attr_find(const uint8_t *bytes, size_t len, uint16_t type, unsigned n,
	struct nl_attr *attr);
struct nl_attr answer_attr(unsigned i, uint16_t type);
bool answer_has(unsigned i, uint16_t type);

/* The answer with this number is one of the message's command, with these flags. */
void expect_answer(unsigned i, const struct message *m, unsigned flags);
/* The message is answered with this error alone. */
void expect_error(const struct message *m, int error);
/* The answer with this number is the last one, and the end of a dump. */
void expect_done(unsigned i, int error);
void expect_number(struct nl_attr attr, uint64_t value, size_t len);
void expect_text(struct nl_attr attr, const char *text);
void expect_handle(unsigned i);

#endif
