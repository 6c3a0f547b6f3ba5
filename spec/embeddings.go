package spec

import (
	"fmt"

	"starling/train"
)

// Embeddings are learnt rows of vertices (--mode mini).
type Embeddings struct {
	Dim       int    `json:"learn_embeddings" range:"0,4096"` // 0: none are learnt
	Optimizer string `json:"embedding_optimizer" values:"adam,adagrad"`
	Async     bool   `json:"async_embeddings"`
}

func defaultEmbeddings() Embeddings { return Embeddings{Optimizer: "adam"} }

func (e *Embeddings) Validate() error { return checkFields(e) }

func (e *Embeddings) effects() []effect {
	const need = "it is for --learn-embeddings"
	return []effect{
		{"--embedding-optimizer", e.Optimizer != defaultEmbeddings().Optimizer, e.Dim > 0, need},
		{"--async-embeddings", e.Async, e.Dim > 0, need},
	}
}

// checkEmbeddings refuses learnt rows where nothing can learn them.
func (s *Spec) checkEmbeddings() error {
	if s.Embeddings.Dim == 0 {
		return nil
	}
	if s.Mode != string(train.MiniBatch) {
		return Mistake("--learn-embeddings", fmt.Sprintf("%d with --mode %s", s.Embeddings.Dim, s.Mode),
			"--mode mini, where a step updates the rows of its batch", "use --mode mini")
	}
	c, err := s.Choice()
	switch {
	case err == nil && c.Descriptor != nil && !c.Descriptor.Pairs:
		return apart(c.Name(), "--learn-embeddings", "it learns no rows of vertices", train.NamesOfPairs())
	case s.Model.InputDropout == On:
		return Mistake("--input-dropout", "it with --learn-embeddings", "one of them", "learnt rows are not dropped")
	}
	return err
}

// completeEmbeddings has one worker learn rows of vertices as several do.
func (s *Spec) completeEmbeddings() {
	if s.Embeddings.Dim > 0 && s.Mode == string(train.MiniBatch) && s.Strategy == "none" {
		s.Strategy = s.DefaultStrategy()
	}
}

// options are the settings of learnt rows as the training takes them; nil: none are learnt.
func (e *Embeddings) options() *train.EmbeddingOptions {
	if e.Dim == 0 {
		return nil
	}
	return &train.EmbeddingOptions{Dim: e.Dim, Adagrad: e.Optimizer == "adagrad", Async: e.Async}
}
