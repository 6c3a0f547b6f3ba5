package chart

import (
	"html/template"
	"regexp"
	"slices"
	"strings"
)

// partOf is what lines need of the style sheet: the beginnings of selectors.
var partOf = []string{"figure", "figcaption", ".faint", ".plot", ".c0", ".c1", ".c2", ".c3", ".c4", ".c5", ".c6", ".c7",
	"polyline", ".grid", ".curves", ".key", ".charts", "h2"}

var (
	rootRule = regexp.MustCompile(`:root \{([^}]*)\}`)
	plain    = regexp.MustCompile(`(?m)^(?:[^@/{}]+\{[^}]*\} ?)+`)
	rule     = regexp.MustCompile(`([^{}]+)\{([^}]*)\}`)
)

// PartStyle is the style of lines in an element of a class, for documents that are not ours, as notebooks: it says
// nothing of what is outside. It is light or dark as a notebook's theme is, else as the reader's browser.
func PartStyle(class string) template.CSS {
	in := "." + class
	var b strings.Builder
	colours := rootRule.FindAllStringSubmatch(styleSheet, 2)
	light, dark := colours[0][1], colours[1][1]
	b.WriteString(in + " {" + light + "color: var(--text); background: var(--back); padding: 0.6rem 0.8rem; " +
		"font: 13px/1.45 system-ui, sans-serif; }\n" +
		"@media (prefers-color-scheme: dark) { " + in + " {" + dark + "} }\n" +
		"[data-jp-theme-light=true] " + in + ", .vscode-light " + in + " {" + light + "}\n" +
		"[data-jp-theme-light=false] " + in + ", .vscode-dark " + in + " {" + dark + "}\n")
	for _, line := range plain.FindAllString(styleSheet, -1) {
		for _, r := range rule.FindAllStringSubmatch(line, -1) {
			if s := within(in, r[1]); s != "" {
				b.WriteString(s + " {" + r[2] + "}\n")
			}
		}
	}
	return template.CSS(b.String())
}

// within are the selectors of a rule that are of lines, each inside another one.
func within(in, selectors string) string {
	var list []string
	for s := range strings.SplitSeq(selectors, ",") {
		s = strings.TrimSpace(s)
		first, _, _ := strings.Cut(s, " ")
		if slices.Contains(partOf, first) {
			list = append(list, in+" "+s)
		}
	}
	return strings.Join(list, ", ")
}
