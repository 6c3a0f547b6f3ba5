package spec

// Training is how long a run trains, on what, and when it measures.
type Training struct {
	Epochs       int    `json:"epochs" range:"1,100000000" auto:"true" resume:"free"`
	EvalEvery    int    `json:"eval_every" range:"0,100000000"`
	Patience     int    `json:"patience" range:"0,100000000"`
	Inductive    bool   `json:"inductive"`
	RowNormalize bool   `json:"row_normalize"`
	InitFrom     string `json:"init_from"`
}

func defaultTraining() Training { return Training{Epochs: Auto, EvalEvery: 1} }

func (t *Training) Validate() error { return checkFields(t) }

func (t *Training) effects() []effect {
	return []effect{
		{"--patience", t.Patience > 0, t.EvalEvery > 0, "it needs evaluations: --eval-every 1 or more"},
	}
}
