/* SPDX-License-Identifier: Apache-2.0 */
/* The same job by simdjson's on-demand interface: bench_simdjson FILE [ROUNDS]. Only this reference is
 * C++, and only it is compiled for the machine it runs on. */
#include "tests/bench/kineto_job.h"

#include <cmath>
#include <cstring>
#include <simdjson.h>

using namespace simdjson;

static int64_t integer(ondemand::value value)
{
	int64_t v = 0;

	return value.get_int64().get(v) ? 0 : v;
}

static int64_t nanoseconds(ondemand::value value)
{
	double v = 0;

	return value.get_double().get(v) ? 0 : std::llround(v * 1000);
}

static void read_args(ondemand::value value, kineto_fields &f)
{
	ondemand::object args;

	if (value.get_object().get(args))
		return;
	for (auto item : args) {
		auto key = item.key().value_unsafe();

		if (key == "External id")
			f.external = integer(item.value());
		else if (key == "correlation")
			f.correlation = integer(item.value());
		else if (key == "stream")
			f.stream = integer(item.value());
		else if (key == "device")
			f.device = integer(item.value());
	}
}

static void read_text(ondemand::value value, const char *&text, size_t &n)
{
	std::string_view v;

	if (value.get_string().get(v))
		return;
	text = v.data();
	n = v.size();
}

static void read_event(ondemand::object event, kineto_sum &sum)
{
	kineto_fields f = {};
	const char *phase = nullptr;
	size_t n_phase = 0;

	for (auto item : event) {
		auto key = item.key().value_unsafe();

		if (key == "ph")
			read_text(item.value(), phase, n_phase);
		else if (key == "cat")
			read_text(item.value(), f.cat, f.n_cat);
		else if (key == "name")
			read_text(item.value(), f.name, f.n_name);
		else if (key == "pid")
			f.pid = integer(item.value());
		else if (key == "tid")
			f.tid = integer(item.value());
		else if (key == "ts")
			f.ts_ns = nanoseconds(item.value());
		else if (key == "dur")
			f.dur_ns = nanoseconds(item.value());
		else if (key == "args")
			read_args(item.value(), f);
	}
	f.phase = n_phase == 1 ? phase[0] : '?';
	kineto_add(&sum, &f);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? (int)strtol(argv[2], nullptr, 10) : 1;
	double best = 1e9;
	kineto_sum sum = {};
	size_t n;

	if (argc < 2)
		return 2;
	char *bytes = kineto_load(argv[1], &n);
	long before = kineto_private_kib(), kib = 0;
	ondemand::parser parser;
	for (int i = 0; i < rounds; i++) {
		double start = kineto_now(CLOCK_THREAD_CPUTIME_ID);
		ondemand::document doc;
		ondemand::array events;

		sum = {};
		if (parser.iterate(padded_string_view(bytes, n, n + 64)).get(doc) ||
		    doc["traceEvents"].get_array().get(events))
			return 2;
		for (auto element : events) {
			ondemand::object event;

			if (element.get_object().get(event))
				return 2;
			read_event(event, sum);
		}
		double took = kineto_now(CLOCK_THREAD_CPUTIME_ID) - start;
		best = took < best ? took : best;
		kib = kineto_private_kib() - before;
	}
	free(bytes);
	kineto_print(&sum, best, n, kib);
	return 0;
}
