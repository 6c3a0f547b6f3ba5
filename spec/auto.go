package spec

import (
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/spf13/pflag"
)

// Auto is a number that Complete chooses by the model and the graph. Users write auto; no number that they can give
// is taken for it.
const Auto = math.MinInt

// Toggle is a yes or no that Complete chooses where it is not given.
type Toggle int8

const (
	ToggleAuto Toggle = iota
	Off
	On
)

func toggled(on bool) Toggle {
	if on {
		return On
	}
	return Off
}

func (t Toggle) String() string { return strconv.FormatBool(t == On) }

func setAuto[T int | float64](x *T, value T) {
	if *x == Auto {
		*x = value
	}
}

// autoValue is a number or Toggle that may be auto.
type autoValue struct {
	flag  string
	value reflect.Value
	auto  int    // what stands for auto: Auto, or 0 where the setting has no such value
	want  string // the values that it may have
	least int    // of numbers that Validate does not check
}

// AutoVar registers a number of a command other than a run: from least on, or auto, which the value auto stands for.
func AutoVar[T int | float64](fs *pflag.FlagSet, p *T, auto, least int, name, help string) {
	want := fmt.Sprintf("auto, or %d or more", least)
	if *p == 0 { // what is not set is auto
		*p = T(auto)
	}
	fs.Var(autoValue{"--" + name, reflect.ValueOf(p).Elem(), auto, want, least}, name, help)
}

func (v autoValue) isAuto() bool {
	if v.value.Kind() == reflect.Float64 {
		return v.value.Float() == float64(v.auto)
	}
	return v.value.Int() == int64(v.auto)
}

func (v autoValue) String() string {
	switch {
	case !v.value.IsValid(): // pflag compares with the zero flag
		return ""
	case v.isAuto():
		return "auto"
	}
	return fmt.Sprint(v.value)
}

// Type is what a command's help calls the value.
func (v autoValue) Type() string {
	switch v.value.Kind() {
	case reflect.Float64:
		return "float"
	case reflect.Int8:
		return "bool"
	}
	return "int"
}

// Set is the inverse of String.
func (v autoValue) Set(text string) error {
	x, err := v.parse(text)
	switch {
	case err == strconv.ErrRange:
		return Mistake(v.flag, text, v.want, "")
	case err != nil:
		return Mistake(v.flag, quoted(text), Takes(v.Type())+", or auto", "")
	}
	v.value.Set(x.Convert(v.value.Type()))
	return nil
}

// quoted is a text in a message; numbers are as they are.
func quoted(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return fmt.Sprintf("%q", text)
}

// parse reads a text. A number that stands for auto is out of the range of every setting.
func (v autoValue) parse(text string) (x reflect.Value, err error) {
	var number any = v.auto
	switch v.value.Kind() {
	case reflect.Float64:
		number, err = strconv.ParseFloat(text, 64)
	case reflect.Int8:
		var on bool
		on, err = strconv.ParseBool(text)
		number = toggled(on)
	default:
		number, err = strconv.Atoi(text)
	}
	if text == "auto" {
		return reflect.ValueOf(v.auto), nil
	}
	x = reflect.ValueOf(number)
	if err == nil && (!v.reached(x) || (autoValue{value: x, auto: v.auto}).isAuto()) {
		err = strconv.ErrRange
	}
	return x, err
}

// reached reports whether a number is the least or more.
func (v autoValue) reached(x reflect.Value) bool {
	if x.CanFloat() {
		return x.Float() >= float64(v.least)
	}
	return x.Int() >= int64(v.least)
}

// plain is the value in the text forms of a spec.
func (v autoValue) plain() any {
	switch {
	case v.isAuto():
		return "auto"
	case v.value.Kind() == reflect.Int8:
		return v.value.Int() == int64(On)
	}
	return v.value.Interface()
}

// read sets what a text form holds. Earlier versions wrote 0 where that was auto.
func (v autoValue) read(held any) error {
	text := fmt.Sprint(held)
	switch x, float := held.(float64); {
	case held == nil:
		text = ""
	case float:
		text = strconv.FormatFloat(x, 'f', -1, 64)
	}
	if text == "0" && v.auto == 0 && v.value.Kind() == reflect.Int {
		text = "auto"
	}
	return v.Set(text)
}
