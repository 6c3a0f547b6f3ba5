package spec

import "cmp"

// Checkpoints is where a run is saved, how often, and whether it continues from there.
type Checkpoints struct {
	Dir         string   `json:"checkpoint_dir" resume:"free"`
	Every       Interval `json:"checkpoint_every" resume:"free"`
	Keep        int      `json:"keep_checkpoints" range:"1,1000000" resume:"free"`
	Resume      bool     `json:"resume" resume:"free"`
	ResumeIfAny bool     `json:"resume_if_any" resume:"free"`
}

func defaultCheckpoints() Checkpoints { return Checkpoints{Every: 10, Keep: 3} }

func (c *Checkpoints) Validate() error {
	return cmp.Or(checkFields(c), CheckNotStdout("--checkpoint-dir", c.Dir))
}

func (c *Checkpoints) effects() []effect {
	return []effect{
		{"--resume", c.Resume, c.Dir != "", "it needs the --checkpoint-dir to continue from"},
		{"--resume-if-any", c.ResumeIfAny, c.Dir != "", "it needs the --checkpoint-dir to continue from"},
	}
}
