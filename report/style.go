package report

import (
	"html/template"
	"strings"
)

// Style is the style sheet of the project's pages, which are light or dark as the reader's browser is.
func Style() template.CSS {
	_, rest, _ := strings.Cut(comparePage, "<style>")
	sheet, _, _ := strings.Cut(rest, "</style>")
	return template.CSS(sheet)
}

// WritePage writes a page to a file, whole or not at all.
func WritePage(path string, page []byte) error { return writeFile(path, page) }
