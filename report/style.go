package report

import (
	"html/template"

	"starling/report/chart"
)

// Style is the style sheet of the project's pages, which are light or dark as the reader's browser is.
func Style() template.CSS { return chart.Style() }

// newTemplate parses a page, which has the charts and the style sheet.
func newTemplate(name, text string) *template.Template { return chart.New(name, text) }

// WritePage writes a page to a file, whole or not at all.
func WritePage(path string, page []byte) error { return writeFile(path, page) }
