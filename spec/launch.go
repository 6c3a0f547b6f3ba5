package spec

import (
	"io"
	"os"

	"starling/graph"
)

// Launch is how workers on several hosts are started, and how they find and trust each other.
type Launch struct {
	Listen     string `json:"listen" resume:"free"`
	Hosts      string `json:"hosts" resume:"free"`
	SSHCommand string `json:"ssh_command" resume:"free"`
	Launcher   string `json:"launcher" resume:"free"`
	Rendezvous string `json:"rendezvous" resume:"free"`
	NoLaunch   bool   `json:"no_launch" resume:"free"`
	TokenFile  string `json:"token_file" resume:"free"`
	TLS        string `json:"tls" resume:"free"`
	Insecure   bool   `json:"insecure" resume:"free"`
}

func defaultLaunch() Launch {
	return Launch{Launcher: "auto", SSHCommand: "ssh -o BatchMode=yes -o ConnectTimeout=10"}
}

// Launchers are the values of --launcher: after auto and none, the launchers that package cluster knows.
var Launchers = []string{"auto", "none", "slurm", "openmpi", "mpich", "torchrun", "kubernetes"}

func (l *Launch) Validate() error { return checkFields(l) }

// launchEffects are the settings of workers that are processes.
func (s *Spec) launchEffects() []effect {
	l, metrics, processes := &s.Launch, s.Output.MetricsListen, s.Processes()
	exposed := l.Listen != "" && l.TokenFile == "" || metrics != ""
	const none = "no processes join this run: give --workers without --in-process, or leave it out"
	return []effect{
		{"--listen", l.Listen != "", processes, none},
		{"--no-launch", l.NoLaunch, processes, "there is nothing to launch in this run"},
		{"--rendezvous", l.Rendezvous != "", processes && l.NoLaunch,
			"it is for workers that a launcher starts, or --no-launch"},
		{"--hosts", l.Hosts != "", processes && !l.NoLaunch, "it is for workers that this run starts"},
		{"--ssh-command", l.SSHCommand != defaultLaunch().SSHCommand, l.Hosts != "", "it is for --hosts"},
		{"--token-file", l.TokenFile != "", processes, none},
		{"--tls", l.TLS != "", processes || metrics != "", none},
		{"--insecure", l.Insecure, l.TLS == "" && exposed, "it needs a --listen address, and is not for --tls or a " +
			"--token-file"},
	}
}

// ReadHosts reads a file of hosts to start workers on.
func ReadHosts[H any](path string, read func(io.Reader) ([]H, error)) ([]H, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Mistake("--hosts", notOpened(err), "a file with one host per line", "for example alpha slots=4")
	}
	defer f.Close()
	hosts, err := read(f)
	if err != nil {
		return nil, Mistake("--hosts", graph.Sentence(path+": "+err.Error()), "", "")
	}
	return hosts, nil
}
