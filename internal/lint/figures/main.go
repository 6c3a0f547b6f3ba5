// Command figures keeps docs/figures.txt, which says at which commit a page's figures were made and hashes the code
// under them. Run it in the root of the repository:
//
//	go run ./internal/lint/figures                        # lists all figures, with what changed since
//	go run ./internal/lint/figures -accept NAME           # the change of the code leaves these figures as they are
//	go run ./internal/lint/figures -accept NAME -made C   # they were made again, at commit C
//
// NAME is a part of an entry's first line, such as compare.md; it names one entry.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"starling/internal/lint"
)

func main() {
	accept := flag.String("accept", "", "take the code as it is for the figures of this `name`")
	made := flag.String("made", "", "take the code of this `commit`, at which they were made")
	flag.Parse()
	if err := keep(*accept, *made); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func keep(accept, made string) error {
	head, all, err := lint.ReadFigures(".")
	if err != nil {
		return err
	}
	var named []*lint.Figures
	for _, f := range all {
		if accept == "" {
			fmt.Printf("%s\n  made at %s by %s\n", f.Name(), f.Made, f.By)
			if changed := f.Changed(os.ReadFile); len(changed) > 0 {
				fmt.Printf("  changed: %s\n", strings.Join(changed, " "))
			}
		} else if strings.Contains(f.Name(), accept) {
			named = append(named, f)
		}
	}
	if accept == "" {
		return nil
	}
	if len(named) != 1 {
		return fmt.Errorf("%q is part of %d names, want one; without -accept all are listed", accept, len(named))
	}
	f, read := named[0], os.ReadFile
	if made != "" {
		out, err := exec.Command("git", "rev-parse", "--short=7", made+"^{commit}").Output()
		if err != nil {
			return fmt.Errorf("no commit %s: %w", made, err)
		}
		f.Made = strings.TrimSpace(string(out))
		read = func(name string) ([]byte, error) {
			return exec.Command("git", "show", f.Made+":"+filepath.ToSlash(name)).Output()
		}
	}
	for i, c := range f.Files {
		f.Files[i].Hash = "none"
		if text, err := read(c.Name); err == nil {
			f.Files[i].Hash = lint.CodeHash(c.Name, text)
		} else if made == "" {
			return err
		}
	}
	return lint.WriteFigures(".", head, all)
}
