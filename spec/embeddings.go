package spec

import (
	"fmt"

	"starling/train"
)

// completeEmbeddings has one worker learn rows of vertices as several do.
func (s *Spec) completeEmbeddings() {
	if s.LearnEmbeddings > 0 && s.Mode == string(train.MiniBatch) && s.Strategy == "none" {
		s.Strategy = s.defaultStrategy()
	}
}

// Embeddings are the settings of learnt rows of vertices; nil: there are none.
func (s *Spec) Embeddings() *train.EmbeddingOptions {
	if s.LearnEmbeddings == 0 {
		return nil
	}
	return &train.EmbeddingOptions{Dim: s.LearnEmbeddings, Adagrad: s.EmbeddingOptimizer == "adagrad",
		Async: s.AsyncEmbeddings}
}

// checkEmbeddings checks the settings of learnt rows.
func (s *Spec) checkEmbeddings() error {
	if err := checkBounds([]bound{{"--learn-embeddings", s.LearnEmbeddings, 0, 1 << 12}}); err != nil {
		return err
	}
	if s.LearnEmbeddings == 0 {
		return nil
	}
	if s.Mode != string(train.MiniBatch) {
		return Mistake("--learn-embeddings", fmt.Sprintf("%d with --mode %s", s.LearnEmbeddings, s.Mode),
			"--mode mini, where a step updates the rows of its batch", "use --mode mini")
	}
	c, err := s.Choice()
	switch {
	case err == nil && c.Descriptor != nil && !c.Descriptor.Pairs:
		return apart(c.Name(), "--learn-embeddings", "it learns no rows of vertices", train.NamesOfPairs())
	case s.InputDropout:
		return Mistake("--input-dropout", "it with --learn-embeddings", "one of them", "learnt rows are not dropped")
	}
	return err
}

// embeddingEffects are the settings of learnt rows.
func (s *Spec) embeddingEffects() []effect {
	const need = "it is for --learn-embeddings"
	return []effect{
		{"--embedding-optimizer", s.EmbeddingOptimizer != Default().EmbeddingOptimizer, s.LearnEmbeddings > 0, need},
		{"--async-embeddings", s.AsyncEmbeddings, s.LearnEmbeddings > 0, need},
	}
}
