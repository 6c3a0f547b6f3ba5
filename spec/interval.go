package spec

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Interval is how often something is done: a number of epochs or, if negative, of steps. Its text
// form is 10, 10epochs or 500steps.
type Interval int

// mostInterval bounds both.
const mostInterval = 100_000_000

// Epochs is 0 if it is a number of steps.
func (i Interval) Epochs() int { return max(int(i), 0) }

// Steps is 0 if it is a number of epochs.
func (i Interval) Steps() int { return max(-int(i), 0) }

func (i Interval) String() string {
	if i < 0 {
		return fmt.Sprintf("%dsteps", i.Steps())
	}
	return strconv.Itoa(int(i))
}

// Set is the inverse of String.
func (i *Interval) Set(text string) error {
	number, steps := strings.CutSuffix(text, "steps")
	number = strings.TrimSuffix(number, "epochs")
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
	switch {
	case err != nil || n > mostInterval || steps && n == 0:
		return fmt.Errorf("%q is no number of epochs up to %d, nor of steps, as 500steps", text, mostInterval)
	case steps:
		*i = -Interval(n)
	default:
		*i = Interval(n)
	}
	return nil
}

// Type is what a command's help calls the value.
func (i *Interval) Type() string { return "interval" }

func (i Interval) MarshalJSON() ([]byte, error) {
	if i < 0 {
		return json.Marshal(i.String())
	}
	return json.Marshal(int(i))
}

// UnmarshalJSON reads a number, as earlier versions wrote it, or text.
func (i *Interval) UnmarshalJSON(b []byte) error { return i.Set(strings.Trim(string(b), `"`)) }

func (i Interval) MarshalYAML() (any, error) {
	if i < 0 {
		return i.String(), nil
	}
	return int(i), nil
}

func (i *Interval) UnmarshalYAML(b []byte) error {
	return i.Set(strings.Trim(strings.TrimSpace(string(b)), `"'`))
}
