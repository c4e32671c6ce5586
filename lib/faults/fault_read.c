/* SPDX-License-Identifier: BSD-3-Clause */
/* A script from a file: for the library in a program, and for the programs of Rocade. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/faults.h>

#include "faults/faults.h"

#define STEP 65536

static int
why_errno(char why[FAULT_WHY_MAX], const char *path, int err)
{
	snprintf(why, FAULT_WHY_MAX, "cannot read %s: %s", path, strerror(err));
	return err;
}

char *
fault_text_read(const char *path, size_t *len)
{
	FILE *file = fopen(path, "re");
	char *text = NULL, *more;
	size_t got = 1;
	int err = file == NULL ? errno : 0;

	for (*len = 0; err == 0 && got != 0; *len += got) {
		more = *len <= FAULT_TEXT_MAX ? realloc(text, *len + STEP + 1) : NULL;
		if (more == NULL) {
			err = *len > FAULT_TEXT_MAX ? EFBIG : ENOMEM;
			break;
		}
		text = more;
		errno = 0;
		got = fread(text + *len, 1, STEP, file);
		if (got == 0 && ferror(file))
			err = errno != 0 ? errno : EIO;
	}
	if (file != NULL)
		fclose(file);
	if (err == 0) {
		text[*len] = '\0';
		return text;
	}
	free(text);
	errno = err;
	return NULL;
}

int
fault_script_read(struct fault_script *s, const char *path, char why[FAULT_WHY_MAX])
{
	char inside[FAULT_WHY_MAX];
	size_t len;
	char *text = fault_text_read(path, &len);
	int err;

	*s = (struct fault_script){.rules = NULL};
	if (text == NULL)
		return why_errno(why, path, errno);
	err = fault_script_parse(s, text, len, inside);
	free(text);
	if (err != 0 && snprintf(why, FAULT_WHY_MAX, "%s, %s", path, inside) < 0)
		why[0] = '\0';
	return err;
}

int
rocade_faults_read(const char *path, FILE *to, char why[ROCADE_FAULTS_WHY])
{
	struct fault_script s;
	int err = fault_script_read(&s, path, why);

	if (err == 0 && to != NULL)
		fault_script_explain(&s, to);
	fault_script_free(&s);
	return err;
}
