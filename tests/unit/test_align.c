/* SPDX-License-Identifier: Apache-2.0 */
/* Alignment's rules one by one, on inputs small enough to know the answer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/align_lab.h"
#include "tests/unit/unit.h"

enum {
	MAX = 64
};

#define T0 1700000000000000000LL
#define MS 1000000LL
#define US 1000LL

/* Two hosts with one device each; host 1 shows `ahead_ns` more, plus `drift`. */
struct small {
	struct lag_align_input in;
	struct lag_align_member members[2 * MAX];
	struct lag_align_collective collectives[MAX];
	struct lag_align_message messages[MAX];
	struct lag_align_bracket brackets[MAX];
	uint32_t device_host[4];
	int64_t ahead_ns;
	double drift;
};

static int64_t shown(const struct small *s, uint32_t host, int64_t t)
{
	return T0 + t + (host ? s->ahead_ns + llround(s->drift * (double)t) : 0);
}

static struct lag_align_member at(const struct small *s, uint32_t host, int64_t start, int64_t end)
{
	return (struct lag_align_member){ .host = host,
					  .device = host,
					  .start_ns = shown(s, host, start),
					  .end_ns = shown(s, host, end) };
}

static void init(struct small *s, int64_t ahead_ns, double drift)
{
	*s = (struct small){ .device_host = { 0, 1, 1, 1 }, .ahead_ns = ahead_ns, .drift = drift };
	s->in = (struct lag_align_input){ .n_hosts = 2,
					  .n_devices = 2,
					  .device_host = s->device_host,
					  .members = s->members,
					  .collectives = s->collectives,
					  .messages = s->messages,
					  .brackets = s->brackets };
}

static void collective(struct small *s, enum lag_func func, int64_t t, int64_t late0, int64_t late1)
{
	struct lag_align_collective *c = &s->collectives[s->in.n_collectives++];
	int64_t end = t + (late0 > late1 ? late0 : late1) + 20 * US;
	*c = (struct lag_align_collective){ .func = func,
					    .bytes = 4,
					    .first_member = (uint32_t)s->in.n_members,
					    .n_members = 2,
					    .complete = true };
	s->members[s->in.n_members++] = at(s, 0, t + late0, end);
	s->members[s->in.n_members++] = at(s, 1, t + late1, end);
}

static void message(struct small *s, uint32_t src, int64_t t, int64_t takes)
{
	s->messages[s->in.n_messages++] =
		(struct lag_align_message){ .send = at(s, src, t, t + takes),
					    .recv = at(s, !src, t - MS, t + takes),
					    .bytes = 4096 };
}

static struct lag_align_result run(const struct small *s, const struct lag_aligner *how)
{
	struct lag_align_result res;
	struct lag_err err;
	assert_int_equal(how->align(&s->in, &res, &err), LAG_OK);
	assert_string_equal(res.method, how->name);
	return res;
}

/* Distance of host 1's corrected clock from host 0's, at a true time. */
static int64_t error_at(const struct small *s, const struct lag_align_result *res, int64_t t)
{
	assert_int_equal(res->reference_host, 0);
	return lag_align_apply(res, 1, 1, shown(s, 1, t)) - shown(s, 0, t);
}

static void test_registry_names_every_method(void **state)
{
	(void)state;
	assert_ptr_equal(lag_aligners[0], &lag_aligner_none);
	assert_ptr_equal(lag_aligners[1], &lag_aligner_wall);
	assert_ptr_equal(lag_aligners[2], &lag_aligner_collective);
	assert_null(lag_aligners[3]);
}

static void test_none_changes_and_claims_nothing(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 5 * MS, 0);
	message(&s, 1, 50 * MS, 100 * US); /* sent 5 ms ahead: seems to arrive before it starts */
	message(&s, 0, 60 * MS, 100 * US);
	struct lag_align_result res = run(&s, &lag_aligner_none);
	assert_int_equal(lag_align_apply(&res, 1, 1, T0 + 7), T0 + 7);
	assert_true(lag_align_uncertainty(&res, 1, 1, T0) == INT64_MAX);
	assert_int_equal(res.n_pairs, 2);
	assert_int_equal(res.n_violations, 1);
	lag_align_release(&res);
}

static void test_offset_and_drift_from_ends(void **state)
{
	(void)state;
	static struct small s;
	init(&s, -37 * MS, 150e-6);
	for (int i = 0; i < 30; i++)
		collective(&s, LAG_FUNC_ALL_REDUCE, i * 100 * MS, i % 3 * MS, i % 2 * 2 * MS);
	struct lag_align_result res = run(&s, &lag_aligner_collective);
	for (int64_t t = 0; t <= 3000 * MS; t += 500 * MS)
		assert_true(llabs(error_at(&s, &res, t)) < 200);
	assert_int_equal(res.n_violations, 0);
	assert_int_equal(res.n_pairs, 60);
	lag_align_release(&res);
}

/* The latest start says nothing: one rank may always come last. */
static void test_straggler_does_not_move_the_fit(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 2 * MS, 0);
	for (int i = 0; i < 30; i++)
		collective(&s, LAG_FUNC_ALL_REDUCE, i * 100 * MS, 0, 8 * MS);
	struct lag_align_result res = run(&s, &lag_aligner_collective);
	assert_true(llabs(error_at(&s, &res, 1500 * MS)) < 200);
	/* With one last arriver there is nothing to compare it with. */
	assert_true(res.arriver_bias_ns < 0);
	lag_align_release(&res);
}

static void test_bias_by_last_arriver_is_reported(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 0, 0);
	for (int i = 0; i < 40; i++) {
		bool first = i % 2;
		collective(&s, LAG_FUNC_ALL_REDUCE, i * 100 * MS, first ? 0 : 8 * MS,
			   first ? 8 * MS : 0);
		/* Host 1 ends 12 us later whenever host 0 came last. */
		s.members[s.in.n_members - 1].end_ns += first ? 0 : 12 * US;
	}
	struct lag_align_result res = run(&s, &lag_aligner_collective);
	assert_true(res.arriver_bias_ns > 5000 && res.arriver_bias_ns < 7000);
	lag_align_release(&res);
}

static void test_rooted_operations_are_not_used(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 30 * MS, 0);
	for (int i = 0; i < 20; i++) {
		collective(&s, LAG_FUNC_BROADCAST, i * 100 * MS, 0, MS);
		collective(&s, LAG_FUNC_REDUCE, i * 100 * MS + 50 * MS, 0, MS);
	}
	struct lag_align_result res = run(&s, &lag_aligner_collective);
	assert_true(lag_align_uncertainty(&res, 1, 1, T0) == INT64_MAX);
	assert_int_equal(res.segments[1].n_observations, 0);
	lag_align_release(&res);
}

static void test_empty_all_to_all_is_not_used(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 30 * MS, 0);
	for (int i = 0; i < 20; i++) {
		collective(&s, LAG_FUNC_ALL_TO_ALL, i * 100 * MS, 0, MS);
		s.collectives[i].bytes = 0;
	}
	struct lag_align_result res = run(&s, &lag_aligner_collective);
	assert_int_equal(res.segments[1].n_observations, 0);
	lag_align_release(&res);
}

static void test_messages_join_hosts_without_collectives(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 11 * MS, -80e-6);
	for (int i = 0; i < 30; i++)
		message(&s, (uint32_t)i % 2, (i + 1) * 100 * MS, 300 * US + i % 5 * US);
	struct lag_align_result res = run(&s, &lag_aligner_collective);
	for (int64_t t = 100 * MS; t <= 3000 * MS; t += 500 * MS)
		assert_true(llabs(error_at(&s, &res, t)) < 3000);
	int64_t u = lag_align_uncertainty(&res, 1, 1, shown(&s, 1, 1000 * MS));
	assert_true(u > 3000 && u < 150 * US);
	/* Causality leaves about one transfer to each side. */
	assert_true(res.segments[1].bound_hi_ns - res.segments[1].bound_lo_ns > 500e3);
	lag_align_release(&res);
}

static void test_one_direction_gives_no_estimate(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 11 * MS, 0);
	for (int i = 0; i < 30; i++)
		message(&s, 0, (i + 1) * 100 * MS, 300 * US);
	struct lag_align_result res = run(&s, &lag_aligner_collective);
	assert_true(lag_align_uncertainty(&res, 1, 1, T0) == INT64_MAX);
	lag_align_release(&res);
}

static void test_wall_states_what_causality_allows(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 400 * US, 0);
	for (int i = 0; i < 20; i++)
		message(&s, (uint32_t)i % 2, (i + 1) * 100 * MS, 900 * US);
	struct lag_align_result res = run(&s, &lag_aligner_wall);
	assert_int_equal(error_at(&s, &res, 500 * MS), 400 * US);
	assert_true(res.segments[1].bound_lo_ns < -400e3);
	assert_true(res.segments[1].bound_hi_ns > -400e3);
	assert_true(lag_align_uncertainty(&res, 1, 1, T0) >= 400 * US);
	lag_align_release(&res);
}

/* Host 1's clock is set 20 ms forward at true time 1 s; only brackets know. */
static void test_set_clock_makes_a_segment(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 0, 0);
	for (int i = 0; i < 4; i++) {
		int64_t t = i * 600 * MS;
		int64_t by = t >= 1000 * MS ? 20 * MS : 0;
		s.brackets[s.in.n_brackets++] =
			(struct lag_align_bracket){ .host = 1,
						    .device = UINT32_MAX,
						    .realtime_ns = T0 + t + by,
						    .cupti_ns = T0 + t + by,
						    .monotonic_ns = 77 * MS + t,
						    .bracket_ns = 50 };
	}
	struct lag_align_result res = run(&s, &lag_aligner_wall);
	assert_int_equal(res.n_segments, 3);
	assert_int_equal(res.segments[2].host, 1);
	int64_t late = 1600 * MS;
	assert_int_equal(lag_align_apply(&res, 1, 1, T0 + late + 20 * MS), T0 + late);
	assert_int_equal(lag_align_apply(&res, 1, 1, T0 + 100 * MS), T0 + 100 * MS);
	lag_align_release(&res);
}

/* Ends that differ between devices of one host are uncertainty, not a correction. */
static void test_devices_are_never_corrected_from_ends(void **state)
{
	(void)state;
	struct lag_lab lab;
	struct lag_align_result res;
	struct lag_err err;
	struct lag_lab_opts o = lag_lab_defaults(3);
	o.device_us = 40;
	lag_lab_make(&lab, &o);
	assert_int_equal(lag_aligner_collective.align(&lab.in, &res, &err), LAG_OK);
	assert_true(res.n_devices >= lab.in.n_devices);
	for (size_t i = 0; i < res.n_devices; i++)
		assert_true(res.devices[i].offset_ns == 0);
	lag_align_release(&res);
	lag_lab_release(&lab);
}

static void test_own_brackets_correct_a_device(void **state)
{
	(void)state;
	struct lag_lab lab;
	struct lag_align_result res;
	struct lag_err err;
	struct lag_lab_opts o = lag_lab_defaults(4);
	o.steps = 60;
	o.device_us = 40;
	o.step_us = 0;
	o.own_brackets = true;
	lag_lab_make(&lab, &o);
	assert_int_equal(lag_aligner_collective.align(&lab.in, &res, &err), LAG_OK);
	for (uint32_t d = 0; d < lab.in.n_devices; d++) {
		int64_t t = lab.length_ns / 3;
		uint32_t h = lab.device_host[d];
		int64_t as_host = lag_align_apply(&res, h, UINT32_MAX, lag_lab_host_ns(&lab, h, t));
		int64_t as_device = lag_align_apply(&res, h, d, lag_lab_device_ns(&lab, d, t));
		assert_true(llabs(as_device - as_host) < 1000);
	}
	lag_align_release(&res);
	lag_lab_release(&lab);
}

static void test_unknown_times_are_left_out(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 2 * MS, 0);
	for (int i = 0; i < 30; i++)
		collective(&s, LAG_FUNC_ALL_GATHER, i * 100 * MS, 0, MS);
	s.members[0].end_ns = INT64_MIN;
	s.members[5].start_ns = INT64_MIN;
	s.members[9].end_ns = s.members[9].start_ns - 1;
	struct lag_align_result res = run(&s, &lag_aligner_collective);
	assert_true(llabs(error_at(&s, &res, 1500 * MS)) < 200);
	assert_int_equal(res.n_pairs, 57);
	lag_align_release(&res);
}

/* A few ends that are wildly off (an operation matched wrongly) do not move the rest. */
static void test_outliers_do_not_move_the_fit(void **state)
{
	(void)state;
	static struct small s;
	init(&s, 2 * MS, 20e-6);
	for (int i = 0; i < 40; i++) {
		collective(&s, LAG_FUNC_REDUCE_SCATTER, i * 100 * MS, 0, MS);
		if (i % 8 == 3)
			s.members[s.in.n_members - 1].end_ns += 90 * MS;
	}
	struct lag_align_result res = run(&s, &lag_aligner_collective);
	assert_true(llabs(error_at(&s, &res, 500 * MS)) < 2000);
	assert_true(llabs(error_at(&s, &res, 3500 * MS)) < 2000);
	lag_align_release(&res);
}

/* Recordings come from files: any number may stand anywhere. Run under sanitizers. */
static void test_hostile_times(void **state)
{
	(void)state;
	static const int64_t odd[] = { INT64_MIN,
				       INT64_MIN + 1,
				       -1,
				       0,
				       1,
				       T0,
				       T0 + MS,
				       T0 + 77 * MS,
				       INT64_MAX / 2,
				       INT64_MAX / 4 - 1,
				       INT64_MAX - 1,
				       INT64_MAX };
	const uint64_t n_odd = sizeof(odd) / sizeof(odd[0]);
	uint64_t x = 12345;
	for (int round = 0; round < 300; round++) {
		static struct small s;
		init(&s, 3 * MS, 0);
		for (int i = 0; i < 12; i++) {
			collective(&s, LAG_FUNC_ALL_REDUCE, i * MS, 0, 10 * US);
			message(&s, (uint32_t)i % 2, i * MS, 100 * US);
			s.brackets[s.in.n_brackets++] =
				(struct lag_align_bracket){ .host = 1, .device = 1 };
		}
		/* Every field that is a time, with a chance of being any of them. */
		int64_t *fields[] = {
			&s.members[round % 24].start_ns,       &s.members[round % 7].end_ns,
			&s.messages[round % 12].send.start_ns, &s.messages[round % 5].recv.end_ns,
			&s.brackets[round % 12].realtime_ns,   &s.brackets[round % 11].monotonic_ns,
			&s.brackets[round % 10].cupti_ns,      &s.brackets[round % 9].bracket_ns
		};
		for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++) {
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
			*fields[f] = odd[(x >> 33) % n_odd];
		}
		for (int k = 0; lag_aligners[k]; k++) {
			struct lag_align_result res = run(&s, lag_aligners[k]);
			for (uint64_t f = 0; f < n_odd; f++) {
				lag_align_apply(&res, 1, 1, odd[f]);
				assert_true(lag_align_uncertainty(&res, 1, 1, odd[f]) >= 0);
			}
			lag_align_release(&res);
		}
	}
}

static void test_nothing_at_all(void **state)
{
	(void)state;
	const struct lag_align_input in = { 0 };
	struct lag_err err;
	for (int i = 0; lag_aligners[i]; i++) {
		struct lag_align_result res;
		assert_int_equal(lag_aligners[i]->align(&in, &res, &err), LAG_OK);
		assert_int_equal(res.n_segments, 0);
		assert_int_equal(lag_align_apply(&res, 0, 0, 5), 5);
		lag_align_release(&res);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registry_names_every_method),
		cmocka_unit_test(test_none_changes_and_claims_nothing),
		cmocka_unit_test(test_offset_and_drift_from_ends),
		cmocka_unit_test(test_straggler_does_not_move_the_fit),
		cmocka_unit_test(test_bias_by_last_arriver_is_reported),
		cmocka_unit_test(test_rooted_operations_are_not_used),
		cmocka_unit_test(test_empty_all_to_all_is_not_used),
		cmocka_unit_test(test_messages_join_hosts_without_collectives),
		cmocka_unit_test(test_one_direction_gives_no_estimate),
		cmocka_unit_test(test_wall_states_what_causality_allows),
		cmocka_unit_test(test_set_clock_makes_a_segment),
		cmocka_unit_test(test_devices_are_never_corrected_from_ends),
		cmocka_unit_test(test_own_brackets_correct_a_device),
		cmocka_unit_test(test_unknown_times_are_left_out),
		cmocka_unit_test(test_outliers_do_not_move_the_fit),
		cmocka_unit_test(test_hostile_times),
		cmocka_unit_test(test_nothing_at_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
