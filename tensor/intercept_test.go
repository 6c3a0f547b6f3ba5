package tensor

import (
	"reflect"
	"testing"
)

// TestIntercepted: every operation is passed on as one call that has its name and its arguments in order; run on a
// device it is the same operation with the same arguments, and with others where they were replaced.
func TestIntercepted(t *testing.T) {
	var outer, inner *Call
	below := Intercept(nil, func(c *Call) { inner, c.Bytes = c, 7 })
	d := Intercept(nil, func(c *Call) {
		outer = c
		c.Replace(func(Matrix) Matrix { return Matrix{Rows: 5} })
		c.Run(below)
	})
	ops := reflect.TypeFor[Operations]()
	for i := range ops.NumMethod() {
		name := ops.Method(i).Name
		method := reflect.ValueOf(d).MethodByName(name)
		args := filled(method.Type())
		outer, inner = nil, nil
		out := method.Call(args)
		if outer == nil || inner == nil || outer.Op != name || inner.Op != name {
			t.Fatalf("%s was passed on as %+v, then as %+v", name, outer, inner)
		}
		if name == "Pack" && out[0].Int() != 7 {
			t.Errorf("Pack returns %d, want 7", out[0].Int())
		}
		if len(inner.Args) < method.Type().NumIn() {
			t.Fatalf("%s has %d arguments, want %d", name, len(inner.Args), method.Type().NumIn())
		}
		for k, a := range inner.Args {
			got, want := reflect.ValueOf(a).Elem(), reflect.ValueOf(outer.Args[k]).Elem()
			if in := method.Type().In(k); got.Type() != in || !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Errorf("%s: argument %d is %v, want %v of %v", name, k, got, want, in)
			}
			holdsOnly(t, name, got)
		}
	}
}

// filled are arguments of a method, with numbers that differ from each other and matrices of three rows.
func filled(method reflect.Type) (args []reflect.Value) {
	for k := range method.NumIn() {
		in := method.In(k)
		if method.IsVariadic() && k == method.NumIn()-1 {
			in = in.Elem()
		}
		v := reflect.New(in).Elem()
		switch in.Kind() {
		case reflect.Int64:
			v.SetInt(int64(k))
		case reflect.Float64:
			v.SetFloat(float64(k))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Pointer:
			v.Set(reflect.ValueOf(&Sparse{Rows: k}))
		case reflect.Struct:
			if in == reflect.TypeFor[Matrix]() {
				v.Set(reflect.ValueOf(Matrix{Rows: 3}))
			}
		}
		args = append(args, v)
	}
	return args
}

// holdsOnly wants all matrices of an argument, in whatever struct, to be replaced.
func holdsOnly(t *testing.T, op string, v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[Matrix]():
		if v.FieldByName("Rows").Int() != 5 {
			t.Errorf("%s: a matrix was not replaced", op)
		}
	case v.Kind() == reflect.Pointer:
		holdsOnly(t, op, v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			holdsOnly(t, op, v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			holdsOnly(t, op, v.Field(i))
		}
	}
}
