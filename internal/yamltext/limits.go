// Package yamltext bounds YAML before a decoder sees it.
package yamltext

import (
	"bytes"
	"fmt"
)

// Our files are flat lists of settings. A YAML decoder takes memory for whatever else a small file
// describes: deep nesting, aliases of aliases, thousands of nodes. So the text is counted before
// the decoder sees it, against these limits. The counts are upper bounds: a bracket inside a string counts too.
const (
	MaxBytes   = 64 << 10 // of a file
	MaxNodes   = 4096     // indicators of YAML and lines, each of which starts one node at most
	MaxDepth   = 16       // brackets inside brackets, entries inside entries of one line
	MaxIndent  = 64       // columns
	MaxAliases = 8
)

// Excess is in what text exceeds the limits, and the limit; "": it does not.
func Excess(b []byte) (found, want string) {
	if len(b) > MaxBytes {
		return "a file too large for settings", atMost(MaxBytes, "bytes")
	}
	var c yamlCounts
	for line := range bytes.Lines(b) {
		if text := bytes.TrimLeft(line, " "); len(text) > 0 && text[0] != '#' && text[0] != '\n' {
			c.line(text, len(line)-len(text))
		}
	}
	switch {
	case c.nodes > MaxNodes:
		return fmt.Sprintf("about %d entries", c.nodes), atMost(MaxNodes, "entries")
	case c.deepest > MaxDepth:
		return fmt.Sprintf("lists inside lists, %d deep", c.deepest), atMost(MaxDepth, "levels")
	case c.indent > MaxIndent:
		return fmt.Sprintf("an indentation of %d", c.indent), atMost(MaxIndent, "columns")
	case c.aliases > MaxAliases:
		return fmt.Sprintf("%d anchors and aliases", c.aliases), atMost(MaxAliases, "anchors and aliases")
	}
	return "", ""
}

func atMost(limit int, unit string) string { return fmt.Sprintf("at most %d %s", limit, unit) }

// yamlCounts are what of YAML's structure can be seen in single bytes.
type yamlCounts struct {
	nodes, depth, deepest, indent, aliases int
}

// line counts one line, without its indentation.
func (c *yamlCounts) line(text []byte, indent int) {
	c.nodes++
	c.indent = max(c.indent, indent)
	entries := 0 // of "- - x" and "? ? x"
	before := byte(' ')
	for i, b := range text {
		switch b {
		case '[', '{':
			c.nodes++
			c.depth++
		case ']', '}':
			c.depth = max(c.depth-1, 0)
		case ',', ':', '!', '"', '\'', '|', '>', '%', '\t', '\r':
			c.nodes++
		case '-', '?':
			if i+1 < len(text) && (text[i+1] <= ' ') {
				c.nodes++
				entries++
			}
		case '&', '*':
			if bytes.IndexByte([]byte(" \t[{,:-?"), before) >= 0 {
				c.aliases++
			}
		}
		before = b
	}
	c.deepest = max(c.deepest, c.depth, entries)
}
