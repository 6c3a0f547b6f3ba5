package table

import (
	"fmt"
	"math"
	"strings"
	"time"

	"starling/graph"
)

// Dates in text are in one of these forms, with or without a time of day behind them. All of a column are in one form.
// Without a zone they are in UTC.
//
//	year-month-day   2024-03-01, 2024-03-01 10:30, 2024-03-01T10:30:00Z, 2024-03-01T10:30:00.5+02:00, 2024/3/1
//	day/month/year   1/3/2024, 01.03.2024 10:30
//	month/day/year   3/1/2024 10:30 PM
//	words            1 Mar 2024, Mar 1, 2024, Fri, 01 Mar 2024 10:30:00 GMT
const (
	yearFirst  = "year-month-day"
	dayFirst   = "day/month/year"
	monthFirst = "month/day/year"
	inWords    = "words"
)

// dateForms are layouts of each form; times of day follow.
var dateForms = []struct {
	name    string
	layouts []string
}{
	{yearFirst, []string{"2006-1-2", "2006/1/2", "2006.1.2"}},
	{dayFirst, []string{"2/1/2006", "2.1.2006", "2-1-2006"}},
	{monthFirst, []string{"1/2/2006", "1-2-2006"}},
	{inWords, []string{"2 Jan 2006", "2 January 2006", "Jan 2, 2006", "January 2, 2006", "Jan 2 2006", "2-Jan-2006",
		"Mon, 2 Jan 2006"}},
}

// timesOfDay follow a date; Go reads fractions of seconds where none are named.
var timesOfDay = []string{"", " 15:04", " 15:04:05", "T15:04", "T15:04:05", "T15:04:05Z07:00", " 15:04:05Z07:00",
	" 15:04:05 MST", " 15:04:05 -0700", " 3:04 PM", " 3:04:05 PM", "T15:04Z07:00", " 15:04:05 -0700 MST"}

// layoutsOf are all layouts of a form.
var layoutsOf = func() map[string][]string {
	all := map[string][]string{}
	for _, f := range dateForms {
		for _, date := range f.layouts {
			for _, of := range timesOfDay {
				all[f.name] = append(all[f.name], date+of)
			}
		}
	}
	all[inWords] = append(all[inWords], time.ANSIC, time.UnixDate, time.RFC850)
	return all
}()

// Date reads dates of one form. The layout that fitted last is tried first.
type Date struct {
	Form string
	last string
}

// Seconds are those since 1970; ok is false if the text is no date of the form.
func (d *Date) Seconds(s string) (seconds int64, ok bool) {
	if d.last != "" {
		if t, err := time.Parse(d.last, s); err == nil {
			return t.Unix(), true
		}
	}
	if len(s) < 6 || len(s) > 64 || !strings.ContainsAny(s, "0123456789") {
		return 0, false
	}
	for _, layout := range layoutsOf[d.Form] {
		if t, err := time.Parse(layout, s); err == nil {
			d.last = layout
			return t.Unix(), true
		}
	}
	return 0, false
}

// IsDate tells whether a text is a date of any form.
func IsDate(s string) bool {
	for _, f := range dateForms {
		d := Date{Form: f.name}
		if _, ok := d.Seconds(s); ok {
			return true
		}
	}
	return false
}

// Clock reads the times of a column.
type Clock struct {
	Column string
	As     Kind // what is to be wanted of the column
	Dates  bool // they are seconds since 1970
	Date   Date // of text
}

// ClockOf finds how the times of a column are written. form is the dates' own, if it is known already. It reads dates until
// only one form is left: 1/3/2024 may be two days.
func ClockOf(t *Table, c *Column, form string) (*Clock, error) {
	k := &Clock{Column: c.Name}
	switch c.Kind {
	case Time:
		k.As, k.Dates = Whole, true
	case Whole, Real:
		k.As = c.Kind
	case Vector:
		return nil, bad(t.Pattern, "column "+c.Name, "vectors", "a time in every row: a date, or a whole number",
			"name another column")
	default:
		k.As, k.Dates, k.Date.Form = Text, true, form
		if form == "" {
			var err error
			if k.Date.Form, err = findForm(t, c.Name); err != nil {
				return nil, err
			}
		}
	}
	return k, nil
}

// findForm is the form that all dates of a column have.
func findForm(t *Table, name string) (string, error) {
	var left []Date
	for _, f := range dateForms {
		left = append(left, Date{Form: f.name})
	}
	some, both := false, ""
	err := t.Read([]Want{{name, Text}}, func(b *Batch) error {
		v := &b.Columns[0]
		for i, s := range v.Text {
			if v.IsMissing(i) || IsMissing(s) {
				continue
			}
			some = true
			var fit []Date
			for k := range left {
				if _, ok := left[k].Seconds(s); ok {
					fit = append(fit, left[k])
				}
			}
			if len(fit) == 0 {
				return badTime(b, i, name, s, left)
			}
			if left = fit; len(left) > 1 {
				both = s
			}
		}
		if len(left) == 1 && b.First > sampleRows {
			return errEnough
		}
		return nil
	})
	switch {
	case err != nil && err != errEnough:
		return "", err
	case !some:
		return "", bad(t.Pattern, "column "+name, "no time in any row", "dates, or whole numbers", "name another column")
	case len(left) > 1:
		return "", bad(t.Pattern, "column "+name, fmt.Sprintf("%q, and no date that tells day from month", both),
			"dates of one meaning", "write them as 2024-03-01")
	}
	return left[0].Form, nil
}

func badTime(b *Batch, i int, name, s string, left []Date) error {
	want := "a date (2024-03-01, 1.3.2024, 3/1/2024, 1 Mar 2024) or a whole number"
	if len(left) == 1 {
		want = "a date as those before, " + left[0].Form
	}
	return bad(b.File, fmt.Sprintf("%s, column %.60s", b.Place(i), name), fmt.Sprintf("%.60q", s), want, "correct it")
}

// Time is row i's; graph.NoTime if it is missing.
func (k *Clock) Time(b *Batch, v *Values, i int) (int64, error) {
	if v.IsMissing(i) {
		return graph.NoTime, nil
	}
	switch {
	case k.As == Whole:
		if x := v.Whole[i]; x >= -graph.MaxTime && x <= graph.MaxTime {
			return x, nil
		}
		return 0, k.refuse(b, i, fmt.Sprint(v.Whole[i]), "a time from -2^62 to 2^62")
	case k.As == Real:
		x := v.Real[i]
		if x == math.Trunc(x) && math.Abs(x) <= 1<<53 {
			return int64(x), nil
		}
		return 0, k.refuse(b, i, fmt.Sprint(x), "a date, or a whole number: multiply fractions")
	case IsMissing(v.Text[i]):
		return graph.NoTime, nil
	}
	t, ok := k.Date.Seconds(v.Text[i])
	if !ok {
		return 0, badTime(b, i, k.Column, v.Text[i], []Date{k.Date})
	}
	return t, nil
}

func (k *Clock) refuse(b *Batch, i int, found, want string) error {
	return bad(b.File, fmt.Sprintf("%s, column %.60s", b.Place(i), k.Column), found, want, "correct it")
}

// String says what the times are.
func (k *Clock) String() string {
	switch {
	case k.Date.Form != "":
		return "dates, " + k.Date.Form
	case k.Dates:
		return "dates"
	}
	return "whole numbers"
}
