package lint

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const (
	// longestSubject is the length of a commit's subject that every tool shows whole.
	longestSubject = 72
	// before is the last commit whose subject may be longer.
	before = "e57b9f5"
)

var subjectForm = regexp.MustCompile(`^[\w.][^:]*: \S`)

// badSubject says what is wrong with a commit's subject, if anything is.
func badSubject(subject string) string {
	switch {
	case len([]rune(subject)) > longestSubject:
		return "longer than 72 characters"
	case !subjectForm.MatchString(subject):
		return "not of the form package: what changed"
	}
	return ""
}

// TestCommitSubjects: a commit's subject is short and names the package. In a folder without its history, as of an
// archive or a shallow clone, nothing is checked.
func TestCommitSubjects(t *testing.T) {
	git := func(args ...string) (string, error) {
		c := exec.Command("git", args...)
		c.Dir = "../.."
		out, err := c.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if out, err := git("merge-base", "--is-ancestor", before, "HEAD"); err != nil {
		t.Skipf("no history after %s here, so that no commit is checked: %v %s", before, err, out)
	}
	out, err := git("log", "--no-merges", "--format=%h %s", before+"..HEAD")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(out) {
		commit, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		if bad := badSubject(subject); bad != "" {
			t.Errorf("%s is %s: %q", commit, bad, subject)
		}
	}
}

func TestBadSubjectsAreFound(t *testing.T) {
	for subject, want := range map[string]bool{"wire, train/full: rows go once": true, "docs: new": true,
		"Rows go once": false, "wire:": false, "wire: " + strings.Repeat("x", 67): false} {
		if got := badSubject(subject) == ""; got != want {
			t.Errorf("%q: %v", subject, got)
		}
	}
}
