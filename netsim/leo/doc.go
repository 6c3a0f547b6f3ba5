// Package leo simulates the case studies of LEO (ch. 6 of the paper) in virtual time: key-value store, file
// replication with compression, block storage and all-reduce, each on the hardware model that the paper measured it on
// (folder cases), with the systems it compares with as policies over the same paths.
//
//	figure 6.3   hybrid   random choice over CPU and smartNIC
//	figure 6.10  kvs      median latency by load: DrTM-KV, one path, LEO; YCSB-C and YCSB-B
//	figure 6.11  dfs      throughput by cores: CPU, DOCA, LEO
//	figure 6.12  ebs      throughput and IOPS by cores: CPU, Solar, iPipe, LEO
//	figure 6.13  dml      all-reduce throughput by size: NCCL, Open MPI, LEO
//	figure 6.14  policy   load sustained at one median latency: greedy, LEO, the optimum
package leo
