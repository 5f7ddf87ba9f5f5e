-- Ids ascend from 1 in what a merge wrote; counting would read every page.
SELECT coalesce((SELECT max(id) FROM gpu_event), 0) + coalesce((SELECT max(id) FROM api_call), 0) +
       coalesce((SELECT max(id) FROM gpu_sync), 0) + coalesce((SELECT max(id) FROM nvtx_range), 0) +
       coalesce((SELECT max(id) FROM nccl_op), 0);
