package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"starling/graph"
)

// Mistake is a flag, argument or file that a user has to correct: what was found there,
// what is expected and what to do.
func Mistake(field, found, want, fix string) error {
	return &graph.InputError{Field: field, Found: found, Want: want, Fix: fix}
}

// Sentence is an error as what was found: its text is no thing.
func Sentence(err error) string { return graph.Sentence(err.Error()) }

// NotOneOf refuses a value that is not in a list, and suggests the one that was perhaps meant.
func NotOneOf(field, value string, known []string) error {
	return Mistake(field, fmt.Sprintf("%q", value), "one of "+strings.Join(known, ", "), suggest(value, known))
}

// takes is what the flags of a type take. Those that are not here take any text.
var takes = map[string]string{
	"int": "a whole number, for example 2", "int64": "a whole number, for example 2",
	"uint64": "a whole number from 0 on",
	"float":  "a number, for example 0.01", "float64": "a number, for example 0.01",
	"bool": "true or false", "ints": "whole numbers, separated by commas, for example 15,10",
	"intSlice": "whole numbers, separated by commas, for example 15,10",
	"duration": "a time with its unit, for example 10ms",
	"interval": "a number of epochs, or of steps, for example 500steps",
}

// Takes is what the flags of a type take; "": any text.
func Takes(kind string) string { return takes[kind] }

// FlagMistake is the refusal of a flag's value that does not parse.
func FlagMistake(f *pflag.Flag, value string, err error) error { return flagMistake(f, value, err) }

func flagMistake(f *pflag.Flag, value string, err error) *graph.InputError {
	var in *graph.InputError
	if errors.As(err, &in) { // which says more
		return in
	}
	return &graph.InputError{Field: "--" + f.Name, Found: fmt.Sprintf("%q", value), Want: Takes(f.Value.Type())}
}

// Renamed is a mistake that names other flags, for a command whose flags are not called as the
// settings behind them.
func Renamed(err error, flags map[string]string) error {
	var in *graph.InputError
	if !errors.As(err, &in) || flags[in.Field] == "" {
		return err
	}
	named := *in
	named.Field = flags[in.Field]
	return &named
}

// ReadFile reads at most limit bytes of the file that a flag names.
func ReadFile(flag, path string, limit int64, want, fix string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Mistake(flag, notOpened(err), want, fix)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, Mistake(flag, notOpened(err), want, fix)
	}
	return b, nil
}

// notOpened says which file could not be opened, and why, without the name of the system
// call.
func notOpened(err error) string {
	var at *fs.PathError
	switch {
	case !errors.As(err, &at):
		return err.Error()
	case errors.Is(err, fs.ErrNotExist):
		return "no such file as " + at.Path
	}
	return at.Path + ": " + at.Err.Error()
}
