package spec

import (
	"fmt"
	"reflect"
	"strconv"
)

// Auto is a number that Complete chooses by the model and the graph. On the command line it
// is written auto.
const Auto = -1

func setAuto[T int | float64](x *T, value T) {
	if *x == Auto {
		*x = value
	}
}

// autoFlag is a number on the command line that may be auto.
type autoFlag struct{ value reflect.Value }

func (f autoFlag) whole() bool { return f.value.Kind() == reflect.Int }

func (f autoFlag) String() string {
	switch {
	case !f.value.IsValid(): // pflag compares with the zero flag
		return ""
	case f.whole() && f.value.Int() == Auto || !f.whole() && f.value.Float() == Auto:
		return "auto"
	}
	return fmt.Sprint(f.value)
}

func (f autoFlag) Type() string {
	if f.whole() {
		return "int"
	}
	return "float"
}

func (f autoFlag) Set(text string) error {
	switch {
	case text == "auto" && f.whole():
		f.value.SetInt(Auto)
	case text == "auto":
		f.value.SetFloat(Auto)
	case f.whole():
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		f.value.SetInt(int64(n))
	default:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		f.value.SetFloat(x)
	}
	return nil
}
