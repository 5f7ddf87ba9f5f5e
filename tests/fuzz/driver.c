/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over a corpus folder without libFuzzer: every file as it is, cut at every 1/16 of
 * its length, and 200 seeded mutations of it. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILE_MAX_BYTES (1u << 20)
#define N_MUTATIONS    200

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* An exact-size heap copy, so that a sanitizer sees any read past the end. */
static void run_copy(const uint8_t *data, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		exit(1);
	memcpy(copy, data, n);
	(void)LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static void mutate(uint8_t *data, size_t n, uint64_t *state)
{
	size_t n_changes = 1 + next_random(state) % 8;

	for (size_t i = 0; i < n_changes && n; i++) {
		size_t at = next_random(state) % n;

		switch (next_random(state) % 4) {
		case 0:
			data[at] = (uint8_t)next_random(state);
			break;
		case 1:
			data[at] ^= (uint8_t)(1u << next_random(state) % 8);
			break;
		case 2:
			data[at] = 0xff;
			break;
		default:
			memmove(data + at, data + at / 2, n - at);
			break;
		}
	}
}

static void run_file(const char *path)
{
	static uint8_t data[FILE_MAX_BYTES], work[FILE_MAX_BYTES];
	FILE *f = fopen(path, "rb");
	size_t n;
	uint64_t state = 0x9e3779b97f4a7c15u;

	if (!f)
		return;
	n = fread(data, 1, sizeof(data), f);
	(void)fclose(f);
	run_copy(data, n);
	for (size_t i = 0; i < 16; i++)
		run_copy(data, n * i / 16);
	for (int i = 0; i < N_MUTATIONS; i++) {
		memcpy(work, data, n);
		mutate(work, n, &state);
		run_copy(work, n);
	}
}

int main(int argc, char **argv)
{
	size_t n_files = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);

		for (const struct dirent *e; dir && (e = readdir(dir));) {
			char path[4096];

			if (e->d_name[0] == '.')
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			run_file(path);
			n_files++;
		}
		if (dir)
			(void)closedir(dir);
	}
	printf("%zu corpus files\n", n_files);
	return n_files ? 0 : 1; /* an empty corpus tests nothing */
}
