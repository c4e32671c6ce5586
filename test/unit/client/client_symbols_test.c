/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that a program looks up by dlsym() and dlvsym(), with librocade-verbs loaded before the C
 * library: preloaded, or, where it is instrumented, linked. */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#ifdef PRELOADED
#include "early_malloc.h"
#endif

#define OURS "librocade-verbs."
#define REAL_VERBS "libibverbs."

/* Programs that were linked with glibc before 2.34 call this version. */
#if defined(PRELOADED) && defined(__x86_64__)
__asm__(".symver old_dlsym, dlsym@GLIBC_2.2.5");
void *old_dlsym(void *handle, const char *name);
#else
#define old_dlsym dlsym
#endif

static const struct {
	const char *name;
	const char *version;
} ours[] =
	{
#define FORWARD(name, version) {#name, version},
#include "verbs/symbols.def"
},
  ours_cm[] =
	  {
#define FORWARD_CM(name, version) {#name, version},
#include "verbs/symbols.def"
},
  real[] = {
#define REAL(name, version, reason) {name, version},
#include "verbs/symbols.def"
};

static const char *
file_of(const void *symbol)
{
	const char *base;
	Dl_info info;

	if (symbol == NULL || dladdr(symbol, &info) == 0)
		return "none";
	base = strrchr(info.dli_fname, '/');
	return base != NULL ? base + 1 : info.dli_fname;
}

static void
expect_in(const char *file, const void *symbol, const char *name)
{
	if (strncmp(file_of(symbol), file, strlen(file)) != 0)
		fail_msg("%s is in %s, expected %s", name, file_of(symbol), file);
}

static void *
verbs_open(void)
{
	void *handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	if (handle == NULL)
		skip();
	return handle;
}

/* Those that the installed libibverbs lacks, too. */
TEST(every_verb_of_rocade_is_found)
{
	void *handle = verbs_open();

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		void *found = dlsym(handle, ours[i].name);

		expect_in(OURS, found, ours[i].name);
		assert_ptr_equal(old_dlsym(handle, ours[i].name), found);
		if (ours[i].version[0] != '\0')
			assert_ptr_equal(
				dlvsym(handle, ours[i].name, ours[i].version), found);
	}
	assert_null(dlvsym(handle, "ibv_get_device_list", "IBVERBS_9.9"));
	assert_null(dlvsym(handle, "ibv_alloc_buf", "IBVERBS_1.1"));
	dlclose(handle);
}

TEST(every_function_of_librdmacm_that_rocade_has_is_found)
{
	void *handle = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL);

	if (handle == NULL)
		skip();
	for (size_t i = 0; i < sizeof(ours_cm) / sizeof(ours_cm[0]); i++) {
		void *found = dlsym(handle, ours_cm[i].name);

		expect_in(OURS, found, ours_cm[i].name);
		assert_ptr_equal(old_dlsym(handle, ours_cm[i].name), found);
		assert_ptr_equal(
			dlvsym(handle, ours_cm[i].name, ours_cm[i].version), found);
	}
	assert_null(dlvsym(handle, "rdma_write_cm_event", "RDMACM_1.0"));
	assert_null(dlsym(handle, "rdma_no_such_function"));
	/* libibverbs is in no need of librdmacm. */
	dlclose(handle);
	handle = verbs_open();
	assert_null(dlsym(handle, "rdma_write_cm_event"));
	dlclose(handle);
}

TEST(other_symbols_are_the_real_ones)
{
	void *verbs = verbs_open(), *cm = dlopen("librdmacm.so.1", RTLD_NOW);
	unsigned found = 0;

	for (size_t i = 0; i < sizeof(real) / sizeof(real[0]); i++) {
		bool is_cm = strncmp(real[i].version, "RDMACM", 6) == 0;
		void *handle = is_cm ? cm : verbs, *symbol, *is_default;

		if (handle == NULL)
			continue;
		symbol = dlvsym(handle, real[i].name, real[i].version);
		if (symbol == NULL)
			continue;
		found++;
		expect_in(is_cm ? "librdmacm." : REAL_VERBS, symbol, real[i].name);
		/* Without a version the default one, which some do not have. */
		is_default = dlsym(handle, real[i].name);
		if (is_default != NULL && strcmp(real[i].version, "IBVERBS_1.0") != 0)
			assert_ptr_equal(is_default, symbol);
	}
	assert_true(found > 40);
	if (cm != NULL)
		dlclose(cm);
	dlclose(verbs);
}

/* Opens the library in this way, and looks a verb up. Returns false if it is not found so. */
static bool
opened_has_ours(const char *file, int flags)
{
	void *handle = dlopen(file, flags);

	if (handle == NULL)
		return false;
	expect_in(
		OURS, dlsym(handle, "ibv_get_device_list"), file != NULL ? file : "NULL");
	expect_in(OURS, dlvsym(handle, "ibv_get_device_list", "IBVERBS_1.1"),
		file != NULL ? file : "NULL");
	assert_int_equal(dlclose(handle), 0);
	return true;
}

TEST(a_library_is_opened_in_many_ways)
{
	void *handle = verbs_open();
	struct link_map *map;
	char path[4096];

	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	assert_non_null(strstr(map->l_name, REAL_VERBS));
	assert_true(opened_has_ours("libibverbs.so.1", RTLD_LAZY | RTLD_GLOBAL));
	assert_true(opened_has_ours("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD));
	assert_true(opened_has_ours(map->l_name, RTLD_NOW));
	assert_non_null(realpath(map->l_name, path));
	assert_true(opened_has_ours(path, RTLD_NOW));
	assert_true(opened_has_ours(NULL, RTLD_NOW));
	/* In its dependencies. */
	(void)opened_has_ours("librdmacm.so.1", RTLD_NOW);
	/* The link for compilers. */
	(void)opened_has_ours("libibverbs.so", RTLD_NOW);
#ifdef PRELOADED /* AddressSanitizer refuses it */
	assert_true(opened_has_ours("libibverbs.so.1", RTLD_NOW | RTLD_DEEPBIND));
#endif
	dlclose(handle);
}

#ifdef PRELOADED
/* The handle of another namespace: what asks for it by this function gets the verbs of this one. */
TEST(a_library_of_another_namespace)
{
	void *handle = dlmopen(LM_ID_NEWLM, "libibverbs.so.1", RTLD_NOW);

	if (handle == NULL)
		skip();
	expect_in(OURS, dlsym(handle, "ibv_get_device_list"), "dlmopen()");
	expect_in(REAL_VERBS, dlsym(handle, "ibv_fork_init"), "dlmopen()");
	dlclose(handle);
}
#endif

TEST(a_verb_outlives_the_handle)
{
	void *handle = verbs_open();
	void **(*get)(int *n);
	void (*put)(void **list);
	void **list;

	*(void **)&get = dlsym(handle, "ibv_get_device_list");
	*(void **)&put = dlsym(handle, "ibv_free_device_list");
	assert_int_equal(dlclose(handle), 0);
	list = get(NULL);
	if (list != NULL)
		put(list);
}

TEST(failed_lookups_have_their_text)
{
	void *handle = verbs_open();
	const char *text;

	assert_null(dlsym(handle, "ibv_no_such_verb"));
	text = dlerror();
	assert_non_null(text);
	assert_non_null(strstr(text, REAL_VERBS));
	assert_non_null(strstr(text, "ibv_no_such_verb"));
	assert_null(dlvsym(handle, "ibv_dealloc_pd", "IBVERBS_9.9"));
	text = dlerror();
	assert_non_null(text);
	assert_non_null(strstr(text, "IBVERBS_9.9"));
	/* A verb that only Rocade has leaves none. */
	assert_non_null(dlsym(handle, "ibv_export_buf_dmabuf_fd"));
	assert_null(dlerror());
	assert_null(dlsym(handle, "no_verb"));
	assert_non_null(dlerror());
	dlclose(handle);
}

TEST(handles_of_other_libraries)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	assert_non_null(libc);
	expect_in("libc", dlsym(libc, "dlopen"), "dlopen");
	assert_null(dlsym(libc, "ibv_get_device_list"));
	assert_null(dlsym(libc, "ibv_alloc_buf"));
	assert_null(dlvsym(libc, "ibv_alloc_buf", "IBVERBS_1.17"));
	dlclose(libc);
}

/* RTLD_NEXT depends on who calls: behind this program is librocade-verbs, behind that the C library. */
TEST(special_handles)
{
	expect_in(OURS, dlsym(RTLD_NEXT, "dlvsym"), "RTLD_NEXT");
	expect_in(OURS, old_dlsym(RTLD_NEXT, "dlvsym"), "RTLD_NEXT, old version");
	expect_in(OURS, dlvsym(RTLD_NEXT, "ibv_dealloc_pd", "IBVERBS_1.1"), "RTLD_NEXT");
	expect_in(OURS, dlsym(RTLD_DEFAULT, "dlvsym"), "RTLD_DEFAULT");
	expect_in(OURS, dlsym(RTLD_DEFAULT, "ibv_get_device_list"), "RTLD_DEFAULT");
	assert_null(dlvsym(RTLD_DEFAULT, "ibv_get_device_list", "IBVERBS_9"));
	assert_null(dlsym(RTLD_NEXT, "ibv_no_such_verb"));
}

#ifdef PRELOADED
/* The run-time library of a sanitizer, if there is one, calls these. */
TEST(sanitizers_get_their_options)
{
	const char *(*options)(void), *(*suppressions)(void);

	*(void **)&options = dlsym(RTLD_DEFAULT, "__asan_default_options");
	*(void **)&suppressions = dlsym(RTLD_DEFAULT, "__tsan_default_suppressions");
	assert_non_null(options);
	assert_string_equal(options(), "verify_asan_link_order=0");
	assert_non_null(suppressions);
	assert_string_equal(suppressions(),
		"called_from_lib:librocade-verbs.so\nthread:librocade-verbs.so\n");
}

/* An allocator that looks its functions up at the first call, before any constructor ran. */
TEST(an_allocator_looks_functions_up_early)
{
	void *memory = malloc(16);

	assert_non_null(memory);
	free(memory);
	assert_true(early_malloc_calls() > 0);
}
#endif
