package cluster

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
)

// Host is a line of a hosts file.
type Host struct {
	Name   string
	Slots  int    // workers it takes
	Dir    string // of the partition there; empty: as here
	Binary string // starling's path there; empty: as here
}

const maxHostsLine, maxHosts = 4096, 1 << 15

// ReadHosts reads a hosts file: one host per line, with its settings.
//
//	alpha   slots=4
//	beta    slots=2 dir=/data/parts binary=/opt/starling
//	10.0.0.3                         # one worker
//
// Names are what ssh knows, user@host too. The workers fill the slots in order.
func ReadHosts(r io.Reader) ([]Host, error) {
	var hosts []Host
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxHostsLine)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		h, err := readHost(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if hosts = append(hosts, h); len(hosts) > maxHosts {
			return nil, fmt.Errorf("more than %d hosts", maxHosts)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("no host in it")
	}
	return hosts, nil
}

func readHost(words []string) (Host, error) {
	h := Host{Name: words[0], Slots: 1}
	if strings.HasPrefix(h.Name, "-") || strings.Contains(h.Name, "=") { // ssh would take it for an option
		return h, fmt.Errorf("%.80q, expected the name of a host first", h.Name)
	}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		switch {
		case name == "slots":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > maxTasks {
				return h, fmt.Errorf("slots is %.40q, expected a number from 1 to %d", value, maxTasks)
			}
			h.Slots = n
		case name == "dir" && value != "":
			h.Dir = value
		case name == "binary" && value != "":
			h.Binary = value
		default:
			return h, fmt.Errorf("%.80q, expected slots=N, dir=FOLDER or binary=FILE", w)
		}
	}
	return h, nil
}

// Slots is the host of every worker, in order.
func Slots(hosts []Host) (of []Host) {
	for _, h := range hosts {
		for range h.Slots {
			of = append(of, h)
		}
	}
	return of
}

// NearHosts is this host's address that others reach it at: on the way to the first
// host that is not this one.
func NearHosts(hosts []Host) (net.IP, error) {
	var last string
	for _, h := range hosts {
		_, name, user := strings.Cut(h.Name, "@")
		if !user {
			name = h.Name
		}
		ip := Toward(name)
		if ip == nil {
			last = name
		} else if !ip.IsLoopback() {
			return ip, nil
		}
	}
	if last != "" { // a name that only ssh's own settings explain
		return nil, fmt.Errorf("no route to %s is known", last)
	}
	return net.IPv4(127, 0, 0, 1), nil
}

// SSH is a command that runs another on a host. The token goes through its standard
// input: every user of the host can read a command line.
func SSH(client string, h Host, args []string, token []byte) (*exec.Cmd, error) {
	words := strings.Fields(client)
	if len(words) == 0 {
		return nil, fmt.Errorf("no ssh command")
	}
	var remote []string
	for _, a := range args {
		remote = append(remote, Quote(a))
	}
	words = append(words, h.Name, announced(strings.Join(remote, " ")))
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin = strings.NewReader(string(token) + "\n")
	return cmd, nil
}

// Quote makes one word of text for a shell.
func Quote(text string) string {
	plainWord := text != "" && strings.IndexFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-._/:,@", r))
	}) < 0
	if plainWord {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// ProofFlags are the flags by which a worker proves that it belongs to a job, after those of its coordinator, for a
// command that is shown.
func ProofFlags(tokenFile, tls string, insecure bool) (flags string) {
	for _, f := range []struct{ flag, value string }{{"--token-file", tokenFile}, {"--tls", tls}} {
		if f.value != "" {
			flags += fmt.Sprintf(" %s %s", f.flag, Quote(f.value))
		}
	}
	if insecure {
		flags += " --insecure"
	}
	return flags
}
