package llm

// pass is one chunk of layers of one microbatch, in one direction.
type pass struct {
	microbatch int
	chunk      int // of the stage
	backward   bool
}

// passes are what a stage does in an iteration, in order: 1F1B, which begins with as many forward
// passes as it takes until the first gradient comes back, and then alternates (PipeDream-flush;
// interleaved as in Narayanan et al., SC 2021, where microbatches go in groups of as many
// as there are stages through one chunk after the other).
func passes(stage, stages, microbatches, chunks int) (out []pass) {
	n := microbatches * chunks
	warmup := stages - stage - 1
	if chunks > 1 {
		warmup = 2*warmup + (chunks-1)*stages
	}
	warmup = min(warmup, n)
	for k := range n + warmup {
		if k < n {
			out = append(out, nth(k, stages, chunks, false))
		}
		if k >= warmup {
			out = append(out, nth(k-warmup, stages, chunks, true))
		}
	}
	return out
}

// nth is the nth forward or backward pass of a stage.
func nth(k, stages, chunks int, backward bool) pass {
	group := stages * chunks
	chunk := k % group / stages
	microbatch := k/group*stages + k%stages
	if chunks == 1 {
		chunk, microbatch = 0, k
	}
	if backward {
		chunk = chunks - 1 - chunk
	}
	return pass{microbatch, chunk, backward}
}
