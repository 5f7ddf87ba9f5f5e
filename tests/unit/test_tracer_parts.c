/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the tracer that can be asked directly: rank, command line, names of CUDA calls, wide text. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/argv.h"
#include "tracer/clock.h"
#include "tracer/cupti_api.h"
#include "tracer/nvtx_internal.h"
#include "tracer/rank.h"

static int no_launcher(void **state)
{
	static const char *const names[] = { "RANK",
					     "WORLD_SIZE",
					     "LOCAL_RANK",
					     "OMPI_COMM_WORLD_RANK",
					     "OMPI_COMM_WORLD_SIZE",
					     "SLURM_PROCID",
					     "SLURM_NTASKS",
					     "SLURM_LOCALID",
					     "PMIX_RANK",
					     "PMI_RANK",
					     "TORCHELASTIC_RESTART_COUNT" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	return 0;
}

static void the_closest_launcher_gives_the_rank(void **state)
{
	struct lag_rank rank;

	(void)state;
	lag_rank_read(&rank);
	assert_int_equal(rank.rank, LAG_NONE);
	assert_string_equal(rank.source, "");
	setenv("SLURM_PROCID", "1", 1);
	setenv("SLURM_NTASKS", "2", 1);
	setenv("SLURM_LOCALID", "0", 1);
	lag_rank_read(&rank);
	assert_int_equal(rank.rank, 1);
	assert_int_equal(rank.world_size, 2);
	assert_string_equal(rank.source, "SLURM_PROCID");
	/* torchrun inside srun: the node agent's numbers must not be mixed in. */
	setenv("RANK", "13", 1);
	setenv("WORLD_SIZE", "16", 1);
	setenv("TORCHELASTIC_RESTART_COUNT", "2", 1);
	lag_rank_read(&rank);
	assert_int_equal(rank.rank, 13);
	assert_int_equal(rank.world_size, 16);
	assert_int_equal(rank.local_rank, LAG_NONE);
	assert_int_equal(rank.restart, 2);
	assert_string_equal(rank.source, "RANK");
}

static void mpirun_inside_slurm_wins(void **state)
{
	struct lag_rank rank;

	(void)state;
	setenv("SLURM_PROCID", "0", 1);
	setenv("OMPI_COMM_WORLD_RANK", "5", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
	lag_rank_read(&rank);
	assert_int_equal(rank.rank, 5);
	assert_int_equal(rank.world_size, 8);
}

static void what_is_no_number_is_no_rank(void **state)
{
	static const char *const bad[] = { "", "-1", "x", "1x", " 1", "99999999999999999999" };
	struct lag_rank rank;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("RANK", bad[i], 1);
		lag_rank_read(&rank);
		assert_int_equal(rank.rank, LAG_NONE);
	}
}

/* Arguments as /proc shows them, one blank for each NUL to keep the test readable. */
static void expect_clean(const char *args, const char *expected)
{
	char in[512], out[512];
	size_t n = strlen(args);

	assert_true(n < sizeof(in));
	memcpy(in, args, n + 1);
	for (size_t i = 0; i < n; i++)
		in[i] = in[i] == ' ' ? '\0' : in[i];
	n = lag_argv_clean(out, sizeof(out) - 1, in, n + 1);
	out[n] = '\0';
	assert_string_equal(out, expected);
}

static void secrets_do_not_get_into_the_trace(void **state)
{
	(void)state;
	expect_clean("python train.py --lr 0.1", "python train.py --lr 0.1");
	expect_clean("t --api-key s3cr3t --x", "t --api-key *** --x");
	expect_clean("t --token=s3cr3t", "t --token=***");
	expect_clean("t --hf-token --verbose", "t --hf-token --verbose");
	expect_clean("t WANDB_API_KEY=s3cr3t", "t WANDB_API_KEY=***");
	expect_clean("t hf_abcdefghijkl", "t ***");
	expect_clean("t --x=sk-abcdefghijkl", "t --x=***");
	expect_clean("t --url postgres://me:pw@host/db", "t --url postgres://***@host/db");
	expect_clean("t --PASSWORD hunter2", "t --PASSWORD ***");
	expect_clean("t --tokenizer /models/tok", "t --tokenizer /models/tok");
	expect_clean("t --max-tokens 4096", "t --max-tokens 4096");
}

static void a_command_line_is_cut_to_its_room(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(lag_argv_clean(out, sizeof(out), "abcdef\0ghijkl", 14), 8);
	assert_memory_equal(out, "abcdef g", 8);
	assert_int_equal(lag_argv_clean(out, sizeof(out), "", 0), 0);
}

static CUptiResult fake_name(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
	static const char *const names[] = { NULL,
					     "cudaLaunchKernel_v7000",
					     "cudaLaunchKernel_ptsz_v7000",
					     "cudaGetDevice_v3020",
					     "cudaMalloc_v3020",
					     "cudaMallocAsync_v11020",
					     "cudaEventQuery_v3020",
					     "cudaEventRecordWithFlags_v11010",
					     "cuLaunchKernelEx",
					     "cuCtxGetCurrent",
					     "cuMemcpyHtoDAsync_v2" };

	(void)domain;
	if (cbid >= sizeof(names) / sizeof(names[0]) || !names[cbid])
		return CUPTI_ERROR_INVALID_PARAMETER;
	*name = names[cbid];
	return CUPTI_SUCCESS;
}

static void only_calls_that_matter_are_kept(void **state)
{
	static const struct {
		bool driver, wanted;
		const char *name;
	} expected[] = {
		{ false, true, "" }, /* without a name: kept */
		{ false, true, "cudaLaunchKernel" },
		{ false, true, "cudaLaunchKernel" },
		{ false, false, "cudaGetDevice" },
		{ false, true, "cudaMalloc" },
		{ false, false, "cudaMallocAsync" },
		{ false, false, "cudaEventQuery" },
		{ false, true, "cudaEventRecordWithFlags" },
		{ true, true, "cuLaunchKernelEx" },
		{ true, false, "cuCtxGetCurrent" },
		{ true, true, "cuMemcpyHtoDAsync" },
	};
	struct lag_cupti_api api = { .get_callback_name = fake_name };

	(void)state;
	for (uint32_t cbid = 0; cbid < sizeof(expected) / sizeof(expected[0]); cbid++) {
		size_t n;
		const char *name = lag_cupti_call_name(&api, expected[cbid].driver, cbid, &n);

		assert_int_equal(n, strlen(expected[cbid].name));
		assert_memory_equal(name, expected[cbid].name, n);
		assert_int_equal(lag_cupti_call_wanted(&api, expected[cbid].driver, cbid),
				 expected[cbid].wanted);
	}
}

static void wide_text_becomes_utf8(void **state)
{
	static wchar_t endless[10000];
	struct lag_nvtx_text text;

	(void)state;
	lag_nvtx_wide(&text, L"a\u00e9\u20ac\U0001f600z");
	assert_int_equal(text.n, 1 + 2 + 3 + 4 + 1);
	assert_memory_equal(text.text, "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z", text.n);
	lag_nvtx_wide(&text, NULL);
	assert_int_equal(text.n, 0);
	for (size_t i = 0; i + 1 < sizeof(endless) / sizeof(endless[0]); i++)
		endless[i] = 0x20ac;
	lag_nvtx_wide(&text, endless);
	assert_true(text.n <= LAG_NVTX_TEXT_MAX);
	assert_int_equal(text.n % 3, 0); /* cut between characters */
}

static void a_jump_of_the_clock_is_told_from_slewing(void **state)
{
	struct lag_rec_clock c = { .realtime_ns = 1000000000000, .monotonic_ns = 500000000000 };

	(void)state;
	assert_int_equal(lag_clock_step(&c), 0);
	c.realtime_ns += 1000400000; /* 400 ppm fast */
	c.monotonic_ns += 1000000000;
	assert_int_equal(lag_clock_step(&c), 0);
	c.realtime_ns += 1000000000 - 40000000;
	c.monotonic_ns += 1000000000;
	assert_int_equal(lag_clock_step(&c), -40000000);
	c.realtime_ns += 1000000000;
	c.monotonic_ns += 1000000000;
	assert_int_equal(lag_clock_step(&c), 0);
}

/* Whatever this machine's kernel says: it is read without a privilege, and has the right units. */
static void the_state_of_the_clock_is_read(void **state)
{
	struct lag_record rec;
	struct lag_rec_clock_state s;

	(void)state;
	lag_record_init(&rec, LAG_REC_clock_state);
	lag_clock_state(&rec.clock_state);
	s = rec.clock_state;
	assert_true(llabs(s.at_ns - lag_clock_now()) < INT64_C(5000000000));
	if (s.source == LAG_CLOCK_NONE) {
		assert_true(s.max_error_ns == LAG_NONE && s.synchronised == LAG_NONE &&
			    s.offset_ns == LAG_NONE && s.tai_s == LAG_NONE);
		return;
	}
	assert_int_equal(s.source, LAG_CLOCK_ADJTIMEX);
	assert_true(s.synchronised == 0 || s.synchronised == 1);
	assert_true(s.max_error_ns >= 0 && s.max_error_ns % 1000 == 0);
	assert_true(llabs(s.frequency_ppb) <= 500000); /* the kernel's own limit */
}

int main(void)
{
#define LAUNCHED(test) cmocka_unit_test_setup(test, no_launcher)
	const struct CMUnitTest tests[] = {
		LAUNCHED(the_closest_launcher_gives_the_rank),
		LAUNCHED(mpirun_inside_slurm_wins),
		LAUNCHED(what_is_no_number_is_no_rank),
		cmocka_unit_test(secrets_do_not_get_into_the_trace),
		cmocka_unit_test(a_command_line_is_cut_to_its_room),
		cmocka_unit_test(only_calls_that_matter_are_kept),
		cmocka_unit_test(wide_text_becomes_utf8),
		cmocka_unit_test(a_jump_of_the_clock_is_told_from_slewing),
		cmocka_unit_test(the_state_of_the_clock_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
