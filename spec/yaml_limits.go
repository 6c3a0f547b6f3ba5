package spec

import (
	"bytes"
	"fmt"

	"starling/graph"
)

// A spec is a flat list of settings. The YAML decoder takes memory for whatever else a small file
// describes: deep nesting, aliases of aliases, thousands of nodes. So the text is counted before
// the decoder sees it. The counts are upper bounds: a bracket inside a string counts too.
const (
	maxBytes   = 64 << 10
	maxNodes   = 4096 // indicators of YAML and lines, each of which starts one node at most
	maxDepth   = 16   // brackets inside brackets, entries inside entries of one line
	maxIndent  = 64   // columns
	maxAliases = 8
)

// checkLimits refuses text that is too much for a spec.
func checkLimits(b []byte) error {
	if len(b) > maxBytes {
		return tooMuch("a file too large for a spec", "bytes", maxBytes)
	}
	var c yamlCounts
	for line := range bytes.Lines(b) {
		if text := bytes.TrimLeft(line, " "); len(text) > 0 && text[0] != '#' && text[0] != '\n' {
			c.line(text, len(line)-len(text))
		}
	}
	switch {
	case c.nodes > maxNodes:
		return tooMuch(fmt.Sprintf("about %d entries", c.nodes), "entries", maxNodes)
	case c.deepest > maxDepth:
		return tooMuch(fmt.Sprintf("lists inside lists, %d deep", c.deepest), "levels", maxDepth)
	case c.indent > maxIndent:
		return tooMuch(fmt.Sprintf("an indentation of %d", c.indent), "columns", maxIndent)
	case c.aliases > maxAliases:
		return tooMuch(fmt.Sprintf("%d anchors and aliases", c.aliases), "anchors and aliases", maxAliases)
	}
	return nil
}

func tooMuch(found, unit string, limit int) error {
	return &graph.InputError{Found: found, Want: fmt.Sprintf("at most %d %s", limit, unit),
		Fix: "give settings as starling train DIR --dry-run prints them, one per line"}
}

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
