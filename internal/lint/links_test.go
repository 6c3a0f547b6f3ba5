package lint

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	code    = regexp.MustCompile("(?ms)^```.*?^```$|^    [^\n]*$|`[^`\n]+`")
	unslug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	page    = regexp.MustCompile(`\bdocs/[\w/.-]+\.md\b`)
)

// anchors are the names that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		names[strings.ReplaceAll(unslug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return names
}

// deadLinks are the relative links of a page that lead nowhere.
func deadLinks(root, from, text string) (dead []string) {
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		u, err := url.Parse(m[1])
		if err == nil && u.Scheme != "" {
			continue
		}
		to := from
		if err == nil && u.Path != "" {
			to = path.Join(path.Dir(from), u.Path)
		}
		there, readErr := os.ReadFile(filepath.Join(root, to))
		if info, statErr := os.Stat(filepath.Join(root, to)); statErr == nil && info.IsDir() && u.Fragment == "" {
			continue
		}
		if err != nil || readErr != nil || u.Fragment != "" && !anchors(string(there))[u.Fragment] {
			dead = append(dead, m[1])
		}
	}
	return dead
}

// TestLinks: every relative link of a page leads to a file, and to a heading where it
// names one; so does every page of docs that the code tells a user or a reader of.
func TestLinks(t *testing.T) {
	read := func(root, name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	root, _ := filepath.Abs("../..")
	walk(t, ".md", func(from string) {
		for _, to := range deadLinks(root, from, read(root, from)) {
			t.Errorf("%s: the link %q leads to no file or heading", from, to)
		}
	})
	sources(t, func(from string) {
		for _, to := range page.FindAllString(read(root, from), -1) {
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s tells of %s, which is not there", from, to)
			}
		}
	})
}

func TestDeadLinksAreFound(t *testing.T) {
	root := t.TempDir()
	text := "# Sums, `a` & b\n[a](#sums-a--b) [b](#other) [c](gone.md)\n[two\nlines](here.md#sums-a--b) " +
		"[d](https://x.org/gone.md)\n    [code](gone.md)\n"
	if err := os.WriteFile(filepath.Join(root, "here.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(deadLinks(root, "here.md", text), " "); got != "#other gone.md" {
		t.Errorf("dead links: %s", got)
	}
}

// linksOf returns the pages that a page links to, by their paths from the root.
func linksOf(from, text string) (to []string) {
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		u, err := url.Parse(m[1])
		if err == nil && u.Scheme == "" && strings.HasSuffix(u.Path, ".md") {
			to = append(to, path.Join(path.Dir(from), u.Path))
		}
	}
	return to
}

// unreachable returns the pages that no chain of links leads to from the starts.
func unreachable(pages map[string]string, starts ...string) (lost []string) {
	seen := map[string]bool{}
	var follow func(string)
	follow = func(page string) {
		if text, ok := pages[page]; ok && !seen[page] {
			seen[page] = true
			for _, to := range linksOf(page, text) {
				follow(to)
			}
		}
	}
	for _, start := range starts {
		follow(start)
	}
	for page := range pages {
		if !seen[page] {
			lost = append(lost, page)
		}
	}
	slices.Sort(lost)
	return lost
}

// TestPagesAreReachable: links lead from README.md or docs/README.md to every page of the repository, and
// docs/README.md itself lists every page of its folder.
func TestPagesAreReachable(t *testing.T) {
	const index = "docs/README.md"
	pages := map[string]string{}
	root, _ := filepath.Abs("../..")
	walk(t, ".md", func(from string) {
		text, err := os.ReadFile(filepath.Join(root, from))
		if err != nil {
			t.Fatal(err)
		}
		pages[from] = string(text)
	})
	for _, page := range unreachable(pages, "README.md", index) {
		t.Errorf("no link leads from README.md or %s to %s", index, page)
	}
	listed := linksOf(index, pages[index])
	for page := range pages {
		if path.Dir(page) == "docs" && page != index && !slices.Contains(listed, page) {
			t.Errorf("%s does not list %s", index, page)
		}
	}
}

func TestUnreachablePagesAreFound(t *testing.T) {
	pages := map[string]string{"README.md": "[a](pages/a.md#top)", "pages/a.md": "[b](b.md) `[c](c.md)`",
		"pages/b.md": "[a](a.md)", "pages/c.md": ""}
	if got := strings.Join(unreachable(pages, "README.md"), " "); got != "pages/c.md" {
		t.Errorf("unreachable: %s", got)
	}
}
