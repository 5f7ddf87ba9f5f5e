/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers are whole through short and interrupted calls, and say why when they cannot be. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/io.h"

#define N ((size_t)4 << 20)

static void hear(int number)
{
	(void)number;
}

struct reading {
	int fd;
	pthread_t writer;
	size_t n;
	bool right;
};

/* In small pieces, with a signal to the writer between them. */
static void *drain(void *state)
{
	struct reading *r = state;
	unsigned char buf[9973];
	ssize_t n;

	while ((n = read(r->fd, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			r->right = r->right && buf[i] == (unsigned char)((r->n + (size_t)i) % 251);
		r->n += (size_t)n;
		if (r->n < N)
			(void)pthread_kill(r->writer, SIGUSR1);
	}
	return NULL;
}

static unsigned char *pattern(void)
{
	unsigned char *bytes = malloc(N);

	assert_non_null(bytes);
	for (size_t i = 0; i < N; i++)
		bytes[i] = (unsigned char)(i % 251);
	return bytes;
}

static void a_write_survives_signals(void **state)
{
	struct sigaction act = { .sa_handler = hear }, old; /* no SA_RESTART */
	struct reading r = { .writer = pthread_self(), .right = true };
	unsigned char *bytes = pattern();
	pthread_t reader;
	int ends[2];

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &act, &old), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	r.fd = ends[0];
	assert_int_equal(pthread_create(&reader, NULL, drain, &r), 0);
	assert_true(lag_io_write(ends[1], bytes, N));
	assert_int_equal(close(ends[1]), 0);
	assert_int_equal(pthread_join(reader, NULL), 0);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
	assert_int_equal(r.n, N);
	assert_true(r.right);
	free(bytes);
}

static void reads_say_how_much_there_is(void **state)
{
	int fd = lag_io_nameless("/tmp");
	char got[16];

	(void)state;
	assert_true(fd >= 0);
	assert_true(lag_io_write_at(fd, "0123456789", 10, 5));
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	assert_int_equal(lag_io_read_at(fd, got, 4, 7), 4);
	assert_memory_equal(got, "2345", 4);
	assert_int_equal(lag_io_read_at(fd, got, sizeof(got), 12), 3);
	assert_memory_equal(got, "789", 3);
	assert_int_equal(lag_io_read_at(fd, got, sizeof(got), 99), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(lag_io_read_at(fd, got, 1, 0), -1);
	assert_int_equal(errno, EBADF);
	assert_false(lag_io_write(fd, got, 1));
	assert_int_equal(errno, EBADF);
}

static void a_limit_says_why(void **state)
{
	struct rlimit old, low;
	char page[8192] = { 0 };
	int fd = lag_io_nameless("/tmp");

	(void)state;
	assert_true(fd >= 0);
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = (struct rlimit){ 10000, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_true(lag_io_write(fd, page, sizeof(page)));
	/* The part that fits is a short write, which goes on to the reason. */
	errno = 0;
	assert_false(lag_io_write(fd, page, sizeof(page)));
	assert_int_equal(errno, EFBIG);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 10000);
	errno = 0;
	assert_false(lag_io_write_at(fd, page, sizeof(page), 9000));
	assert_int_equal(errno, EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(close(fd), 0);
}

static void a_nameless_file_is_in_no_folder(void **state)
{
	char folder[] = "/tmp/laggard-io-XXXXXX";
	struct stat sb;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	fd = lag_io_nameless(folder);
	assert_true(fd >= 0);
	assert_int_equal(rmdir(folder), 0);
	assert_true(lag_io_write(fd, "x", 1));
	assert_int_equal(fstat(fd, &sb), 0);
	assert_int_equal(sb.st_nlink, 0);
	assert_int_equal(sb.st_mode & 0777, 0600);
	assert_int_equal(close(fd), 0);
	assert_int_equal(lag_io_nameless(folder), -1);
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_survives_signals),
		cmocka_unit_test(reads_say_how_much_there_is),
		cmocka_unit_test(a_limit_says_why),
		cmocka_unit_test(a_nameless_file_is_in_no_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
