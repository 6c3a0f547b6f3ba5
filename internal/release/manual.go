package main

import (
	"fmt"
	"strings"
)

// manual is the page of the manual: all commands and their flags.
func manual(binary, version string) ([]byte, error) {
	root, err := described(binary)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, ".TH STARLING 1 \"\" \"starling %s\" \"Commands\"\n.SH NAME\nstarling \\- %s\n"+
		".SH SYNOPSIS\n.B starling\n.I COMMAND\n.RI [ FLAGS ]\n.SH DESCRIPTION\n%s", roff(version), roff(root.Short),
		paragraphs(root.Long))
	b.WriteString(".SH COMMANDS\n")
	for _, c := range root.Commands {
		page(&b, "starling", c)
	}
	return []byte(b.String()), nil
}

func page(b *strings.Builder, above string, c command) {
	fmt.Fprintf(b, ".SS %s %s\n%s", roff(above), roff(c.Use), paragraphs(c.Long))
	if c.Long == "" {
		b.WriteString(paragraphs(c.Short + "."))
	}
	for _, f := range c.Flags {
		kind := " " + f.Type
		if f.Type == "bool" {
			kind = ""
		}
		fmt.Fprintf(b, ".TP\n\\fB\\-\\-%s\\fR%s\n%s", roff(f.Name), roff(kind), paragraphs(f.Help))
	}
	if c.Example != "" {
		fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	for _, sub := range c.Commands {
		page(b, above+" "+c.Name, sub)
	}
}

// paragraphs is text with its blank lines kept, and lines that are indented as they are.
func paragraphs(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			b.WriteString(".PP\n")
		case strings.HasPrefix(line, "  "):
			b.WriteString(".br\n" + roff(line) + "\n")
		default:
			b.WriteString(roff(line) + "\n")
		}
	}
	return b.String()
}

// roff is text that the manual shows as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
