/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's log. */
#ifndef ROCADE_SERVER_LOG_H
#define ROCADE_SERVER_LOG_H

#include "base/common.h"

/* Returns how many lines were lost because standard error did not take them at once. */
uint64_t server_log_lost(void);

#endif
