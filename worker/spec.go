package worker

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"starling/cluster"
	"starling/spec"
)

// Spec is everything a user can say to starling worker.
type Spec struct {
	Addr, Listen, Job string // of --join, --listen and --job
	// Rendezvous is where to find the run instead of Addr, with the launcher's RendezvousJob.
	Rendezvous, RendezvousJob string
	Rank                      int
	PartDir                   string
	Token                     []byte
	TLS                       string
	Insecure                  bool
	Timeout                   int // seconds
	Heartbeat                 int // seconds
	// Paths is --paths of a benchmark's worker; a run has it in its spec.
	Paths string

	id      *cluster.Identity
	at      cluster.Rendezvous
	knows   bool              // it was given a token
	byHand  bool              // it is not restarted by the run
	stopped bool              // the run, before it was finished
	tell    func(text string) // of a run that is not there yet; nil: no user
}

// For is a worker of this run; how it joins is not set yet.
func For(s *spec.Spec, rank int, token []byte) *Spec {
	return &Spec{Rank: rank, Token: token, TLS: s.Launch.TLS, Insecure: s.Launch.Insecure, Timeout: s.Cluster.Timeout,
		Heartbeat: s.Cluster.Heartbeat}
}

// Command runs the worker on this host.
func (w *Spec) Command() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, w.Args()...)
	cmd.Env = append(os.Environ(), spec.TokenVariable+"="+string(w.Token))
	return cmd, nil
}

// Args are w on a command line, without the token, which must stay secret.
func (w *Spec) Args() []string {
	args := []string{"worker", "--rank", fmt.Sprint(w.Rank), "--timeout", fmt.Sprint(w.Timeout),
		"--heartbeat", fmt.Sprint(w.Heartbeat), "--quiet"}
	for _, f := range []struct{ flag, value string }{
		{"--join", w.Addr}, {"--job", w.Job}, {"--rendezvous", w.Rendezvous}, {"--rendezvous-job", w.RendezvousJob},
		{"--part-dir", w.PartDir}, {"--tls", w.TLS},
	} {
		if f.value != "" {
			args = append(args, f.flag, f.value)
		}
	}
	if w.Insecure {
		args = append(args, "--insecure")
	}
	return args
}

func (w *Spec) timeout() time.Duration { return time.Duration(w.Timeout) * time.Second }

// The exit statuses of a worker's process, and of every command.
const (
	OK          = 0
	Failure     = 1
	Mistake     = 2   // the user's: a flag, a file
	Interrupted = 130 // by Ctrl-C; everything was saved
)
