/* SPDX-License-Identifier: BSD-3-Clause */
/* The dlsym() and dlvsym() of the libraries behind this one, which has functions of these names. */
#ifndef ROCADE_PRELOAD_REAL_DL_H
#define ROCADE_PRELOAD_REAL_DL_H

typedef void *dlsym_fn(void *handle, const char *name);
typedef void *dlvsym_fn(void *handle, const char *name, const char *version);

/* NULL: no library has it. Any thread, at any time: before constructors, too. */
dlsym_fn *real_dlsym(void);
dlvsym_fn *real_dlvsym(void);

/* Returns the default version of a function of this library, and not of those that it needs, or NULL. handle: of
 * dlopen(), which is a struct link_map (dlinfo(3)). No dlsym() that a library replaces is called. */
void *real_function_of(void *handle, const char *name);

#endif
