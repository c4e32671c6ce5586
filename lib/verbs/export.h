/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks public functions; all others are hidden. librocade.map lists the version node of
 * each name. */
#ifndef ROCADE_VERBS_EXPORT_H
#define ROCADE_VERBS_EXPORT_H

#include <rocade/rocade.h>

#define EXPORT __attribute__((visibility("default")))

#endif
