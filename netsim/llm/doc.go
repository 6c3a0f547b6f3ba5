// Package llm simulates iterations of LLM training over a simulated network, to compare orders of
// transfers: Hermod ("Hermod: a near-optimal coflow scheduler for LLM training", a thesis's
// chapter 5) beside Megatron-LM's first come first served, Lina, ByteScheduler, and one type first.
//
// # The model
//
// GPUs are numbered as Megatron-LM does: tensor-parallel rank fastest, then data-parallel rank,
// then pipeline stage. A worker is a tensor-parallel group; it has a stage of the pipeline
// and a data-parallel rank. It is one host of the network, which sends for all its GPUs. A worker
// executes a list of operations, the same in every iteration:
//
//	compute     seconds from floating-point operations over a rate; tensor parallelism, which
//	            stays inside a server, is part of it, at the rate inside a server
//	exchange    EP: all-to-all of tokens in the expert-parallel group, before and after the
//	            experts; it begins when all members are there; a worker waits for its end
//	send, recv  PP: activations to the next stage, gradients to the one before; sending does not wait
//	reduce      DP: reduce-scatter of a layer's gradients in a ring (ZeRO-2), after the last
//	            microbatch; no worker waits, but all-gather of the new parameters follows at once,
//	gather      and the layer's first forward pass of the next iteration waits for that
//
// Stages are scheduled 1F1B, or interleaved with several chunks of layers per stage. Experts
// are popular unevenly; sizes of an all-to-all are known when it begins. There is no barrier
// between iterations (clipping by value, not by norm: footnote 4 of the chapter).
package llm
