package event

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// schemas are the fields that each version of the events has, with their types. A version is not edited but by adding
// to it: where a field goes away, or is of another type, Schema grows and a new list stands here.
var schemas = map[int]string{1: `
opened schema:number program:string command:string settings:string virtual:bool
planned memory:number workers:[]number parts:string epoch_seconds:number why:string epoch_bytes:number at_most:bool
started dataset:string model:string strategy:string vertices:number edges:number parameters:number learnt:number
	workers:number first_epoch:number epochs:number metric:string
epoch epoch:number loss:number lr:number seconds:number measured:bool train:number val:number test:number eval:number
	best:bool
worker worker:number host:string pid:number epoch:number memory:number device:string device_used:number
	device_size:number traffic:[]{kind:string,layer:number,link:string,planned:number,counted:number} to:[]number
	waited_for:[]number
	slices:[]{ago:number,seconds:number,wait:number,for:number,draw:number,evaluate:number,save:number,transfer:number}
saved path:string epoch:number batch:number bytes:number
note text:string minor:bool mark:string settings:{}
progress task:string done:number total:number
done reason:string epochs:number best_epoch:number val:number test:number seconds:number
result report:{}
`}

// written are the events that files have, with their fields as JSON has them.
func written() map[string][]string {
	all := map[string][]string{}
	for name, t := range byName {
		if name == "span" {
			continue // of the trace file
		}
		for i := range t.NumField() {
			all[name] = append(all[name], snake(t.Field(i).Name)+":"+jsonType(t.Field(i).Type))
		}
	}
	return all
}

// jsonType is what JSON has of a type.
func jsonType(t reflect.Type) string {
	if t == reflect.TypeFor[json.RawMessage]() {
		return "{}"
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String:
		return t.Kind().String()
	case reflect.Slice:
		return "[]" + jsonType(t.Elem())
	case reflect.Map:
		return "{}"
	case reflect.Struct:
		var fields []string
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			fields = append(fields, name+":"+jsonType(t.Field(i).Type))
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	return "number"
}

// TestSchema: the events have all fields of their version, and no others than the list of the version has.
func TestSchema(t *testing.T) {
	got := written()
	for line := range strings.Lines(strings.ReplaceAll(strings.TrimSpace(schemas[Schema]), "\n\t", " ")) {
		words := strings.Fields(line)
		name, want := words[0], words[1:]
		for _, field := range want {
			if !slices.Contains(got[name], field) {
				t.Errorf("%s has no %s, as schema %d has: Schema must grow", name, field, Schema)
			}
		}
		for _, field := range got[name] {
			if !slices.Contains(want, field) {
				t.Errorf("%s has %s: list it here, with schema %d, and in docs/watching.md", name, field, Schema)
			}
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is in no schema", name)
	}
}

// TestSchemaIsDocumented: docs/watching.md lists every event and field, and no others.
func TestSchemaIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/watching.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n### Events\n")
	if !strings.Contains(strings.ReplaceAll(text, "\n", " "), fmt.Sprintf("`schema` the file has, %d:", Schema)) {
		t.Errorf("docs/watching.md does not say that the schema is %d", Schema)
	}
	code := regexp.MustCompile("`([^`]+)`")
	rows := map[string][]string{}
	for line := range strings.Lines(text) {
		cells := strings.SplitN(strings.Trim(line, "| \n"), "|", 2)
		if names := code.FindStringSubmatch(cells[0]); strings.HasPrefix(line, "|") && names != nil {
			rows[names[1]] = nil
			for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
				rows[names[1]] = append(rows[names[1]], m[1])
			}
		}
	}
	for name, fields := range written() {
		for _, field := range fields {
			field, _, _ = strings.Cut(field, ":")
			if !slices.Contains(rows[name], field) {
				t.Errorf("docs/watching.md does not have %s of %s", field, name)
			}
		}
	}
	for name := range rows {
		if _, ok := byName[name]; !ok {
			t.Errorf("docs/watching.md has %s, which is no event", name)
		}
	}
	prose := strings.Join(code.FindAllString(text, -1), " ")
	for _, field := range []reflect.Type{reflect.TypeFor[Slice](), reflect.TypeFor[Traffic]()} {
		for i := range field.NumField() {
			name, _, _ := strings.Cut(field.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(prose, "`"+name+"`") && !strings.Contains(prose, "`"+name+" ") {
				t.Errorf("docs/watching.md does not have %s of %s", name, field)
			}
		}
	}
}

// TestUnknownFields: a reader of a version takes what later events of it may have.
func TestUnknownFields(t *testing.T) {
	e, at, err := DecodeAt([]byte(`{"event":"epoch","time":"2026-01-01T00:00:00Z","epoch":3,"loss":null,"later":[1]}`))
	if x, ok := e.(Epoch); err != nil || !ok || x.Epoch != 3 || !at.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v at %v: %v", e, at, err)
	}
}
