package event

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"time"
)

// JSONLines writes each event as one line of JSON, for other programs:
//
//	{"event":"epoch","time":"2025-01-01T00:00:00Z","epoch":3,"loss":1.25,…}
//
// Names are the fields' names, in lower case with underscores; a number that
// is not finite is null. Spans are left out: the trace file is for them. What workers
// report comes the less often the longer a run takes.
type JSONLines struct {
	w    io.Writer
	now  func() time.Time
	thin thinner
	err  error
}

// NewJSONLines writes to w.
func NewJSONLines(w io.Writer) *JSONLines { return &JSONLines{w: w, now: time.Now} }

// On writes an event that comes now.
func (j *JSONLines) On(e Event) {
	if _, span := e.(Span); !span {
		j.Take(e, j.now())
	}
}

// Take writes an event that came at a time.
func (j *JSONLines) Take(e Event, at time.Time) {
	if _, ok := e.(Span); ok || j.err != nil {
		return
	}
	for _, e := range j.thin.take(e, at) {
		b, err := Encode(e, at)
		if err == nil {
			_, err = j.w.Write(append(b, '\n'))
		}
		if j.err = err; err != nil {
			return
		}
	}
}

// DecodeAt is Decode with the time of the line.
func DecodeAt(line []byte) (Event, time.Time, error) {
	e, err := Decode(line)
	if err != nil {
		return nil, time.Time{}, err
	}
	var at struct{ Time time.Time }
	if err := json.Unmarshal(line, &at); err != nil {
		return nil, time.Time{}, fmt.Errorf("event: time: %w", err)
	}
	return e, at.Time, nil
}

// Encode is an event, spans included, as one line of JSON without its end.
func Encode(e Event, at time.Time) ([]byte, error) {
	v := reflect.ValueOf(e)
	line := map[string]any{"event": strings.ToLower(v.Type().Name()), "time": at.UTC().Format(time.RFC3339Nano)}
	for i := range v.NumField() {
		line[snake(v.Type().Field(i).Name)] = finite(v.Field(i).Interface())
	}
	return json.Marshal(line)
}

// Decode parses a line that Encode made. Numbers that
// are null are NaN.
func Decode(line []byte) (Event, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	var name string
	json.Unmarshal(fields["event"], &name) // no name is an unknown one
	known, ok := byName[name]
	if !ok {
		return nil, fmt.Errorf("event: unknown event %.40q", name)
	}
	v := reflect.New(known).Elem()
	for i := range v.NumField() {
		raw, ok := fields[snake(known.Field(i).Name)]
		if !ok {
			continue
		}
		if f := v.Field(i); f.Kind() == reflect.Float64 && string(raw) == "null" {
			f.SetFloat(math.NaN())
		} else if err := json.Unmarshal(raw, f.Addr().Interface()); err != nil {
			return nil, fmt.Errorf("event %s: %w", name, err)
		}
	}
	return v.Interface().(Event), nil
}

// byName lists the types of events.
var byName = func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, e := range []Event{Opened{}, Planned{}, Worker{}, Result{}, Started{}, Epoch{}, Saved{}, Note{}, Span{},
		Progress{}, Done{}} {
		t := reflect.TypeOf(e)
		all[strings.ToLower(t.Name())] = t
	}
	return all
}()

// Err is the first error of writing.
func (j *JSONLines) Err() error { return j.err }

func finite(x any) any {
	if f, ok := x.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return nil
	}
	return x
}

// snake turns FirstEpoch into first_epoch, LR into lr.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		upper := c >= 'A' && c <= 'Z'
		if upper && i > 0 && name[i-1] >= 'a' {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}
