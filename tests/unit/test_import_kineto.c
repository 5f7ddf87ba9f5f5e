/* SPDX-License-Identifier: Apache-2.0 */
/* Kineto traces in every dialect, small ones written here and, where they are at hand, real ones with
 * the answers other tools gave. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "merge/importer.h"
#include "viz/model/interval.h"

struct reading {
	struct lag_pool pool;
	struct lag_part part;
	struct lag_err err;
	enum lag_status status;
	const char *text;
	size_t n, at;
	gzFile file;
};

static enum lag_status take(struct lag_part_sink *sink, struct lag_part *part, struct lag_err *err)
{
	struct reading *r = sink->state;

	(void)err;
	r->part = *part;
	return LAG_OK;
}

static long read_some(struct lag_input *in, void *buf, size_t room, struct lag_err *err)
{
	struct reading *r = in->state;
	size_t n = r->n - r->at;

	(void)err;
	if (r->file)
		return gzread(r->file, buf, (unsigned)(room < 65536 ? room : 65536));
	n = n < room ? n : room;
	memcpy(buf, r->text + r->at, n);
	r->at += n;
	return (long)n;
}

static void import(struct reading *r, const char *path)
{
	static const struct lag_import_opts opts = { 0 };
	struct lag_input in = { .path = path, .read = read_some, .state = r };
	struct lag_part_sink sink = { .take = take, .state = r };

	assert_int_equal(lag_pool_init(&r->pool), LAG_OK);
	r->status = lag_importer_kineto.import(&in, &r->pool, &opts, &sink, &r->err);
}

static void open_text(struct reading *r, const char *path, const char *text)
{
	*r = (struct reading){ .text = text, .n = strlen(text) };
	import(r, path);
}

static void done(struct reading *r)
{
	lag_part_release(&r->part);
	lag_pool_release(&r->pool);
}

static const char *name_of(const struct reading *r, int64_t id)
{
	return lag_strtab_get(&r->pool.strings, (uint32_t)id);
}

/* False, and skipping is due, where the real traces are not at hand. */
static bool open_data(struct reading *r, const char *name)
{
	const char *root = getenv("LAGGARD_TEST_DATA");
	char path[1024];

	*r = (struct reading){ 0 };
	(void)snprintf(path, sizeof(path), "%s/kineto/%s", root ? root : "../shared/data", name);
	r->file = gzopen(path, "rb");
	if (!r->file) {
		print_message("skipped: no %s (LAGGARD_TEST_DATA)\n", path);
		return false;
	}
	import(r, path);
	(void)gzclose(r->file);
	return true;
}

#define KERNEL(ts, dur, corr, args)                                                      \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":" ts \
	",\"dur\":" dur                                                                  \
	",\"args\":{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":" corr args "}}"
#define LAUNCH(ts, dur, corr)                                                                     \
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,\"tid\":" \
	"11,"                                                                                     \
	"\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"cbid\":211,\"correlation\":" corr "}}"

static void the_three_time_formats_are_exact(void **state)
{
	static const struct {
		const char *json;
		int64_t start, end;
	} cases[] = {
		{ "{\"traceEvents\":[" KERNEL("1694128201428473", "8", "1", "") "]}",
		  1694128201428473000, 1694128201428481000 },
		{ "{\"traceEvents\":[" KERNEL("1713000000123456.789", "0.001", "1", "") "]}",
		  1713000000123456789, 1713000000123456790 },
		{ "{\"baseTimeNanoseconds\":1711929600000000000,\"traceEvents\":[" KERNEL(
			  "4458676522690.655", "156.777", "1", "") "]}",
		  1716388276522690655, 1716388276522847432 },
		{ "{\"traceEvents\":[" KERNEL("-1.5", "\"2.25\"", "1",
					      "") "],"
						  "\"baseTimeNanoseconds\":1711929600000000000}",
		  1711929599999998500, 1711929600000000750 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reading r;

		open_text(&r, "trace.json", cases[i].json);
		assert_int_equal(r.status, LAG_OK);
		assert_int_equal(LAG_PART_COUNT(&r.part, kernel), 1);
		assert_int_equal(LAG_PART_GET(&r.part, kernel, 0).start_ns, cases[i].start);
		assert_int_equal(LAG_PART_GET(&r.part, kernel, 0).end_ns, cases[i].end);
		done(&r);
	}
}

static void names_and_numbers_of_2021_are_understood(void **state)
{
	struct reading r;

	(void)state;
	open_text(&r, "w.json",
		  "{\"schemaVersion\":1,\"traceEvents\":["
		  "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"k\",\"pid\":0,\"tid\":\"stream 7\","
		  "\"ts\":10,\"dur\":2,\"args\":{\"device\":0,\"stream\":7,\"correlation\":5,"
		  "\"external id\":3,\"grid\":[4,2,1],\"block\":[128,1,1],\"shared memory\":64,"
		  "\"registers per thread\":32}},"
		  "{\"ph\":\"X\",\"cat\":\"Memcpy\",\"name\":\"Memcpy HtoD (Pageable -> Device)\","
		  "\"pid\":1,\"tid\":\"stream 9\",\"ts\":1,\"dur\":0,\"args\":{\"bytes\":640}},"
		  "{\"ph\":\"X\",\"cat\":\"Memset\",\"name\":\"Memset (Device)\",\"pid\":0,"
		  "\"tid\":\"stream 7\",\"ts\":3,\"dur\":1,\"args\":{\"bytes\":16}},"
		  "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":\"55\","
		  "\"tid\":\"56\",\"ts\":4,\"dur\":1,\"args\":{\"correlation\":5}},"
		  "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::add\",\"pid\":55,\"tid\":56,"
		  "\"ts\":4,\"dur\":1}]}");
	assert_int_equal(r.status, LAG_OK);
	assert_int_equal(LAG_PART_GET(&r.part, kernel, 0).stream, 7);
	assert_int_equal(LAG_VEC_AT(&r.pool.configs, struct lag_rec_launch_config, 0).grid_x, 4);
	assert_int_equal(LAG_VEC_AT(&r.pool.configs, struct lag_rec_launch_config, 0).registers,
			 32);
	assert_int_equal(LAG_PART_GET(&r.part, memcpy, 0).device, 1);
	assert_int_equal(LAG_PART_GET(&r.part, memcpy, 0).stream, 9);
	assert_int_equal(LAG_PART_GET(&r.part, memcpy, 0).copy_kind, 1);
	assert_int_equal(LAG_PART_GET(&r.part, memcpy, 0).src_kind, 1);
	assert_int_equal(LAG_PART_GET(&r.part, memcpy, 0).dst_kind, 3);
	assert_int_equal(LAG_PART_GET(&r.part, memcpy, 0).end_ns,
			 LAG_PART_GET(&r.part, memcpy, 0).start_ns);
	assert_int_equal(LAG_PART_GET(&r.part, memset, 0).bytes, 16);
	assert_int_equal(LAG_PART_GET(&r.part, api, 0).tid, 56);
	assert_int_equal(r.part.process.pid, 55);
	assert_int_equal(LAG_PART_COUNT(&r.part, range), 0);
	done(&r);
}

#define GROUP                                                                             \
	",\"Collective name\":\"_reduce_scatter_base\",\"In msg nelems\":4096,\"Out msg " \
	"nelems\":1024,"                                                                  \
	"\"Group size\":4,\"dtype\":\"c10::BFloat16\",\"Process Group Name\":\"3\","      \
	"\"Process Group Description\": ,\"Process Group Ranks\":\"[1, 3, 5, 7]\",\"Seq\":"
#define RANK5 "\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":5,\"world_size\":8}"

static void a_kernels_own_metadata_becomes_an_operation(void **state)
{
	struct reading r;

	(void)state;
	open_text(&r, "t.json",
		  "{" RANK5 ",\"traceEvents\":[" KERNEL("50", "5", "2", GROUP "41") "," KERNEL(
			  "10", "5", "1", GROUP "40") "," LAUNCH("8", "1.5", "1") "]}");
	assert_int_equal(r.status, LAG_WARN); /* the missing values are repaired */
	assert_int_equal(LAG_PART_COUNT(&r.part, op), 2);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).func, LAG_FUNC_REDUCE_SCATTER);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).count, 1024);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).datatype, LAG_DT_BFLOAT16);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).sources, LAG_OP_FROM_META);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).seq, 40);
	assert_int_equal(LAG_PART_AT(&r.part, op, 1).seq, 41);
	/* The launch call where it is known, else the kernel's start. */
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).enter_ns, 8000);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).leave_ns, 9500);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).tid, 11);
	assert_int_equal(LAG_PART_AT(&r.part, op, 1).enter_ns, 50000);
	/* In the file's order: the later kernel stands first. */
	assert_int_equal(LAG_PART_GET(&r.part, kernel, 0).op_id, LAG_PART_AT(&r.part, op, 1).op_id);
	assert_int_equal(LAG_PART_GET(&r.part, kernel, 1).op_id, LAG_PART_AT(&r.part, op, 0).op_id);
	assert_int_equal(LAG_PART_COUNT(&r.part, comm), 1);
	assert_int_equal(LAG_PART_AT(&r.part, comm, 0).n_ranks, 4);
	assert_int_equal(LAG_PART_AT(&r.part, comm, 0).comm_rank, 2);
	assert_int_equal(LAG_PART_COUNT(&r.part, comm_member), 4);
	assert_int_equal(LAG_PART_AT(&r.part, comm_member, 3).rank, 7);
	done(&r);
}

#define PARAM_COMMS(ts, dur, name, more)                                                           \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"pid\":9,\"tid\":11,"   \
	"\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"Collective name\":\"" name                      \
	"\",\"In msg nelems\":8,"                                                                  \
	"\"Out msg nelems\":8,\"Group size\":2,\"dtype\":\"Float\",\"Process Group Name\":\"pp\"," \
	"\"Process Group Ranks\":[4,5]" more "}}"

#define SEND_TO_0   ",\"Dst Rank\":0"
#define RECV_FROM_4 ",\"Src Rank\":4"
/* clang-format off */
#define CALLS                                                                      \
	LAUNCH("12", "1", "1") "," LAUNCH("22", "1", "2") "," LAUNCH("26", "1", "3") "," \
	PARAM_COMMS("10", "5", "send", SEND_TO_0) ","                                   \
	PARAM_COMMS("20", "4", "recv", RECV_FROM_4) ","                                 \
	PARAM_COMMS("25", "3", "send", SEND_TO_0)

/* clang-format on */

static void metadata_of_the_cpu_event_around_the_launch_is_used(void **state)
{
	struct reading r;

	(void)state;
	open_text(&r, "t.json",
		  "{" RANK5 ",\"traceEvents\":["
		  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_SendRecv(int)\","
		  "\"pid\":0,\"tid\":20,\"ts\":30,\"dur\":1,\"args\":{\"correlation\":1}},"
		  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_SendRecv(int)\","
		  "\"pid\":0,\"tid\":20,\"ts\":40,\"dur\":1,\"args\":{\"correlation\":2}},"
		  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_SendRecv(int)\","
		  "\"pid\":0,\"tid\":20,\"ts\":50,\"dur\":1,\"args\":{\"correlation\":3}}," CALLS
		  "]}");
	assert_int_equal(r.status, LAG_OK);
	assert_int_equal(LAG_PART_COUNT(&r.part, op), 3);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).func, LAG_FUNC_SEND);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).peer, 0);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).seq, 0);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).count, 8);
	assert_int_equal(LAG_PART_AT(&r.part, op, 1).func, LAG_FUNC_RECV);
	assert_int_equal(LAG_PART_AT(&r.part, op, 1).peer, 0); /* job rank 4 is its rank 0 */
	assert_int_equal(LAG_PART_AT(&r.part, op, 1).seq, 0);
	assert_int_equal(LAG_PART_AT(&r.part, op, 2).seq, 1);
	assert_int_equal(LAG_PART_AT(&r.part, comm, 0).comm_rank, 1);
	done(&r);
}

/* Where launch calls were not recorded, the external id still tells. */
static void metadata_is_found_by_external_id(void **state)
{
	struct reading r;

	(void)state;
	open_text(&r, "t.json",
		  "{" RANK5 ",\"traceEvents\":["
		  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_Generic(int)\","
		  "\"pid\":0,"
		  "\"tid\":20,\"ts\":30,\"dur\":1,\"args\":{\"correlation\":1,\"External "
		  "id\":77}}," PARAM_COMMS("10", "5", "broadcast", ",\"External id\":77") "]}");
	assert_int_equal(LAG_PART_COUNT(&r.part, op), 1);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).func, LAG_FUNC_BROADCAST);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).sources, LAG_OP_FROM_META);
	assert_string_equal(name_of(&r, LAG_PART_AT(&r.part, comm, 0).name), "pp");
	done(&r);
}

static void without_metadata_order_and_names_must_do(void **state)
{
	struct reading r;

	(void)state;
	open_text(
		&r, "t.json",
		"{" RANK5 ",\"traceEvents\":["
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclKernel_AllReduce_RING_LL_Sum_float"
		"(ncclWorkElem)\",\"pid\":0,\"tid\":20,\"ts\":40,\"dur\":1,\"args\":{}},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclKernel_SendRecv(x)\",\"pid\":0,"
		"\"tid\":20,\"ts\":30,\"dur\":1,\"args\":{\"correlation\":1}}," LAUNCH(
			"12", "1",
			"1") ","
			     "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"nccl:all_to_"
			     "all\",\"pid\":9,"
			     "\"tid\":11,\"ts\":10,\"dur\":9,\"args\":{\"Input Dims\":[[],[8,3]],"
			     "\"Input type\":[\"float\"]}}]}");
	assert_int_equal(r.status, LAG_OK);
	assert_int_equal(LAG_PART_COUNT(&r.part, op), 2);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).func, LAG_FUNC_ALL_TO_ALL);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).datatype, LAG_DT_FLOAT32);
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).seq, 0);
	assert_int_equal(LAG_PART_AT(&r.part, op, 1).func, LAG_FUNC_ALL_REDUCE);
	assert_int_equal(LAG_PART_AT(&r.part, op, 1).seq, 1);
	assert_int_equal(LAG_PART_AT(&r.part, op, 1).sources, LAG_OP_FROM_NAME);
	assert_int_equal(LAG_PART_AT(&r.part, comm, 0).n_ranks, 8);
	assert_int_equal(LAG_PART_AT(&r.part, comm, 0).comm_rank, 5);
	assert_int_equal(LAG_PART_COUNT(&r.part, comm_member), 0);
	assert_int_equal(r.part.notes.n, 1);
	done(&r);
}

static void cut_rank_lists_are_completed_from_start_and_stride(void **state)
{
	struct reading r;

	(void)state;
	open_text(
		&r, "t.json",
		"{" RANK5 ",\"traceEvents\":[" KERNEL(
			"1", "1", "1",
			",\"Collective name\":\"allreduce\",\"Group size\":40,\"Process Group "
			"Name\":"
			"\"7\",\"Process Group Ranks\":\"[1, 3, 5, ...]\",\"Global rank start\":1,"
			"\"Global rank stride\":2") "]}");
	assert_int_equal(LAG_PART_COUNT(&r.part, comm_member), 40);
	assert_int_equal(LAG_PART_AT(&r.part, comm_member, 39).rank, 79);
	assert_int_equal(LAG_PART_AT(&r.part, comm, 0).comm_rank, 2);
	done(&r);
}

/* A peer is given by its rank in the job, also where that is a rank of the group as well. */
static void peers_are_ranks_of_the_job(void **state)
{
	struct reading r;

	(void)state;
	open_text(&r, "t.json",
		  "{\"distributedInfo\":{\"rank\":1,\"world_size\":8},\"traceEvents\":[" KERNEL(
			  "1", "1", "1",
			  ",\"Collective name\":\"send\",\"Group size\":4,\"Process Group "
			  "Name\":\"7\","
			  "\"Process Group Ranks\":\"[1, 3, 5, 7]\",\"Dst Rank\":3") "]}");
	assert_int_equal(LAG_PART_AT(&r.part, op, 0).peer, 1);
	done(&r);
}

static int64_t hash_on(int rank)
{
	struct reading r;
	char json[1024];
	int64_t hash;

	(void)snprintf(
		json, sizeof(json),
		"{\"distributedInfo\":{\"rank\":%d,\"world_size\":8},\"traceEvents\":[" KERNEL(
			"1", "1", "1", GROUP "0") "]}",
		rank);
	open_text(&r, "t.json", json);
	hash = LAG_PART_AT(&r.part, comm, 0).hash;
	assert_int_equal(LAG_PART_AT(&r.part, comm, 0).comm_rank, rank / 2);
	done(&r);
	return hash;
}

static void members_agree_on_the_communicators_identity(void **state)
{
	(void)state;
	assert_int_equal(hash_on(1), hash_on(7));
}

static void synchronisation_becomes_edges(void **state)
{
	struct reading r;

	(void)state;
	open_text(
		&r, "t.json",
		"{\"traceEvents\":["
		"{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Wait Event\",\"pid\":0,"
		"\"tid\":24,\"ts\":1,\"dur\":2,\"args\":{\"cuda_sync_kind\":\"Stream Wait Event\","
		"\"wait_on_stream\":20,\"wait_on_cuda_event_record_corr_id\":1385,"
		"\"wait_on_cuda_event_id\":19,\"stream\":24,\"correlation\":1389,\"context\":1}},"
		"{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Context "
		"Sync\",\"pid\":0,\"tid\":-1,"
		"\"ts\":1,\"dur\":2,\"args\":{\"cuda_sync_kind\":\"Context Sync\",\"stream\":-1,"
		"\"correlation\":7}},"
		"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaEventRecord\",\"pid\":9,"
		"\"tid\":11,\"ts\":0.5,\"dur\":0.25,\"args\":{\"correlation\":1385}},"
		"{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"New Kind\",\"ts\":1,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#3\",\"pid\":1,"
		"\"tid\":2,\"ts\":1,\"dur\":9},"
		"{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"fwd\",\"pid\":0,"
		"\"tid\":7,\"ts\":1,\"dur\":9},"
		"{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"Activity Buffer Flush\",\"pid\":-1,"
		"\"tid\":0,\"ts\":1,\"dur\":1}]}");
	assert_int_equal(r.status, LAG_OK);
	assert_int_equal(LAG_PART_COUNT(&r.part, sync), 3);
	assert_int_equal(LAG_PART_GET(&r.part, sync, 0).kind, LAG_SYNC_STREAM_WAIT);
	assert_int_equal(LAG_PART_GET(&r.part, sync, 0).stream, 24);
	assert_int_equal(LAG_PART_GET(&r.part, sync, 0).record_correlation, 1385);
	assert_int_equal(LAG_PART_GET(&r.part, sync, 0).event_id, 19);
	assert_int_equal(LAG_PART_GET(&r.part, sync, 1).kind, LAG_SYNC_CONTEXT);
	assert_int_equal(LAG_PART_GET(&r.part, sync, 1).stream, LAG_NONE);
	/* The recording that the first one waits for. */
	assert_int_equal(LAG_PART_GET(&r.part, sync, 2).kind, LAG_SYNC_EVENT_RECORD);
	assert_int_equal(LAG_PART_GET(&r.part, sync, 2).stream, 20);
	assert_int_equal(LAG_PART_GET(&r.part, sync, 2).correlation, 1385);
	assert_int_equal(LAG_PART_GET(&r.part, sync, 2).start_ns, 500);
	assert_int_equal(r.part.n_unknown, 1);
	assert_int_equal(LAG_PART_GET(&r.part, range, 0).kind, LAG_RANGE_PUSH);
	assert_string_equal(name_of(&r, LAG_PART_GET(&r.part, range, 0).name), "ProfilerStep#3");
	assert_int_equal(LAG_PART_GET(&r.part, range, 1).kind, LAG_RANGE_GPU);
	assert_int_equal(LAG_PART_AT(&r.part, overhead, 0).kind, 1 << 16);
	done(&r);
}

#define HALF(ph, name, ts)                                                \
	"{\"ph\":\"" ph "\",\"cat\":\"user_annotation\",\"name\":\"" name \
	"\",\"pid\":9,\"tid\":11,\"ts\":" ts "}"

static void begin_and_end_make_a_range(void **state)
{
	struct reading r;

	(void)state;
	open_text(
		&r, "t.json",
		"{\"traceEvents\":[" HALF("E", "before", "1") "," HALF("B", "outer", "2") "," HALF(
			"B", "inner",
			"3") "," HALF("E", "", "5") "," HALF("E", "", "9") "," HALF("B", "open",
										    "10") "]}");
	assert_int_equal(r.status, LAG_OK);
	assert_int_equal(LAG_PART_COUNT(&r.part, range), 3);
	assert_string_equal(name_of(&r, LAG_PART_GET(&r.part, range, 0).name), "inner");
	assert_int_equal(LAG_PART_GET(&r.part, range, 0).start_ns, 3000);
	assert_int_equal(LAG_PART_GET(&r.part, range, 0).end_ns, 5000);
	assert_string_equal(name_of(&r, LAG_PART_GET(&r.part, range, 1).name), "outer");
	assert_int_equal(LAG_PART_GET(&r.part, range, 1).end_ns, 9000);
	assert_string_equal(name_of(&r, LAG_PART_GET(&r.part, range, 2).name), "open");
	assert_int_equal(LAG_PART_GET(&r.part, range, 2).end_ns, LAG_NONE);
	assert_int_equal(r.part.n_unknown, 1);
	done(&r);
}

static void rank_and_host_come_from_the_name_where_the_trace_is_silent(void **state)
{
	static const struct {
		const char *path;
		int64_t rank;
		const char *host;
	} cases[] = {
		{ "run/rank-34.json.gz", 34, "" },
		{ "iteration_10/rank3_trace.json", 3, "" },
		{ "rank7/trace.json", 7, "" },
		{ "worker2_step_12.1694128201554.pt.trace.json", 2, "" },
		{ "trace_3.json", 3, "" },
		{ "resnet50_2021-06.json", LAG_NONE, "" },
		{ "rank_not_found.json", LAG_NONE, "" },
		{ "gpu-a12_200691.1758927066581847260.pt.trace.json", LAG_NONE, "gpu-a12" },
		{ "a.tar:job/rank_12.json", 12, "" },
		{ "mi250_train_ROCm6_2_kineto.json", LAG_NONE, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reading r;

		open_text(&r, cases[i].path, "{\"traceEvents\":[]}");
		assert_int_equal(r.part.process.rank, cases[i].rank);
		assert_string_equal(name_of(&r, r.part.process.host), cases[i].host);
		done(&r);
	}
}

static void empty_and_strange_files_have_a_clear_end(void **state)
{
	static const struct {
		const char *json;
		enum lag_status status;
	} cases[] = {
		{ "{\"schemaVersion\":1,\"traceEvents\":[]}", LAG_OK },
		{ "{\"schemaVersion\":1,\"deviceProperties\":[]}", LAG_OK },
		{ "[]", LAG_OK },
		{ "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1,\"dur\":1}",
		  LAG_WARN },
		{ "{\"traceEvents\":[7,null,\"x\",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\"}]"
		  "}",
		  LAG_WARN },
		{ "{\"some\":\"thing\"}", LAG_ERR_INPUT },
		{ "", LAG_ERR_INPUT },
		{ "{\"baseTimeNanoseconds\":-1,\"traceEvents\":[]}", LAG_ERR_INPUT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reading r;

		open_text(&r, "t.json", cases[i].json);
		assert_int_equal(r.status, cases[i].status);
		assert_int_equal(lag_failed(r.status), r.err.text[0] != '\0');
		done(&r);
	}
}

static void a_cut_file_keeps_what_came_before(void **state)
{
	static const char json[] =
		"{\"traceEvents\":[" KERNEL("1", "1", "1", "") "," KERNEL("5", "1", "2", "");
	(void)state;
	for (size_t n = 1; n < sizeof(json) - 1; n++) {
		struct reading r = { .text = json, .n = n };

		import(&r, "t.json");
		if (!lag_failed(r.status)) {
			assert_int_equal(r.status, LAG_WARN);
			assert_true(r.part.notes.n > 0);
			assert_true(LAG_PART_COUNT(&r.part, kernel) <= 2);
		}
		if (n > 160)
			assert_true(LAG_PART_COUNT(&r.part, kernel) >= 1);
		done(&r);
	}
}

static void probing_takes_objects_and_lists_of_objects(void **state)
{
	static const struct {
		const char *head;
		bool is;
	} cases[] = { { " {\n \"a\"", true }, { "[{", true },       { "[]", true },
		      { "{}", true },         { "LAGGARD", false }, { "[1,2]", false },
		      { "SQLite", false },    { "", false } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(lag_importer_kineto.probe((const uint8_t *)cases[i].head,
							   strlen(cases[i].head)),
				 cases[i].is);
}

/* Unions as the reference tables define them. */
struct breakdown {
	int64_t span, busy, idle, compute, comm, mem, overlap, exposed;
	size_t n;
};

static void add(struct lag_intervals *a, struct lag_intervals *all, int64_t start, int64_t end)
{
	assert_int_equal(lag_intervals_add(a, start, end), LAG_OK);
	assert_int_equal(lag_intervals_add(all, start, end), LAG_OK);
}

static struct breakdown break_down(const struct lag_part *p)
{
	struct lag_intervals compute = { 0 }, comm = { 0 }, mem = { 0 }, all = { 0 }, x = { 0 };
	struct breakdown b = { 0 };

	for (size_t i = 0; i < LAG_PART_COUNT(p, kernel); i++) {
		struct lag_rec_kernel k = LAG_PART_GET(p, kernel, i);

		add(k.op_id == LAG_NONE ? &compute : &comm, &all, k.start_ns, k.end_ns);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(p, memcpy); i++)
		add(&mem, &all, LAG_PART_GET(p, memcpy, i).start_ns,
		    LAG_PART_GET(p, memcpy, i).end_ns);
	for (size_t i = 0; i < LAG_PART_COUNT(p, memset); i++)
		add(&mem, &all, LAG_PART_GET(p, memset, i).start_ns,
		    LAG_PART_GET(p, memset, i).end_ns);
	b.n = LAG_PART_COUNT(p, kernel) + LAG_PART_COUNT(p, memcpy) + LAG_PART_COUNT(p, memset);
	lag_intervals_normalize(&compute);
	lag_intervals_normalize(&comm);
	lag_intervals_normalize(&mem);
	lag_intervals_normalize(&all);
	b.span = all.at[all.n - 1].end_ns - all.at[0].start_ns;
	b.busy = lag_intervals_length(&all);
	b.idle = b.span - b.busy;
	b.compute = lag_intervals_length(&compute);
	b.comm = lag_intervals_length(&comm);
	b.mem = lag_intervals_length(&mem);
	assert_int_equal(lag_intervals_intersect(&comm, &compute, &x), LAG_OK);
	b.overlap = lag_intervals_length(&x);
	lag_intervals_release(&x);
	for (size_t i = 0; i < mem.n; i++)
		assert_int_equal(lag_intervals_add(&compute, mem.at[i].start_ns, mem.at[i].end_ns),
				 LAG_OK);
	lag_intervals_normalize(&compute);
	assert_int_equal(lag_intervals_subtract(&comm, &compute, &x), LAG_OK);
	b.exposed = lag_intervals_length(&x);
	lag_intervals_release(&x);
	lag_intervals_release(&compute);
	lag_intervals_release(&comm);
	lag_intervals_release(&mem);
	lag_intervals_release(&all);
	return b;
}

static void dlrm_equals_the_published_breakdown(void **state)
{
	static const struct {
		const char *file;
		int64_t us[9];
	} ranks[] = {
		{ "dlrm/worker0_step_12.1694128201545.pt.trace.json",
		  { 261, 13009, 6590, 6419, 1034, 5798, 19, 261, 5537 } },
		{ "dlrm/worker1_step_12.1694128201556.pt.trace.json",
		  { 326, 18749, 12321, 6428, 1246, 11336, 19, 280, 11056 } },
		{ "dlrm/worker2_step_12.1694128201554.pt.trace.json",
		  { 262, 11350, 4304, 7046, 1068, 3492, 19, 275, 3217 } },
		{ "dlrm/worker3_step_12.1694128201557.pt.trace.json",
		  { 337, 18853, 10708, 8145, 1240, 9774, 28, 324, 9440 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		struct reading r;
		struct breakdown b;

		if (!open_data(&r, ranks[i].file))
			skip();
		assert_int_equal(r.status, LAG_OK);
		b = break_down(&r.part);
		assert_int_equal(b.n, ranks[i].us[0]);
		assert_int_equal(b.span, ranks[i].us[1] * 1000);
		assert_int_equal(b.busy, ranks[i].us[2] * 1000);
		assert_int_equal(b.idle, ranks[i].us[3] * 1000);
		assert_int_equal(b.compute, ranks[i].us[4] * 1000);
		assert_int_equal(b.comm, ranks[i].us[5] * 1000);
		assert_int_equal(b.mem, ranks[i].us[6] * 1000);
		assert_int_equal(b.overlap, ranks[i].us[7] * 1000);
		assert_int_equal(b.exposed, ranks[i].us[8] * 1000);
		assert_int_equal(LAG_PART_COUNT(&r.part, op), 8);
		assert_int_equal(r.part.process.rank, (int64_t)i);
		assert_int_equal(r.part.process.world_size, 8);
		done(&r);
	}
}

static void single_gpu_traces_equal_the_other_tools_timeline(void **state)
{
	/* ms, as that tool prints them. */
	static const struct {
		const char *file;
		double busy, idle, total, compute;
	} cases[] = {
		{ "tracelens/h100-bert.json.gz", 0.309437744140625, 3.59838720703125,
		  3.907824951171875, 0.30719775390625 },
		{ "tracelens/mi300-bert.json.gz", 0.39074853515625, 3.1052275390625,
		  3.49597607421875, 0.3883447265625 },
		{ "tracelens/torch_compile_triton.json.gz", 12.54902099609375, 1.123046875e-05,
		  12.5490322265625, 12.54902099609375 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reading r;
		struct breakdown b;

		if (!open_data(&r, cases[i].file))
			skip();
		b = break_down(&r.part);
		assert_true(llabs(b.busy - (int64_t)(cases[i].busy * 1e6)) <= 10);
		assert_true(llabs(b.idle - (int64_t)(cases[i].idle * 1e6)) <= 10);
		assert_true(llabs(b.span - (int64_t)(cases[i].total * 1e6)) <= 10);
		assert_true(llabs(b.compute - (int64_t)(cases[i].compute * 1e6)) <= 10);
		done(&r);
	}
}

static void real_metadata_is_read_whole(void **state)
{
	struct reading r;

	(void)state;
	if (!open_data(&r, "hta/nccl_data.json.gz"))
		skip();
	assert_int_equal(r.status, LAG_OK);
	assert_int_equal(LAG_PART_COUNT(&r.part, op), 21);
	assert_int_equal(LAG_PART_AT(&r.part, op, 2).func, LAG_FUNC_ALL_REDUCE);
	assert_int_equal(LAG_PART_AT(&r.part, op, 2).count, 2049000);
	assert_int_equal(LAG_PART_COUNT(&r.part, comm), 1);
	assert_string_equal(name_of(&r, LAG_PART_AT(&r.part, comm, 0).name), "0");
	assert_string_equal(name_of(&r, LAG_PART_AT(&r.part, comm, 0).description), "default_pg");
	assert_int_equal(LAG_PART_COUNT(&r.part, comm_member), 2);
	done(&r);
}

static void broken_real_files_are_repaired_or_refused(void **state)
{
	static const struct {
		const char *file;
		enum lag_status status;
		size_t kernels, copies;
	} cases[] = {
		{ "malformed/kineto-105-inf.json", LAG_WARN, 0, 1 },
		{ "malformed/pytorch-33961-missing-quote.json", LAG_WARN, 1, 0 },
		{ "malformed/pytorch-98432-windows-backslash.json", LAG_WARN, 0, 0 },
		{ "malformed/pytorch-113001-unescaped-quotes-newline.fragment.txt", LAG_ERR_INPUT,
		  0, 0 },
		{ "hta/large_integer.json.gz", LAG_OK, 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reading r;

		if (!open_data(&r, cases[i].file))
			skip();
		assert_int_equal(r.status, cases[i].status);
		assert_int_equal(LAG_PART_COUNT(&r.part, kernel), cases[i].kernels);
		assert_int_equal(LAG_PART_COUNT(&r.part, memcpy), cases[i].copies);
		if (r.status == LAG_WARN)
			assert_non_null(strstr((char *)r.part.notes.items, "at byte "));
		done(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_three_time_formats_are_exact),
		cmocka_unit_test(names_and_numbers_of_2021_are_understood),
		cmocka_unit_test(a_kernels_own_metadata_becomes_an_operation),
		cmocka_unit_test(metadata_of_the_cpu_event_around_the_launch_is_used),
		cmocka_unit_test(metadata_is_found_by_external_id),
		cmocka_unit_test(without_metadata_order_and_names_must_do),
		cmocka_unit_test(cut_rank_lists_are_completed_from_start_and_stride),
		cmocka_unit_test(peers_are_ranks_of_the_job),
		cmocka_unit_test(members_agree_on_the_communicators_identity),
		cmocka_unit_test(synchronisation_becomes_edges),
		cmocka_unit_test(begin_and_end_make_a_range),
		cmocka_unit_test(rank_and_host_come_from_the_name_where_the_trace_is_silent),
		cmocka_unit_test(empty_and_strange_files_have_a_clear_end),
		cmocka_unit_test(a_cut_file_keeps_what_came_before),
		cmocka_unit_test(probing_takes_objects_and_lists_of_objects),
		cmocka_unit_test(dlrm_equals_the_published_breakdown),
		cmocka_unit_test(single_gpu_traces_equal_the_other_tools_timeline),
		cmocka_unit_test(real_metadata_is_read_whole),
		cmocka_unit_test(broken_real_files_are_repaired_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
