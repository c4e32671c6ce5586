/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librdmacm in a program that embeds Rocade. The program links librocade-rdmacm, librocade,
 * librdmacm and libibverbs, in this order, and uses the calls of <rdma/rdma_cma.h> as on any RDMA
 * device. pkg-config rocade-rdmacm gives the flags. docs/embedding.md describes it.
 */
#ifndef ROCADE_RDMACM_H
#define ROCADE_RDMACM_H

#ifdef __cplusplus
extern "C" {
#endif

/* Checks that librdmacm reaches Rocade: that the linker has kept librocade-rdmacm, that a call of
 * open() gets there, and that librocade comes before libibverbs. To be called once, at any time. A linker with --as-needed
 * keeps the library if the program calls this function. Returns 0, or EOPNOTSUPP: rocade_error()
 * says what is wrong. */
int rocade_rdmacm_check(void);

#ifdef __cplusplus
}
#endif

#endif
