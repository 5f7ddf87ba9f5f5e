-- Made after the load: loading into indexes costs three times as much.
CREATE INDEX gpu_event_rank_start ON gpu_event (rank, start_ns);
CREATE INDEX api_call_rank_start ON api_call (rank, start_ns);
CREATE INDEX nvtx_range_rank_start ON nvtx_range (rank, start_ns);
CREATE INDEX nccl_op_rank_enter ON nccl_op (rank, enter_ns);
CREATE INDEX nccl_op_instance ON nccl_op (instance_id);
