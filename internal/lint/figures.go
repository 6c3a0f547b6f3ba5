package lint

import (
	"crypto/sha256"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// FiguresFile says which figures stand on which page, and which code was under them when they were made:
//
//	PAGE: TEXT
//	  made: COMMIT
//	  by: SCRIPT or command
//	  FILE HASH
//
// The figures stand on the page from TEXT to the next TEXT of the file or the next heading. There the page names the
// commit; where one of the files has changed, it has Stale behind it.
const FiguresFile = "docs/figures.txt"

// Stale is what a page has behind the commit of figures whose code is no longer that of the commit.
const Stale = "; the code has changed since"

// Figures are an entry of FiguresFile.
type Figures struct {
	Page, Text, Made, By string
	Files                []CodeFile
}

// CodeFile is a file of an algorithm, with the hash of its code when the figures were made.
type CodeFile struct{ Name, Hash string }

// Name is how the command knows the entry.
func (f *Figures) Name() string { return f.Page + ": " + f.Text }

// ReadFigures reads FiguresFile below root: the lines before the first entry, and the entries.
func ReadFigures(root string) (head string, all []*Figures, err error) {
	text, err := os.ReadFile(filepath.Join(root, FiguresFile))
	if err != nil {
		return "", nil, err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\n")
		entry, isField := strings.CutPrefix(line, "  ")
		switch {
		case line == "":
		case strings.HasPrefix(line, "#"):
			head += line + "\n"
		case !isField:
			page, text, ok := strings.Cut(line, ": ")
			if !ok {
				return "", nil, fmt.Errorf("%s:%d: want PAGE: TEXT", FiguresFile, n)
			}
			all = append(all, &Figures{Page: page, Text: text})
		default:
			key, value, ok := strings.Cut(entry, " ")
			if !ok || len(all) == 0 {
				return "", nil, fmt.Errorf("%s:%d: want made:, by: or a file and its hash", FiguresFile, n)
			}
			switch f := all[len(all)-1]; key {
			case "made:":
				f.Made = value
			case "by:":
				f.By = value
			default:
				f.Files = append(f.Files, CodeFile{key, value})
			}
		}
	}
	return head, all, nil
}

// WriteFigures writes FiguresFile below root.
func WriteFigures(root, head string, all []*Figures) error {
	var b strings.Builder
	b.WriteString(head)
	for _, f := range all {
		fmt.Fprintf(&b, "\n%s\n  made: %s\n  by: %s\n", f.Name(), f.Made, f.By)
		for _, c := range f.Files {
			fmt.Fprintf(&b, "  %s %s\n", c.Name, c.Hash)
		}
	}
	return os.WriteFile(filepath.Join(root, FiguresFile), []byte(b.String()), 0o644)
}

// CodeHash is the hash of a Go file's tokens: comments and layout do not change it. Other files count as they are.
func CodeHash(name string, text []byte) string {
	h := sha256.New()
	if strings.HasSuffix(name, ".go") {
		var s scanner.Scanner
		files := token.NewFileSet()
		s.Init(files.AddFile(name, -1, len(text)), text, func(token.Position, string) {}, 0)
		for {
			_, tok, lit := s.Scan()
			if tok == token.EOF {
				break
			}
			if tok == token.SEMICOLON {
				lit = "" // written, or the end of a line
			}
			fmt.Fprintf(h, "%d %s\x00", tok, lit)
		}
	} else {
		h.Write(text)
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:12]
}

// Changed are the files whose code is not that of the entry any more.
func (f *Figures) Changed(read func(name string) ([]byte, error)) (names []string) {
	for _, c := range f.Files {
		if text, err := read(c.Name); err != nil || CodeHash(c.Name, text) != c.Hash {
			names = append(names, c.Name)
		}
	}
	return names
}

// On is the part of the page that has the figures, in one line.
func (f *Figures) On(page string, all []*Figures) (string, error) {
	page = strings.Join(strings.Fields(strings.ReplaceAll(page, "\n#", " \x00 ")), " ")
	if n := strings.Count(page, f.Text); n != 1 {
		return "", fmt.Errorf("%q stands on %s %d times, want once", f.Text, f.Page, n)
	}
	_, part, _ := strings.Cut(page, f.Text)
	part, _, _ = strings.Cut(part, "\x00")
	for _, other := range all {
		if other != f && other.Page == f.Page {
			part, _, _ = strings.Cut(part, other.Text)
		}
	}
	return f.Text + part, nil
}

// Fault says what is wrong with the figures: nothing where the page names the commit, and says that code has changed
// where it has and only there.
func (f *Figures) Fault(part string, changed []string) string {
	accept := fmt.Sprintf("go run ./internal/lint/figures -accept '%s'", f.Name())
	stale := strings.Contains(part, f.Made+Stale)
	switch {
	case len(f.Made) < 7 || f.By == "" || len(f.Files) == 0:
		return "needs made:, by: and files with their hashes"
	case !strings.Contains(part, f.Made):
		return fmt.Sprintf("the page does not name commit %s there", f.Made)
	case len(changed) > 0 && !stale:
		return fmt.Sprintf("made at %s, and since then %s changed. Make the figures again (%s) and run "+
			"%s -made COMMIT; or, if the change leaves the figures as they are, run it without -made; or write %q "+
			"behind the commit on the page", f.Made, strings.Join(changed, ", "), f.By, accept, Stale)
	case len(changed) == 0 && stale:
		return fmt.Sprintf("the code is that of %s; take %q off the page", f.Made, Stale)
	}
	return ""
}
