// Package chart draws what pages show: lines, time lines of workers, heat maps and tables, as SVG and HTML that are
// light or dark as the reader's browser is. Pages that are saved and pages of runs that go on are drawn by the same
// code, so that what is seen is what is kept.
//
// Charts are data for the templates here. A page is made by New, which adds the templates and the style sheet:
//
//	{{style}}                 the style sheet, for the head of the page
//	{{template "plot" .}}     a *Lines with its heading; {{template "lines" .}} without
//	{{template "strip" .}}    a *Strip
//	{{template "heat" .}}     a *Heat
//	{{template "table" .}}    a *Table, which a page with the script sorts
//	{{template "facts" .}}    a []Fact
//	{{template "keys" .}}     a []Key, what colours mean
//	{{template "command" .}}  a command, with a button that copies it
//	{{template "begin" .}}    the beginning of a page of this title, to the heading
//	{{template "end"}}        its end, with the script
//
// Without the script nothing is lost but the values under the pointer and the order of tables.
package chart
