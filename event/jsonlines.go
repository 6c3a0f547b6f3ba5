package event

import (
	"encoding/json"
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
// Names are those of the fields, in lower case with underscores; a number that
// is not finite is null. Spans are left out: the trace file is for them.
type JSONLines struct {
	w   io.Writer
	now func() time.Time
	err error
}

// NewJSONLines writes to w.
func NewJSONLines(w io.Writer) *JSONLines { return &JSONLines{w: w, now: time.Now} }

// On writes an event.
func (j *JSONLines) On(e Event) {
	if _, ok := e.(Span); ok || j.err != nil {
		return
	}
	v := reflect.ValueOf(e)
	line := map[string]any{"event": strings.ToLower(v.Type().Name()), "time": j.now().UTC().Format(time.RFC3339Nano)}
	for i := range v.NumField() {
		line[snake(v.Type().Field(i).Name)] = finite(v.Field(i).Interface())
	}
	b, err := json.Marshal(line)
	if err == nil {
		_, err = j.w.Write(append(b, '\n'))
	}
	j.err = err
}

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
