/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that ld.so(8) does not load Rocade's library into: they run without RDMA. */
#ifndef RUN_PRELOAD_CHECK_H
#define RUN_PRELOAD_CHECK_H

#include <stdbool.h>

/* Says in one sentence on standard error why the library cannot reach the program, as execvp(3) finds it, and
 * what to do. mount: with --mount, for which a static program is no mistake. */
void preload_check(const char *program, bool mount);

#endif
