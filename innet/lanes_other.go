//go:build !amd64

package innet

const canAddUnits = false

func addUnits(a, b *int32, n int) (over bool) { panic("not reached") }

func prefetchUnits(a *int32, n int) { panic("not reached") }

func quantiseFours(lanes *int32, x *float64, scale float64, n int) { panic("not reached") }

func numberFours(x *float64, lanes *int32, scale float64, n int) { panic("not reached") }
