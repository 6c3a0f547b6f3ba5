package spec

// Output is what a run writes and shows.
type Output struct {
	Dir           string `json:"out" resume:"free"`
	Overwrite     bool   `json:"overwrite" resume:"free"`
	JSON          string `json:"json" resume:"free"`
	HTML          string `json:"html" resume:"free"`
	Events        string `json:"events" resume:"free"`
	Trace         string `json:"trace" resume:"free"`
	MetricsListen string `json:"metrics_listen" resume:"free"`
	Quiet         bool   `json:"quiet" resume:"free"`
}

// Validate refuses standard output for more than --json.
func (o *Output) Validate() error {
	for _, f := range []struct{ flag, path string }{{"--html", o.HTML}, {"--events", o.Events},
		{"--trace", o.Trace}} {
		if f.path == "-" {
			return Mistake(f.flag, "-", "a file", "only --json goes to standard output; a file of that name is ./-")
		}
	}
	return CheckNotStdout("--out", o.Dir)
}

// checkFiles refuses two outputs in one place.
func (s *Spec) checkFiles() error {
	given, o := map[string]string{}, &s.Output
	for _, f := range []struct{ flag, path string }{
		{"--json", o.JSON}, {"--html", o.HTML}, {"--events", o.Events}, {"--trace", o.Trace}, {"--out", o.Dir},
		{"--checkpoint-dir", s.Checkpoints.Dir},
	} {
		if other, ok := given[f.path]; ok && f.path != "" {
			return Mistake(f.flag, f.path+", as "+other, "a path of its own", "")
		}
		given[f.path] = f.flag
	}
	return nil
}
