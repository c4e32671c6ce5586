/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing but dlsym() and dlvsym() finds a function by its name, and both names are this library's own.
 * So the symbol tables of the loaded libraries are searched here (System V gABI, "Dynamic Section"; GNU
 * hash table as ld.so reads it). Allocators and sanitizers look functions up before anything is
 * initialised: the search calls no function. */
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/early.h"
#include "preload/real_dl.h"

#define VERSION_HIDDEN 0x8000 /* of DT_VERSYM: not the default version */

struct symbols {
	const ElfW(Sym) * table;
	const char *strings;
	const uint32_t *hash; /* DT_GNU_HASH */
	const ElfW(Half) * versions;
};

/* glibc relocates the addresses in the section in place, but not on every machine, and not those of the
 * vDSO. */
static EARLY const void *
address(const struct link_map *map, ElfW(Addr) value)
{
	return (const void *)(value < map->l_addr ? map->l_addr + value : value);
}

static EARLY bool
symbols_find(const struct link_map *map, struct symbols *out)
{
	*out = (struct symbols){NULL, NULL, NULL, NULL};
	if (map->l_ld == NULL)
		return false;
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		const void *at = address(map, entry->d_un.d_ptr);

		if (entry->d_tag == DT_SYMTAB)
			out->table = at;
		else if (entry->d_tag == DT_STRTAB)
			out->strings = at;
		else if (entry->d_tag == DT_GNU_HASH)
			out->hash = at;
		else if (entry->d_tag == DT_VERSYM)
			out->versions = at;
	}
	return out->table != NULL && out->strings != NULL && out->hash != NULL;
}

static EARLY uint32_t
name_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name != '\0'; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static EARLY bool
names_equal(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* Returns whether the symbol is what an unversioned lookup of the name finds. */
static EARLY bool
symbol_is(const struct symbols *s, uint32_t index, const char *name)
{
	const ElfW(Sym) *symbol = &s->table[index];

	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
	       symbol->st_shndx != SHN_UNDEF &&
	       (s->versions == NULL || (s->versions[index] & VERSION_HIDDEN) == 0) &&
	       names_equal(s->strings + symbol->st_name, name);
}

/* The table: the number of buckets, the index of the first symbol in it, the number of words of the
 * Bloom filter, its shift; the filter, the buckets, and a hash for each symbol, whose lowest bit ends
 * a chain. */
static EARLY const void *
function_in(const struct link_map *map, const char *name)
{
	uint32_t hash = name_hash(name), first, index;
	const uint32_t *buckets, *chains;
	struct symbols s;

	if (!symbols_find(map, &s) || s.hash[0] == 0)
		return NULL;
	first = s.hash[1];
	buckets = s.hash + 4 + s.hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	chains = buckets + s.hash[0];
	index = buckets[hash % s.hash[0]];
	if (index < first)
		return NULL;
	for (;; index++) {
		uint32_t chain = chains[index - first];

		if ((chain | 1) == (hash | 1) && symbol_is(&s, index, name))
			return (const char *)map->l_addr + s.table[index].st_value;
		if ((chain & 1) != 0)
			return NULL;
	}
}

/* Returns the function of the next library that has it, in the order of the list, which is the search
 * order of what was loaded at the start. Nothing of that is ever removed from the list. */
static EARLY void *
real_function(const char *name)
{
	const struct link_map *own = _r_debug.r_map, *map;
	const void *found = NULL;

	while (own != NULL && own->l_ld != _DYNAMIC)
		own = own->l_next;
	for (map = own; map != NULL && found == NULL; map = map->l_next) {
		if (map != own)
			found = function_in(map, name);
	}
	/* This library was opened by dlopen(), so the C library is before it. */
	for (map = _r_debug.r_map; map != own && found == NULL; map = map->l_next)
		found = function_in(map, name);
	return (void *)(uintptr_t)found;
}

EARLY void *
real_function_of(void *handle, const char *name)
{
	return (void *)(uintptr_t)function_in(handle, name);
}

EARLY dlsym_fn *
real_dlsym(void)
{
	static dlsym_fn *found;
	dlsym_fn *real = __atomic_load_n(&found, __ATOMIC_RELAXED);

	if (real == NULL) {
		real = (dlsym_fn *)real_function("dlsym");
		__atomic_store_n(&found, real, __ATOMIC_RELAXED);
	}
	return real;
}

EARLY dlvsym_fn *
real_dlvsym(void)
{
	static dlvsym_fn *found;
	dlvsym_fn *real = __atomic_load_n(&found, __ATOMIC_RELAXED);

	if (real == NULL) {
		real = (dlvsym_fn *)real_function("dlvsym");
		__atomic_store_n(&found, real, __ATOMIC_RELAXED);
	}
	return real;
}

/* Constructors have the loader's lock, so the list does not change: later, if this library was opened by
 * dlopen(), a library before it could be closed meanwhile. */
static EARLY __attribute__((constructor)) void
real_functions_find(void)
{
	(void)real_dlsym();
	(void)real_dlvsym();
}
