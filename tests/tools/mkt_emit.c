/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a rank: identity and communicators at the start, each step's calls, kernels, operations
 * and ranges, clock readings every second, losses and the receipt at the end. */
#include "tests/tools/mkt_emit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "schema/base/map.h"

enum {
	N_THREADS = 3, /* producers: application, autograd, the tracer's own */
	TID_MAIN = 1000,
	TID_AUTOGRAD = 1001,
	CONTEXT = 1,
	EXTERNAL_OURS = 5
};

enum text {
	T_LAUNCH = MKT_N_KERNELS,
	T_LAUNCH_EX,
	T_MEMCPY,
	T_MEMSET,
	T_RECORD,
	T_WAIT,
	T_SYNC,
	T_NCCL_COLL, /* six names from here on, by function */
	T_SEND_RECV = T_NCCL_COLL + 4,
	T_LIMIT
};

struct kernel_text {
	const char *name;
	int grid, block;
};

static const struct kernel_text texts[T_LIMIT] = {
	[MKT_K_GEMM] = { "_ZN7cutlass7Kernel2I68cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_"
			 "256x128_32x3_tn_align8EEvNT_6ParamsE",
			 512, 256 },
	[MKT_K_DGRAD] = { "_ZN7cutlass7Kernel2I63cutlass_80_tensorop_bf16_s16816gemm_bf16_"
			  "128x256_64x3_nn_align8EEvNT_6ParamsE",
			  512, 256 },
	[MKT_K_WGRAD] = { "_ZN7cutlass7Kernel2I62cutlass_80_tensorop_bf16_s16816gemm_f32_"
			  "128x128_64x4_nt_align8EEvNT_6ParamsE",
			  480, 128 },
	[MKT_K_ATTN_FWD] = { "_ZN5flash16flash_fwd_kernelILi128ELi128ELi64EEEvNS_16Flash_fwd_"
			     "paramsE",
			     1024, 128 },
	[MKT_K_ATTN_BWD] = { "_ZN5flash44flash_bwd_dq_dk_dv_loop_seqk_parallel_"
			     "kernelILi128ELi64ELi128"
			     "EEEvNS_16Flash_bwd_paramsE",
			     1024, 256 },
	[MKT_K_NORM_FWD] = { "_ZN2at6native12_GLOBAL__N_128vectorized_layer_norm_"
			     "kernelIN3c108BFloat16"
			     "EfEEviT0_PKT_S7_S7_PS4_PS5_S9_",
			     4096, 128 },
	[MKT_K_NORM_BWD] = { "_ZN2at6native12_GLOBAL__N_128layer_norm_grad_input_"
			     "kernelIN3c108BFloat16"
			     "EfEEvPKT_S7_PKT0_SA_S7_PS5_i",
			     4096, 128 },
	[MKT_K_GELU_FWD] = { "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
			     "11GeluFunctorIN3c10"
			     "8BFloat16EEESt5arrayIPcLm2EEEEviT0_T1_",
			     8192, 128 },
	[MKT_K_GELU_BWD] = { "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_19GeluBackward"
			     "FunctorIN3c108BFloat16EEESt5arrayIPcLm3EEEEviT0_T1_",
			     8192, 128 },
	[MKT_K_EMBED] = { "_ZN2at6native12_GLOBAL__N_124vectorized_gather_kernelILi16ElEEvPcS3_PT0_"
			  "illlb",
			  2048, 256 },
	[MKT_K_EMBED_BWD] = { "_ZN2at6native26compute_grad_weight_kernelIN3c108BFloat16EEEvPlS4_l",
			      2048, 256 },
	[MKT_K_LOSS_FWD] = { "_ZN2at6native19cunn_SoftMaxForwardILi8EN3c108BFloat16EffNS0_12_"
			     "GLOBAL__N_"
			     "125LogSoftMaxForwardEpilogueEEEvPT2_PKT0_i",
			     4096, 512 },
	[MKT_K_LOSS_BWD] = { "_ZN2at6native20cunn_SoftMaxBackwardILi8EN3c108BFloat16EffNS0_12_"
			     "GLOBAL__N_"
			     "126LogSoftMaxBackwardEpilogueEEEvPT0_PKT2_S9_l",
			     4096, 512 },
	[MKT_K_GRAD_NORM] = { "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_"
			      "18TensorList"
			      "MetadataILi1EEENS1_14LpNormFunctorTIffLi1ELi1ELi0EEEJPfiEEEvT_T0_"
			      "DpT1_",
			      320, 512 },
	[MKT_K_ADAM] = { "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_"
			 "32FusedOptimizer"
			 "TensorListMetadataILi4EEENS1_"
			 "20FusedAdamMathFunctorIfLi4ELi0ELb0EEEJPKfdddddd"
			 "S7_S7_EEEvT_T0_DpT1_",
			 320, 512 },
	[T_LAUNCH] = { "cudaLaunchKernel", 211, 0 },
	[T_LAUNCH_EX] = { "cuLaunchKernelEx", 652, 0 },
	[T_MEMCPY] = { "cudaMemcpyAsync", 41, 0 },
	[T_MEMSET] = { "cudaMemsetAsync", 51, 0 },
	[T_RECORD] = { "cudaEventRecord", 135, 0 },
	[T_WAIT] = { "cudaStreamWaitEvent", 147, 0 },
	[T_SYNC] = { "cudaStreamSynchronize", 131, 0 },
	[T_NCCL_COLL +
		LAG_FUNC_ALL_REDUCE] = { "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDev"
					 "KernelArgsStorageILm4096EE",
					 24, 640 },
	[T_NCCL_COLL +
		LAG_FUNC_ALL_GATHER] = { "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgs"
					 "StorageILm4096EE",
					 24, 640 },
	[T_NCCL_COLL +
		LAG_FUNC_REDUCE_SCATTER] = { "_Z43ncclDevKernel_ReduceScatter_Sum_f32_RING_LL24"
					     "ncclDevKernelArgsStorageILm4096EE",
					     24, 640 },
	[T_SEND_RECV] = { "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE", 4, 640 },
};

struct file {
	struct lag_trace_file file;
	struct lag_trace_producer *prod; /* N_THREADS */
	int64_t names[N_THREADS][T_LIMIT];
	int64_t configs[T_LIMIT];
	struct mkt_clock clock;
	int *comm_ids; /* by run comm: this file's id, 0 = not a member */
	uint64_t correlation, op, drop_every, n_gpu, n_dropped, n_records;
	uint64_t sync_id[MKT_N_STREAMS];
	int64_t next_clock_ns;
	bool open;
};

struct mkt_writer {
	struct file *files;
	int n;
};

struct mkt_clock mkt_clock_of(const struct mkt_options *opt, int rank)
{
	uint64_t host = (uint64_t)(rank / opt->ranks_per_host);
	uint64_t r = (uint64_t)rank;
	struct mkt_clock c = {
		.offset_ns = opt->offset_ms * 1e6 * mkt_uniform(opt->seed, host, 11, 0),
		.drift = opt->drift_ppm * 1e-6 * mkt_uniform(opt->seed, host, 12, 0),
	};
	for (uint64_t i = 0; i < 2; i++) {
		c.device_ns[i] =
			(int64_t)((double)opt->device_ns * mkt_uniform(opt->seed, r, 13, i));
	}
	/* Somewhere in the first ten seconds; short runs may not see it. */
	c.device_step_ns = (int64_t)(5e9 * (1 + mkt_uniform(opt->seed, r, 14, 0)));
	return c;
}

int64_t mkt_clock_read(const struct mkt_clock *clock, int64_t true_ns, bool device)
{
	int64_t at = MKT_EPOCH_NS + true_ns +
		     (int64_t)floor(clock->offset_ns + clock->drift * (double)true_ns);
	if (device)
		at += clock->device_ns[true_ns >= clock->device_step_ns];
	return at;
}

static void append(struct file *f, int thread, const struct lag_record *rec)
{
	if (lag_trace_append(&f->prod[thread], rec))
		f->n_records++;
}

static int64_t name_of(struct file *f, int thread, int text)
{
	if (f->names[thread][text] < 0) {
		f->names[thread][text] = lag_trace_string(&f->prod[thread], texts[text].name,
							  strlen(texts[text].name));
	}
	return f->names[thread][text];
}

static int64_t string(struct file *f, int thread, const char *text)
{
	return lag_trace_string(&f->prod[thread], text, strlen(text));
}

static int64_t config_of(struct file *f, int text)
{
	if (f->configs[text] >= 0)
		return f->configs[text];
	struct lag_rec_launch_config cfg = { .grid_x = texts[text].grid,
					     .grid_y = 1,
					     .grid_z = 1,
					     .block_x = texts[text].block,
					     .block_y = 1,
					     .block_z = 1,
					     .registers = 64 };
	f->configs[text] = lag_trace_config(&f->prod[2], &cfg);
	return f->configs[text];
}

static void put_identity(struct file *f, const struct mkt_run *run, int rank)
{
	const struct mkt_options *opt = run->opt;
	struct lag_record rec;
	char text[64];
	lag_record_init(&rec, LAG_REC_process);
	rec.process.start_ns = mkt_clock_read(&f->clock, -2000000000, false);
	rec.process.pid = 4000 + rank % opt->ranks_per_host;
	rec.process.rank = rank;
	rec.process.world_size = run->n_ranks;
	rec.process.local_rank = rank % opt->ranks_per_host;
	rec.process.local_world_size = opt->ranks_per_host;
	rec.process.node_rank = rank / opt->ranks_per_host;
	rec.process.restart = 0;
	rec.process.pid_namespace = 4026531836;
	snprintf(text, sizeof(text), "node%d", rank / opt->ranks_per_host);
	rec.process.host = string(f, 2, text);
	snprintf(text, sizeof(text), "%016llx",
		 (unsigned long long)lag_hash_u64((uint64_t)(rank / opt->ranks_per_host) + 9));
	rec.process.boot_id = string(f, 2, text);
	rec.process.run_id = string(f, 2, "mktrace");
	rec.process.argv = string(f, 2, "mktrace");
	rec.process.rank_source = string(f, 2, "RANK");
	append(f, 2, &rec);

	lag_record_init(&rec, LAG_REC_device);
	rec.device.device = rank % opt->ranks_per_host;
	snprintf(text, sizeof(text), "GPU-%08x-0000-0000-0000-%012x", (unsigned)rank + 1,
		 (unsigned)rank + 1);
	rec.device.uuid = string(f, 2, text);
	rec.device.name = string(f, 2, "Synthetic GPU");
	rec.device.cc_major = 9;
	rec.device.cc_minor = 0;
	rec.device.sm_count = 132;
	append(f, 2, &rec);
	lag_record_init(&rec, LAG_REC_thread);
	rec.thread.tid = TID_MAIN;
	rec.thread.name = string(f, 2, "main");
	append(f, 2, &rec);
	if (opt->one_thread)
		return;
	rec.thread.tid = TID_AUTOGRAD;
	rec.thread.name = string(f, 2, "pt_autograd_0");
	append(f, 2, &rec);
}

static void put_comms(struct file *f, const struct mkt_run *run, int rank)
{
	int n = 0;
	for (int c = 0; c < run->n_comms; c++) {
		const struct mkt_comm *comm = &run->comms[c];
		int pos = 0;
		while (pos < comm->n && comm->ranks[pos] != rank)
			pos++;
		if (pos == comm->n)
			continue;
		struct lag_record rec;
		f->comm_ids[c] = ++n;
		lag_record_init(&rec, LAG_REC_comm);
		rec.comm.created_ns = mkt_clock_read(&f->clock, -1000000000 + n * 1000000, false);
		rec.comm.comm_id = n;
		rec.comm.hash = (int64_t)lag_hash_bytes(comm->name, strlen(comm->name));
		rec.comm.n_ranks = comm->n;
		rec.comm.comm_rank = pos;
		rec.comm.device = rank % run->opt->ranks_per_host;
		append(f, 0, &rec);
	}
}

static void put_clock(struct file *f, int64_t true_ns)
{
	struct lag_record rec;
	lag_record_init(&rec, LAG_REC_clock);
	rec.clock.realtime_ns = mkt_clock_read(&f->clock, true_ns, false);
	rec.clock.monotonic_ns = rec.clock.realtime_ns - MKT_EPOCH_NS + 1000000000000;
	rec.clock.tsc = 2 * rec.clock.monotonic_ns;
	rec.clock.cupti_ns = rec.clock.realtime_ns + 15;
	rec.clock.bracket_ns = 60;
	append(f, 2, &rec);
}

static enum lag_status open_file(struct file *f, const struct mkt_run *run, int rank,
				 struct lag_err *err)
{
	const struct mkt_options *opt = run->opt;
	char path[4096];
	f->clock = mkt_clock_of(opt, rank);
	memset(f->names, 0xff, sizeof(f->names));
	memset(f->configs, 0xff, sizeof(f->configs));
	for (int i = 0; i < opt->n_faults; i++) {
		const struct mkt_fault *fault = &opt->faults[i];
		if (fault->a == rank && fault->kind == MKT_MISSING)
			return LAG_OK;
		if (fault->a == rank && fault->kind == MKT_DROP)
			f->drop_every = (uint64_t)fault->at;
	}
	f->prod = lag_calloc(N_THREADS, sizeof(*f->prod));
	f->comm_ids = lag_calloc((size_t)run->n_comms, sizeof(*f->comm_ids));
	if (!f->prod || !f->comm_ids)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	struct lag_trace_header head = { .pid = (uint64_t)(4000 + rank % opt->ranks_per_host),
					 .pid_namespace = 4026531836,
					 .start_ns =
						 mkt_clock_read(&f->clock, -2000000000, false) };
	snprintf(head.host, sizeof(head.host), "node%d", rank / opt->ranks_per_host);
	uint64_t boot = lag_hash_u64((uint64_t)(rank / opt->ranks_per_host) + 9);
	memcpy(head.boot_id, &boot, sizeof(boot));
	snprintf(path, sizeof(path), "%s/node%d.%d.lag", opt->out, rank / opt->ranks_per_host,
		 4000 + rank % opt->ranks_per_host);
	if (remove(path) && errno != ENOENT)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	enum lag_status st = lag_trace_file_create(&f->file, path, 0644, &head, err);
	if (lag_failed(st))
		return st;
	f->open = true;
	for (int i = 0; i < N_THREADS; i++)
		lag_trace_producer_init(&f->prod[i], &f->file, (uint64_t)TID_MAIN + (uint64_t)i);
	put_identity(f, run, rank);
	put_comms(f, run, rank);
	put_clock(f, -1500000000);
	f->correlation = 100;
	return LAG_OK;
}

enum lag_status mkt_writer_open(const struct mkt_run *run, struct mkt_writer **out,
				struct lag_err *err)
{
	struct rlimit lim;
	struct mkt_writer *w = lag_calloc(1, sizeof(*w));
	*out = w;
	if (!w)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	if (!getrlimit(RLIMIT_NOFILE, &lim) && lim.rlim_cur < lim.rlim_max) {
		lim.rlim_cur = lim.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &lim);
	}
	if (mkdir(run->opt->out, 0777) && errno != EEXIST)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", run->opt->out);
	w->files = lag_calloc((size_t)run->n_ranks, sizeof(*w->files));
	if (!w->files)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	w->n = run->n_ranks;
	for (int i = 0; i < w->n; i++) {
		if (lag_failed(open_file(&w->files[i], run, i, err)))
			return err->status;
	}
	return LAG_OK;
}

/* One call of the CUDA API as CUPTI tells it. */
static void put_api(struct file *f, const struct mkt_item *it, int text, int64_t from, int64_t to)
{
	struct lag_record rec;
	lag_record_init(&rec, LAG_REC_api);
	rec.api.start_ns = mkt_clock_read(&f->clock, from, false);
	rec.api.end_ns = mkt_clock_read(&f->clock, to, false);
	rec.api.tid = it->backward ? TID_AUTOGRAD : TID_MAIN;
	rec.api.domain = text == T_LAUNCH_EX ? LAG_API_DRIVER : LAG_API_RUNTIME;
	rec.api.cbid = texts[text].grid;
	rec.api.correlation = (int64_t)f->correlation;
	rec.api.name = name_of(f, 2, text);
	rec.api.result = 0;
	append(f, 2, &rec);
}

static void put_kernel(struct file *f, const struct mkt_run *run, const struct mkt_item *it,
		       int rank, int text)
{
	struct lag_record rec;
	f->n_gpu++;
	if (f->drop_every && f->n_gpu % f->drop_every == 0) {
		f->n_dropped++;
		return;
	}
	lag_record_init(&rec, LAG_REC_kernel);
	rec.kernel.start_ns = mkt_clock_read(&f->clock, it->start_ns, true);
	rec.kernel.end_ns = mkt_clock_read(&f->clock, it->end_ns, true);
	rec.kernel.device = rank % run->opt->ranks_per_host;
	rec.kernel.context = CONTEXT;
	rec.kernel.stream = 7 + 6 * it->stream;
	rec.kernel.correlation = (int64_t)f->correlation;
	rec.kernel.name = name_of(f, 2, text);
	rec.kernel.config = config_of(f, text);
	append(f, 2, &rec);
}

static void put_copy(struct file *f, const struct mkt_run *run, const struct mkt_item *it, int rank)
{
	struct lag_record rec;
	if (it->kind == MKT_I_SET) {
		lag_record_init(&rec, LAG_REC_memset);
		rec.memset.start_ns = mkt_clock_read(&f->clock, it->start_ns, true);
		rec.memset.end_ns = mkt_clock_read(&f->clock, it->end_ns, true);
		rec.memset.device = rank % run->opt->ranks_per_host;
		rec.memset.context = CONTEXT;
		rec.memset.stream = 7 + 6 * it->stream;
		rec.memset.correlation = (int64_t)f->correlation;
		rec.memset.bytes = it->bytes;
	} else {
		lag_record_init(&rec, LAG_REC_memcpy);
		rec.memcpy.start_ns = mkt_clock_read(&f->clock, it->start_ns, true);
		rec.memcpy.end_ns = mkt_clock_read(&f->clock, it->end_ns, true);
		rec.memcpy.device = rank % run->opt->ranks_per_host;
		rec.memcpy.context = CONTEXT;
		rec.memcpy.stream = 7 + 6 * it->stream;
		rec.memcpy.correlation = (int64_t)f->correlation;
		rec.memcpy.bytes = it->bytes;
		rec.memcpy.copy_kind = it->name;
		rec.memcpy.src_kind = it->name == 1 ? 2 : 3;
		rec.memcpy.dst_kind = it->name == 1 ? 3 : 2;
	}
	append(f, 2, &rec);
}

/* An event record or a stream's wait for one; the event is that of the stream recorded on. */
static void put_sync(struct file *f, const struct mkt_item *it)
{
	struct lag_record rec;
	bool record = it->kind == MKT_I_RECORD;
	int event = record ? it->stream : it->name;
	put_api(f, it, record ? T_RECORD : T_WAIT, it->call_ns, it->leave_ns);
	lag_record_init(&rec, LAG_REC_sync);
	rec.sync.start_ns = mkt_clock_read(&f->clock, it->call_ns, false);
	rec.sync.end_ns = mkt_clock_read(&f->clock, it->leave_ns, false);
	rec.sync.kind = record ? LAG_SYNC_EVENT_RECORD : LAG_SYNC_STREAM_WAIT;
	rec.sync.context = CONTEXT;
	rec.sync.stream = 7 + 6 * it->stream;
	rec.sync.event_id = 1 + event;
	if (record)
		f->sync_id[event]++;
	rec.sync.sync_id = (int64_t)(f->sync_id[event] * MKT_N_STREAMS) + event;
	rec.sync.correlation = (int64_t)f->correlation;
	append(f, 2, &rec);
}

static void put_external(struct file *f, uint64_t id)
{
	struct lag_record rec;
	lag_record_init(&rec, LAG_REC_external);
	rec.external.kind = EXTERNAL_OURS;
	rec.external.id = (int64_t)id;
	rec.external.correlation = (int64_t)f->correlation;
	append(f, 2, &rec);
}

/* What a call of NCCL says of itself. */
static void fill_op(const struct file *f, const struct mkt_run *run, const struct mkt_item *it,
		    int dir, struct lag_rec_op *op)
{
	op->tid = it->backward ? TID_AUTOGRAD : TID_MAIN;
	op->seq = it->seq[dir];
	op->stream = 7 + 6 * it->stream;
	op->sources = LAG_OP_FROM_CALL;
	if (it->kind == MKT_I_COLL) {
		op->comm_id = f->comm_ids[it->comm];
		op->func = it->name;
		op->datatype = LAG_DT_FLOAT32;
		op->count = it->bytes / 4;
		op->redop = 0;
		/* The call's own count: of one rank's part. */
		if (it->name == LAG_FUNC_REDUCE_SCATTER)
			op->count /= run->comms[it->comm].n;
		return;
	}
	const struct mkt_conn *conn = &run->conns[it->conn[dir]];
	op->comm_id = f->comm_ids[conn->comm];
	op->func = dir ? LAG_FUNC_RECV : LAG_FUNC_SEND;
	op->datatype = LAG_DT_BFLOAT16;
	op->count = it->bytes / 2;
	op->peer = dir ? conn->src_in_comm : conn->dst_in_comm;
}

static void put_op(struct file *f, const struct mkt_run *run, const struct mkt_item *it, int dir,
		   int64_t group_id, int64_t enter, int64_t leave)
{
	struct lag_record rec;
	lag_record_init(&rec, LAG_REC_op);
	fill_op(f, run, it, dir, &rec.op);
	rec.op.enter_ns = mkt_clock_read(&f->clock, enter, false);
	rec.op.op_id = (int64_t)++f->op;
	rec.op.group_id = group_id;
	append(f, it->backward, &rec);
	lag_record_init(&rec, LAG_REC_op_end);
	rec.op_end.leave_ns = mkt_clock_read(&f->clock, leave, false);
	rec.op_end.op_id = (int64_t)f->op;
	rec.op_end.result = 0;
	append(f, it->backward, &rec);
}

static void put_group(struct file *f, const struct mkt_item *it, int64_t group_id, int64_t launch)
{
	struct lag_record rec;
	lag_record_init(&rec, LAG_REC_group);
	rec.group.enter_ns = mkt_clock_read(&f->clock, it->call_ns, false);
	rec.group.launch_ns = mkt_clock_read(&f->clock, launch, false);
	rec.group.leave_ns = mkt_clock_read(&f->clock, it->leave_ns, false);
	rec.group.tid = it->backward ? TID_AUTOGRAD : TID_MAIN;
	rec.group.group_id = group_id;
	rec.group.n_ops = 2;
	rec.group.result = 0;
	append(f, it->backward, &rec);
}

/* The calls of one communication: an operation, or a group of a send and a receive. */
static void put_ops(struct file *f, const struct mkt_run *run, const struct mkt_item *it, int rank)
{
	int text = it->kind == MKT_I_COLL ? T_NCCL_COLL + it->name : T_SEND_RECV;
	int64_t span = it->leave_ns - it->call_ns, begin = it->call_ns + span / 4;
	int64_t part = span / 20 < 300 ? span / 20 : 300;
	uint64_t external;
	if (it->kind == MKT_I_P2P && it->conn[0] >= 0 && it->conn[1] >= 0) {
		external = ++f->op;
		for (int dir = 0; dir < 2; dir++) {
			begin = it->call_ns + 2 * part * dir;
			put_op(f, run, it, dir, (int64_t)external, begin + part, begin + 2 * part);
		}
		begin += 2 * part;
		put_group(f, it, (int64_t)external, begin);
	} else {
		int dir = it->kind == MKT_I_P2P && it->conn[0] < 0;
		put_op(f, run, it, dir, LAG_NONE, it->call_ns, it->leave_ns);
		external = f->op;
	}
	put_external(f, external);
	put_api(f, it, T_LAUNCH_EX, begin, it->leave_ns - part * 2 / 3);
	put_kernel(f, run, it, rank, text);
}

static void put_range(struct file *f, const struct mkt_run *run, const struct mkt_item *it)
{
	static const char *const names[] = { "step", "forward mb", "backward mb" };
	struct lag_record rec;
	char text[64];
	if (it->kind == MKT_I_POP) {
		lag_record_init(&rec, LAG_REC_range_end);
		rec.range_end.end_ns = mkt_clock_read(&f->clock, it->call_ns, false);
		rec.range_end.tid = TID_MAIN;
		rec.range_end.kind = LAG_RANGE_PUSH;
		append(f, 0, &rec);
		return;
	}
	if (it->name == MKT_R_OPTIMIZER) {
		snprintf(text, sizeof(text), "optimizer");
	} else {
		snprintf(text, sizeof(text), "%s %d", names[it->name],
			 it->name == MKT_R_STEP ? run->step : it->mb);
	}
	lag_record_init(&rec, LAG_REC_range);
	rec.range.start_ns = mkt_clock_read(&f->clock, it->call_ns, false);
	rec.range.tid = TID_MAIN;
	rec.range.kind = LAG_RANGE_PUSH;
	rec.range.name = string(f, 0, text);
	append(f, 0, &rec);
}

static void put_item(struct file *f, const struct mkt_run *run, const struct mkt_item *it, int rank)
{
	f->correlation++;
	switch ((enum mkt_item_kind)it->kind) {
	case MKT_I_KERNEL:
		put_api(f, it, T_LAUNCH, it->call_ns, it->leave_ns);
		put_kernel(f, run, it, rank, it->name);
		break;
	case MKT_I_COPY:
	case MKT_I_SET:
		put_api(f, it, it->kind == MKT_I_SET ? T_MEMSET : T_MEMCPY, it->call_ns,
			it->leave_ns);
		put_copy(f, run, it, rank);
		break;
	case MKT_I_COLL:
	case MKT_I_P2P:
		put_ops(f, run, it, rank);
		break;
	case MKT_I_RECORD:
	case MKT_I_WAIT:
		put_sync(f, it);
		break;
	case MKT_I_SYNC: {
		struct lag_record rec;
		put_api(f, it, T_SYNC, it->call_ns, it->leave_ns);
		lag_record_init(&rec, LAG_REC_sync);
		rec.sync.start_ns = mkt_clock_read(&f->clock, it->call_ns, false);
		rec.sync.end_ns = mkt_clock_read(&f->clock, it->leave_ns, false);
		rec.sync.kind = LAG_SYNC_STREAM;
		rec.sync.context = CONTEXT;
		rec.sync.stream = 7 + 6 * it->stream;
		rec.sync.correlation = (int64_t)f->correlation;
		append(f, 2, &rec);
		break;
	}
	case MKT_I_PUSH:
	case MKT_I_POP:
		put_range(f, run, it);
		break;
	}
}

enum lag_status mkt_writer_step(struct mkt_writer *w, const struct mkt_run *run,
				struct lag_err *err)
{
	for (int r = 0; r < w->n; r++) {
		struct file *f = &w->files[r];
		if (!f->open)
			continue;
		for (size_t i = 0; i < run->ranks[r].items.n; i++) {
			const struct mkt_item *it = mkt_item_at(&run->ranks[r], (int32_t)i);
			while (it->call_ns >= f->next_clock_ns) {
				put_clock(f, f->next_clock_ns);
				f->next_clock_ns += 1000000000;
			}
			put_item(f, run, it, r);
		}
		if (atomic_load(&f->file.full))
			return lag_err_set(err, LAG_ERR_SYSTEM, "rank %d: the disk is full", r);
	}
	return LAG_OK;
}

static void put_end(struct file *f, int64_t true_ns)
{
	struct lag_record rec;
	put_clock(f, true_ns);
	if (f->n_dropped) {
		lag_record_init(&rec, LAG_REC_loss);
		rec.loss.from_ns = mkt_clock_read(&f->clock, 0, false);
		rec.loss.until_ns = mkt_clock_read(&f->clock, true_ns, false);
		rec.loss.kind = LAG_REC_kernel;
		rec.loss.reason = LAG_LOSS_CUPTI_DROPPED;
		rec.loss.count = (int64_t)f->n_dropped;
		append(f, 2, &rec);
		atomic_fetch_add(&f->file.counters->lost[LAG_REC_kernel], f->n_dropped);
		atomic_fetch_add(&f->file.counters->lost_reason[LAG_LOSS_CUPTI_DROPPED],
				 f->n_dropped);
	}
	lag_record_init(&rec, LAG_REC_receipt);
	rec.receipt.at_ns = mkt_clock_read(&f->clock, true_ns, false);
	rec.receipt.hook_ns = 0;
	rec.receipt.thread_ns = 0;
	rec.receipt.bytes = (int64_t)f->n_records * 16;
	rec.receipt.records = (int64_t)f->n_records + 1;
	rec.receipt.lost = (int64_t)f->n_dropped;
	rec.receipt.clean_exit = 1;
	append(f, 2, &rec);
	atomic_store(&f->file.counters->clean_exit, 1);
}

uint64_t mkt_writer_close(struct mkt_writer *w, const struct mkt_run *run)
{
	uint64_t n = 0;
	for (int i = 0; w && i < w->n; i++) {
		struct file *f = &w->files[i];
		if (f->open) {
			put_end(f, run->ranks[i].host_ns);
			for (int t = 0; t < N_THREADS; t++)
				lag_trace_producer_close(&f->prod[t]);
			lag_trace_file_close(&f->file);
			n += f->n_records;
		}
		free(f->prod);
		free(f->comm_ids);
	}
	if (w)
		free(w->files);
	free(w);
	return n;
}
