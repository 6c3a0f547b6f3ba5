package fetch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"starling/event"
)

// offline is a place that cannot be reached at all: asking again at once does not help.
type offline struct {
	url string
	err error
}

func (o *offline) Error() string { return fmt.Sprintf("%s cannot be reached: %v", o.url, o.err) }
func (o *offline) Unwrap() error { return o.err }

// unreachable tells whether not even a connection came about.
func unreachable(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	return errors.As(err, &name) || errors.As(err, &dial) && dial.Op == "dial"
}

// byHand says, where there is no network, which files to fetch from where, and where to put them.
func (s *publicSet) byHand(name, dir, mirror string, err error, events event.Listener) error {
	var o *offline
	if !errors.As(err, &o) {
		return err
	}
	for _, f := range s.files {
		path := filepath.Join(dir, f.name)
		if _, err := os.Stat(path); err != nil {
			events.On(event.Note{Text: fmt.Sprintf("missing: %s, from %s", path, f.address(name, mirror))})
		}
	}
	return fmt.Errorf("%w; without a network, fetch the missing files elsewhere, put them into %s and give the same command "+
		"again (starling get demo needs none)", err, dir)
}

// address is where the file is.
func (f *publicFile) address(name, mirror string) string {
	if mirror != "" {
		return strings.TrimRight(mirror, "/") + "/" + name + "/" + f.name
	}
	return f.url
}
