/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_PRELOAD_NEXT_H
#define ROCADE_PRELOAD_NEXT_H

#include <dlfcn.h>

#include "preload/real_dl.h"

/* Returns the function of this name in the next library in search order. Not by a dlsym() of the program,
 * which may wrap the real one: RTLD_NEXT would be what follows the program then. */
#define NEXT_FUNCTION(name)                                                              \
	__extension__({                                                                  \
		static __typeof__(&name) next_;                                          \
		__typeof__(&name) found_ = __atomic_load_n(&next_, __ATOMIC_RELAXED);    \
                                                                                         \
		if (found_ == NULL) {                                                    \
			found_ = (__typeof__(&name))real_dlsym()(RTLD_NEXT, #name);      \
			__atomic_store_n(&next_, found_, __ATOMIC_RELAXED);              \
		}                                                                        \
		found_;                                                                  \
	})

/* Defines next_NAME(), which returns that function, for what children of fork() and vfork() may call before exec(),
 * where the dynamic loader must not be called: a constructor looks it up. */
#define NEXT_FIND(name)                                                                  \
	static __typeof__(&name) next_##name(void)                                       \
	{                                                                                \
		return NEXT_FUNCTION(name);                                              \
	}                                                                                \
                                                                                         \
	static __attribute__((constructor)) void next_##name##_find(void)                \
	{                                                                                \
		(void)next_##name();                                                     \
	}

#endif
