package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"starling/cluster"
	"starling/graph"
	"starling/spec"
)

const day = 24 * time.Hour

// MakeCerts makes certificates for hosts, in folders under out, and lists those made.
func MakeCerts(out string, hosts []string, days int, renew bool) ([]string, error) {
	if len(hosts) == 0 {
		return nil, spec.Mistake("--hosts", "none", "the names of the hosts", "for example --hosts alpha,beta")
	}
	for _, h := range hosts {
		if h == "" || h != filepath.Base(h) || h == "." || h == ".." {
			return nil, spec.Mistake("--hosts", fmt.Sprintf("%q", h), "names without slashes", "")
		}
	}
	if most := int(cluster.Lifetime / day); days < 1 || days > most {
		return nil, spec.Mistake("--days", fmt.Sprint(days),
			fmt.Sprintf("1 to %d, the days that the authority is valid", most), "")
	}
	if err := spec.CheckNotStdout("--out", out); err != nil {
		return nil, err
	}
	if err := spec.CheckWritable("--out", out); err != nil {
		return nil, err
	}
	made, err := cluster.MakeCerts(out, hosts, time.Duration(days)*day, renew)
	if a := (*cluster.AuthorityError)(nil); errors.As(err, &a) {
		err = &graph.InputError{File: a.File, Found: a.Found,
			Want: "the authority that signed the folder's certificates",
			Fix:  "put the file back (every host's folder has a copy of ca.pem), or start anew in another folder"}
	}
	return made, err
}
