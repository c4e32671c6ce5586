/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls on mbufs of the application that lib/ makes. */
#ifndef ROCADE_ETHDEV_ETHDEV_MBUFS_H
#define ROCADE_ETHDEV_ETHDEV_MBUFS_H

#include "mem/mbuf_ops.h"

extern const struct mbuf_ops ethdev_mbufs;

#endif
