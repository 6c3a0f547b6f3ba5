package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"starling/cluster"
	"starling/graph"
)

const day = 24 * time.Hour

// MakeCerts makes certificates for hosts, in folders under out, and lists those made.
func MakeCerts(out string, hosts []string, days int, renew bool) ([]string, error) {
	if len(hosts) == 0 {
		return nil, mistake("--hosts", "none", "the names of the hosts", "for example --hosts alpha,beta")
	}
	for _, h := range hosts {
		if h == "" || h != filepath.Base(h) || h == "." || h == ".." {
			return nil, mistake("--hosts", fmt.Sprintf("%q", h), "names without slashes", "")
		}
	}
	if most := int(cluster.Lifetime / day); days < 1 || days > most {
		return nil, mistake("--days", fmt.Sprint(days), fmt.Sprintf("1 to %d, for so long the authority is valid", most), "")
	}
	if err := checkNotDash("--out", out); err != nil {
		return nil, err
	}
	if err := checkWritable("--out", out); err != nil {
		return nil, err
	}
	made, err := cluster.MakeCerts(out, hosts, time.Duration(days)*day, renew)
	if a := (*cluster.AuthorityError)(nil); errors.As(err, &a) {
		err = &graph.InputError{File: a.File, Found: a.Found, Want: "the authority that signed the folder's certificates",
			Fix: "put the file back (every host's folder has a copy of ca.pem), or start anew in another folder"}
	}
	return made, err
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
