SELECT id, hash, nccl_hash, n_ranks, name, description FROM communicator ORDER BY id;
