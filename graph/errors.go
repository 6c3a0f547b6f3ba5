package graph

import (
	"errors"
	"strings"
)

// ErrInput is what errors.Is finds in every error caused by what the user gave
// (a bad file, an impossible option), as opposed to a disk or a system that failed.
var ErrInput = errors.New("bad input")

// InputError is a user's mistake: where it is, what was found, what was
// expected, and what to do. Empty parts are left out of the message.
type InputError struct {
	File  string // path of the file, if any
	Field string // array, line, key or option inside it
	Found string // a thing, or else a Sentence
	Want  string
	Fix   string
}

// Error joins the parts in reading order.
func (e *InputError) Error() string {
	var b strings.Builder
	part := func(before, s string) {
		if s == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteString(before)
		}
		b.WriteString(s)
	}
	part("", e.File)
	part(": ", e.Field)
	comma := ", "
	if rest, ok := strings.CutPrefix(e.Found, sentence); ok {
		part(": ", rest)
		comma = "; "
	} else if e.Found != "" {
		part(": ", "found "+e.Found)
	}
	if e.Want != "" {
		part(comma, "want "+e.Want)
	}
	part("; ", e.Fix)
	return b.String()
}

// sentence marks what stands in Found and is no thing.
const sentence = "\x00"

// Sentence is what may stand in Found though it is no thing, such as the text of another error: "found" does not
// stand before it.
func Sentence(text string) string { return sentence + text }

// Apart is the refusal of two settings that do not go together: which they are, why, and what to
// use instead.
func Apart(one, other, why, instead string) error {
	return &InputError{Field: one + " with " + other, Found: Sentence(why), Fix: instead}
}

// Is makes errors.Is(err, ErrInput) true.
func (e *InputError) Is(target error) bool { return target == ErrInput }

// InFile adds a file name to an InputError; other errors stay as they are.
func InFile(file string, err error) error {
	var in *InputError
	if errors.As(err, &in) {
		named := *in
		named.File = file
		return &named
	}
	return err
}

// inFile is InFile for errors that do not name a file yet.
func inFile(file string, err error) error {
	var in *InputError
	if errors.As(err, &in) && in.File != "" {
		return err
	}
	return InFile(file, err)
}
