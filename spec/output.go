package spec

import (
	"errors"
	"fmt"
	"net"
)

// Output is what a run writes and shows.
type Output struct {
	Dir           string `json:"out" resume:"free"`
	Overwrite     bool   `json:"overwrite" resume:"free"`
	JSON          string `json:"json" resume:"free"`
	HTML          string `json:"html" resume:"free"`
	Events        string `json:"events" resume:"free"`
	Trace         string `json:"trace" resume:"free"`
	TensorBoard   string `json:"tensorboard" resume:"free"`
	Web           string `json:"web" resume:"free"`
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
	if o.Web != "" {
		if _, _, err := net.SplitHostPort(o.Web); err != nil {
			return Mistake("--web", fmt.Sprintf("%q", o.Web), "an address, host:port",
				"for example "+WebAddr+"; port 0: any")
		}
	}
	return errors.Join(CheckNotStdout("--out", o.Dir), CheckNotStdout("--tensorboard", o.TensorBoard))
}

// WebAddr is where --web listens unless it is told otherwise.
const WebAddr = "127.0.0.1:7878"

// Detailed reports whether anything shows what each worker does over time.
func (o *Output) Detailed() bool { return o.Web != "" || o.HTML != "" || o.Events != "" }

// OneRun is the flag of a page or of curves, which are of one run; "": there is none.
func (o *Output) OneRun() string {
	switch {
	case o.HTML != "":
		return "--html"
	case o.Web != "":
		return "--web"
	case o.TensorBoard != "":
		return "--tensorboard"
	}
	return ""
}

// checkFiles refuses two outputs in one place.
func (s *Spec) checkFiles() error {
	given, o := map[string]string{}, &s.Output
	for _, f := range []struct{ flag, path string }{
		{"--json", o.JSON}, {"--html", o.HTML}, {"--events", o.Events}, {"--trace", o.Trace}, {"--out", o.Dir},
		{"--tensorboard", o.TensorBoard},
		{"--checkpoint-dir", s.Checkpoints.Dir},
	} {
		if other, ok := given[f.path]; ok && f.path != "" {
			return Mistake(f.flag, f.path+", as "+other, "a path of its own", "")
		}
		given[f.path] = f.flag
	}
	return nil
}
