/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs of rdma-core 59 to 65. Each counts its calls and returns 77. The names are given to the
 * assembler only: the <infiniband/verbs.h> of those versions declares the functions. */
#include <stdint.h>

#include "fake.h"

#define NEWER(name)                                                                      \
	uintptr_t fake_##name(void) __asm__(#name);                                      \
	uintptr_t fake_##name(void)                                                      \
	{                                                                                \
		fake.newer++;                                                            \
		return 77;                                                               \
	}

NEWER(ibv_alloc_dmah)
NEWER(ibv_dealloc_dmah)
NEWER(ibv_reg_mr_ex)
NEWER(ibv_dm_export_dmabuf_fd)
NEWER(ibv_query_port_speed)
NEWER(ibv_alloc_buf)
NEWER(ibv_free_buf)
NEWER(ibv_reg_buf_mr)
NEWER(_ibv_query_comp_cntr_caps)
NEWER(ibv_create_comp_cntr)
NEWER(ibv_destroy_comp_cntr)
NEWER(ibv_export_buf_dmabuf_fd)
NEWER(ibv_inc_comp_cntr)
NEWER(ibv_inc_err_comp_cntr)
NEWER(ibv_qp_attach_comp_cntr)
NEWER(ibv_read_comp_cntr)
NEWER(ibv_read_err_comp_cntr)
NEWER(ibv_set_comp_cntr)
NEWER(ibv_set_err_comp_cntr)
