package run

import (
	"fmt"
	"path/filepath"
	"time"

	"starling/cluster"
)

// MakeCerts makes certificates for hosts, in folders under out, and lists those made.
func MakeCerts(out string, hosts []string, valid time.Duration, renew bool) ([]string, error) {
	if len(hosts) == 0 {
		return nil, mistake("--hosts", "none", "the names of the hosts", "for example --hosts alpha,beta")
	}
	for _, h := range hosts {
		if h == "" || h != filepath.Base(h) || h == "." || h == ".." {
			return nil, mistake("--hosts", fmt.Sprintf("%q", h), "names without slashes", "")
		}
	}
	if valid <= 0 {
		return nil, mistake("--days", fmt.Sprint(int(valid.Hours()/24)), "1 or more", "")
	}
	if err := checkNotDash("--out", out); err != nil {
		return nil, err
	}
	return cluster.MakeCerts(out, hosts, valid, renew)
}

// identity is the certificate to show to others; nil: none was given.
func identity(dir string) (*cluster.Identity, error) {
	if dir == "" {
		return nil, nil
	}
	id, err := cluster.LoadIdentity(dir)
	if err != nil {
		return nil, mistake("--tls", err.Error(), "", "")
	}
	return id, nil
}
