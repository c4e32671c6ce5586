/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands to a channel of RDMA-CM, as librdmacm writes them. */
#ifndef ROCADE_TEST_CLIENT_CM_FIXTURE_H
#define ROCADE_TEST_CLIENT_CM_FIXTURE_H

#include "client_fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>

#define RDMA_CM "/dev/infiniband/rdma_cm"

/* Writes a command with its header. Returns 0 or an errno value. */
static inline int
command(int fd, uint32_t cmd, const void *in, size_t len, size_t out_len)
{
	struct {
		struct rdma_ucm_cmd_hdr head;
		uint8_t bytes[512];
	} all = {.head = {.cmd = cmd, .in = (uint16_t)len, .out = (uint16_t)out_len}};

	memcpy(all.bytes, in, len);
	if (write(fd, &all, sizeof(all.head) + len) == (ssize_t)(sizeof(all.head) + len))
		return 0;
	return errno;
}

static inline int
id_create(int fd, uint64_t uid, uint32_t *id)
{
	struct rdma_ucm_create_id_resp resp = {.id = 0};
	struct rdma_ucm_create_id cmd = {.uid = uid,
		.response = (uintptr_t)&resp,
		.ps = RDMA_PS_TCP,
		.qp_type = IBV_QPT_RC};
	int rc = command(fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp));

	*id = resp.id;
	return rc;
}

static inline struct sockaddr_in
address(const char *dotted, uint16_t port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET, dotted, &addr.sin_addr), 1);
	return addr;
}

#endif
