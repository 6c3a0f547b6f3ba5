package report

import (
	_ "embed"
	"html/template"
)

//go:embed style.css
var styleSheet string

// Style is the style sheet of the project's pages, which are light or dark as the reader's browser is.
func Style() template.CSS { return template.CSS(styleSheet) }

// newTemplate parses a page, which has the style sheet as {{style}}.
func newTemplate(name, text string) *template.Template {
	return template.Must(template.New(name).Funcs(template.FuncMap{"style": Style,
		"evaluationStyle": func() template.CSS { return template.CSS(evaluationStyle) }}).Parse(text))
}

// WritePage writes a page to a file, whole or not at all.
func WritePage(path string, page []byte) error { return writeFile(path, page) }
