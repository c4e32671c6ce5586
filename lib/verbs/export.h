/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public functions. Everything else is hidden; which version node a name belongs to stands in
 * librocade.map.
 */
#ifndef ROCADE_VERBS_EXPORT_H
#define ROCADE_VERBS_EXPORT_H

#include <rocade/rocade.h>

#define EXPORT __attribute__((visibility("default")))

#endif
