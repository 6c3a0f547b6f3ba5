package chart

import (
	_ "embed"
	"html/template"
)

//go:embed style.css
var styleSheet string

//go:embed charts.html
var templates string

//go:embed script.js
var script string

// Style is the style sheet of the project's pages, which are light or dark as the reader's browser is.
func Style() template.CSS { return template.CSS(styleSheet) }

// Script shows values under the pointer and sorts tables.
func Script() template.JS { return template.JS(script) }

// New parses a page, which has the templates of charts, the style sheet as {{style}} and the script as {{script}}.
func New(name, text string) *template.Template {
	return template.Must(template.New(name).Funcs(template.FuncMap{"style": Style, "script": Script}).
		Parse(templates + text))
}
