/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target over files, without libFuzzer. Each argument is a file or a folder
 * of files. Part of every build, so that the targets always compile and inputs that once
 * crashed are tested. */
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include "fuzz.h"

#define INPUT_MAX (1 << 20)

static unsigned count;

static void
file_run(const char *path)
{
	uint8_t *data = malloc(INPUT_MAX), *exact;
	FILE *file = fopen(path, "rb");
	size_t len;

	if (file == NULL || data == NULL) {
		perror(path);
		exit(1);
	}
	len = fread(data, 1, INPUT_MAX, file);
	fclose(file);
	exact = malloc(len + (len == 0));
	FUZZ_CHECK(exact != NULL);
	memcpy(exact, data, len);
	free(data);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	printf("ok %u - %s\n", ++count,
		strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	fflush(stdout);
}

static void
folder_run(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort);
	char full[PATH_MAX];

	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			snprintf(full, sizeof(full), "%s/%s", path, names[i]->d_name);
			file_run(full);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

int
main(int argc, char **argv)
{
	struct stat st;

	for (int i = 1; i < argc; i++) {
		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
			folder_run(argv[i]);
		else
			file_run(argv[i]);
	}
	printf("1..%u\n", count);
	return count == 0;
}
