/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel names: what the demangler reads, what it leaves alone, short names, and renaming rules. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge/names.h"

static void expect(const char *mangled, const char *full)
{
	struct lag_buf out = { 0 };

	if (!lag_demangle(mangled, &out))
		fail_msg("not read: %s", mangled);
	assert_string_equal(lag_buf_text(&out), full);
	lag_buf_release(&out);
}

static void expect_short(const char *full, const char *brief)
{
	struct lag_buf out = { 0 };

	lag_name_short(full, &out);
	assert_string_equal(lag_buf_text(&out), brief);
	lag_buf_release(&out);
}

static void kernels_are_read(void **state)
{
	(void)state;
	expect("_Z6kernelv", "kernel()");
	expect("_Z7add_vecPfPKfi", "add_vec(float*, float const*, int)");
	expect("_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE",
	       "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
	expect("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
	       "11FillFunctorIfEESt5arrayIPcLm1EEEEv"
	       "iT0_T1_",
	       "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
	       "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, "
	       "1ul>)");
	expect("_ZN2at6native12_GLOBAL__N_14copyILb1EEEvv",
	       "void at::native::(anonymous namespace)::copy<true>()");
	expect("_ZN3foo3barIJifEEEvDpT_", "void foo::bar<int, float>(int, float)");
	expect("_ZN3foo3barIJEEEvDpT_", "void foo::bar<>()");
	expect("_Z1fILin3EEvRA4_i", "void f<-3>(int (&) [4])");
	expect("_Z1gPFvifE", "g(void (*)(int, float))");
	expect("_Z1hIN1a1bEEvOT_", "void h<a::b>(a::b&&)");
	expect("_Z1hIRiEvOT_", "void h<int&>(int&)");
	expect("_ZNK1a1bclEf", "a::b::operator()(float) const");
	expect("_ZZN1a4initEvENKUlfE_clEf",
	       "a::init()::{lambda(float)#1}::operator()(float) const");
	expect("_ZN1kILN1a1eE2EEEvv", "void k<(a::e)2>()");
	expect("_Z3runv.constprop.0", "run() [clone .constprop.0]");
	expect("_Z1bu6__bf16DF16_DF16b", "b(__bf16, _Float16, std::bfloat16_t)");
}

static void what_is_no_kernel_is_left_alone(void **state)
{
	static const char *const names[] = {
		"",
		"_",
		"_Z",
		"main",
		"triton_poi_fused_add_0d1d2",
		"_Z5",
		"_Z9short",
		"_Z1fT_T0_x9",
		"_ZTV3foo",
		"_Z3fooIXplLi1ELi2EEEvv",
		"_ZN3foo",
		"_Z3fooS_",
		"_Z3fooi junk",
		"_Z999999999999a",
		"_ZL",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct lag_buf out = { 0 };

		if (lag_demangle(names[i], &out))
			fail_msg("%s became %s", names[i], lag_buf_text(&out));
		assert_int_equal(out.n, 0);
		lag_buf_release(&out);
	}
}

/* Each substitution doubles the text: 2^40 characters if nothing bounded it. */
static void hostile_names_cost_little(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[4096] = "_Z1fI1aIiiE";
	struct lag_buf out = { 0 };
	char *deep = malloc(100001);

	(void)state;
	/* Of the substitutions, f and a are 0 and 1, a<int, int> is 2; then a name and a type each. */
	for (int i = 2; i < 36; i += 2) {
		(void)snprintf(name + strlen(name), 64, "1bIS%c_S%c_E", digits[i - 1],
			       digits[i - 1]);
	}
	(void)snprintf(name + strlen(name), 8, "Evv");
	/* A few levels are fine. */
	assert_true(lag_demangle("_Z1fI1bI1aIiiES1_EEvv", &out));
	lag_buf_clear(&out);
	assert_false(lag_demangle(name, &out));
	assert_non_null(deep);
	memset(deep, 'P', 100000);
	memcpy(deep, "_Z1f", 4);
	deep[100000] = '\0';
	assert_false(lag_demangle(deep, &out));
	deep[9000] = '\0';
	assert_false(lag_demangle(deep, &out));
	free(deep);
	lag_buf_release(&out);
}

static void every_prefix_of_a_name_is_read_or_refused(void **state)
{
	static const char name[] =
		"_ZN2at6native27unrolled_elementwise_kernelINS0_13AUnaryFunctorIfffNS0_15binary_"
		"internal10MulFunctorIfEEEESt5arrayIPcLm2EELi4E23TrivialOffsetCalculatorILi1EjES9_"
		"NS0_6memory15LoadWithoutCastENSA_16StoreWithoutCastEEEviT_T0_T2_T3_T4_T5_";
	struct lag_buf out = { 0 };

	(void)state;
	assert_true(lag_demangle(name, &out));
	assert_non_null(strstr(lag_buf_text(&out), "MulFunctor<float>"));
	for (size_t n = 0; n < sizeof(name) - 1; n++) {
		char cut[512];

		(void)snprintf(cut, sizeof(cut), "%.*s", (int)n, name);
		lag_buf_clear(&out);
		(void)lag_demangle(cut, &out);
	}
	lag_buf_release(&out);
}

static void short_names_keep_scope_and_drop_the_rest(void **state)
{
	(void)state;
	expect_short("void at::native::k<4, std::array<char*, 2ul> >(int, float)", "at::native::k");
	expect_short("void at::native::(anonymous namespace)::k<1>(int)", "at::native::k");
	expect_short("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
		     "ncclDevKernel_SendRecv");
	expect_short("triton_poi_fused_add_0", "triton_poi_fused_add_0");
	expect_short("a::b::operator()(float) const", "a::b::operator()");
	expect_short("bool a::operator<(a::x const&, a::x const&)", "a::operator<");
	expect_short("float* k<int>(float*)", "k");
	expect_short("a::init()::{lambda(float)#1}::operator()(float) const", "a::init");
	expect_short("Memcpy HtoD (Pinned -> Device)", "HtoD");
	expect_short("(broken", "(broken");
	expect_short("<<<", "<<<");
	expect_short("", "");
}

static void communication_kernels_are_known_by_name(void **state)
{
	(void)state;
	assert_true(lag_name_is_communication("ncclDevKernel_AllReduce_Sum_f32_RING_LL"));
	assert_true(lag_name_is_communication("ncclKernel_SendRecv_RING_SIMPLE(ncclWorkElem)"));
	assert_true(lag_name_is_communication("void deep_ep::intranode::dispatch<8>(int)"));
	assert_true(
		lag_name_is_communication("void vllm::cross_device_reduce_1stage<half, 8>(int)"));
	assert_false(lag_name_is_communication("void cutlass::Kernel2<x>(x::Params)"));
	assert_false(lag_name_is_communication("reduce_kernel"));
}

static void write_rules(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static void rules_rename_and_bad_rules_are_named(void **state)
{
	char path[] = "/tmp/laggard-rules-XXXXXX", bad[] = "/tmp/laggard-rules-XXXXXX";
	struct lag_renames renames;
	struct lag_buf out = { 0 };
	struct lag_err err;

	(void)state;
	write_rules(
		path,
		"# mine\n\n^ncclDevKernel_([A-Za-z]+) => NCCL \\1\n gemm  =>  matrix product\n");
	assert_int_equal(lag_renames_load(path, &renames, &err), LAG_OK);
	assert_true(lag_renames_apply(&renames, "ncclDevKernel_AllReduce_Sum", &out));
	assert_string_equal(lag_buf_text(&out), "NCCL AllReduce");
	lag_buf_clear(&out);
	assert_true(lag_renames_apply(&renames, "sm90_gemm_f16", &out));
	assert_string_equal(lag_buf_text(&out), "matrix product");
	assert_false(lag_renames_apply(&renames, "softmax", &out));
	lag_renames_release(&renames);
	write_rules(bad, "ok => fine\n[unclosed => x\n");
	assert_int_equal(lag_renames_load(bad, &renames, &err), LAG_ERR_INPUT);
	assert_non_null(strstr(err.text, ":2: '[unclosed'"));
	(void)unlink(path);
	(void)unlink(bad);
	lag_buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_are_read),
		cmocka_unit_test(what_is_no_kernel_is_left_alone),
		cmocka_unit_test(hostile_names_cost_little),
		cmocka_unit_test(every_prefix_of_a_name_is_read_or_refused),
		cmocka_unit_test(short_names_keep_scope_and_drop_the_rest),
		cmocka_unit_test(communication_kernels_are_known_by_name),
		cmocka_unit_test(rules_rename_and_bad_rules_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
