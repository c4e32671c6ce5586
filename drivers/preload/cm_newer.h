/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that librdmacm has since rdma-core 60, and that the header of rdma-core 44 does not declare. */
#ifndef ROCADE_PRELOAD_CM_NEWER_H
#define ROCADE_PRELOAD_CM_NEWER_H

#include <rdma/rdma_cma.h>

#ifndef RAI_SA
#define RAI_SA 0x00000010
#define RAI_DNS 0x00000020
#endif

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(
	struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg);

#endif
