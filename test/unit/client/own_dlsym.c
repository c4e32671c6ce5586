/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that wraps dlsym(), as tracers do: the preloaded library finds the functions behind it all the
 * same, and the program finds verbs. Exit status 0: it does. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>

#define VISIBLE __attribute__((visibility("default")))

static unsigned lookups;

VISIBLE void *
dlsym(void *restrict handle, const char *restrict name)
{
	static void *(*real)(void *, const char *);

	lookups++;
	if (real == NULL)
		real = (void *(*)(void *, const char *))dlvsym(
			RTLD_NEXT, "dlsym", "GLIBC_2.34");
	return real(handle, name);
}

int
main(void)
{
	void *handle = dlopen("libibverbs.so.1", RTLD_NOW);
	void *verb = handle != NULL ? dlsym(handle, "ibv_get_device_list") : NULL;
	struct stat st;
	Dl_info info;

	if (stat("/", &st) != 0 || verb == NULL || dladdr(verb, &info) == 0) {
		fprintf(stderr, "own_dlsym: stat() or the lookup of a verb failed\n");
		return 1;
	}
	printf("%u lookups, the verb is in %s\n", lookups, info.dli_fname);
	return 0;
}
