package spec

// Training is how long a run trains, on what, and when it measures.
type Training struct {
	Epochs       int    `json:"epochs" auto:"true" resume:"free"`
	EvalEvery    int    `json:"eval_every"`
	Patience     int    `json:"patience"`
	Inductive    bool   `json:"inductive"`
	RowNormalize bool   `json:"row_normalize"`
	InitFrom     string `json:"init_from"`
}

func defaultTraining() Training { return Training{Epochs: Auto, EvalEvery: 1} }

func (t *Training) Validate() error {
	return checkBounds([]bound{
		{"--epochs", t.Epochs, 1, 1e8},
		{"--eval-every", t.EvalEvery, 0, 1e8},
		{"--patience", t.Patience, 0, 1e8},
	})
}

func (t *Training) effects() []effect {
	return []effect{
		{"--patience", t.Patience > 0, t.EvalEvery > 0, "it needs evaluations: --eval-every 1 or more"},
	}
}
