// Command edgewise generates the inner loops of operations over edges, for AVX2: each
// goes over the columns of one edge's rows, of which there is a multiple of eight.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	one = ConstData("oneEdgewise", F32(1))
	leakyDot()
	leakyGrad()
	leakyBack()
	addScaled()
	dotProduct()
	filmAdd()
	filmGrad()
	filmBack()
	Generate()
}

// columns is a function's loop over columns, eight at a time.
type columns struct {
	base map[string]reg.Register
	at   reg.GPVirtual
}

// begin loads the slices' addresses; the first one's length is that of all.
func begin(name, signature string, slices ...string) *columns {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	c := &columns{base: map[string]reg.Register{}, at: GP64()}
	for _, s := range slices {
		c.base[s] = Load(Param(s).Base(), GP64())
	}
	return c
}

func (c *columns) loop(first string, body func()) {
	n := Load(Param(first).Len(), GP64())
	XORQ(c.at, c.at)
	Label("columns")
	body()
	ADDQ(Imm(8), c.at)
	CMPQ(c.at, n)
	JLT(LabelRef("columns"))
}

// of are the columns at hand of a slice.
func (c *columns) of(s string) Mem { return Mem{Base: c.base[s], Index: c.at, Scale: 4} }

func (c *columns) load(s string) reg.VecVirtual {
	v := YMM()
	VMOVUPS(c.of(s), v)
	return v
}

// every is a parameter in all lanes. It is read by an AVX instruction: an SSE one, once
// the upper halves of registers are in use, costs as much as a hundred columns.
func every(param string) reg.VecVirtual {
	at, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	v := YMM()
	VBROADCASTSS(at.Addr, v)
	return v
}

func zero() reg.VecVirtual {
	v := YMM()
	VXORPS(v, v, v)
	return v
}

// total adds up the lanes of v and returns them.
func total(v reg.VecVirtual) {
	x, y := XMM(), XMM()
	VEXTRACTF128(U8(1), v, x)
	VADDPS(v.AsX(), x, x)
	VMOVHLPS(x, x, y)
	VADDPS(x, y, x)
	VMOVSHDUP(x, y)
	VADDSS(x, y, x)
	VZEROUPPER()
	Store(x, ReturnIndex(0))
	RET()
}

func done() {
	VZEROUPPER()
	RET()
}

func leakyDot() {
	c := begin("leakyDotFast", "func(z, r, a []float32, slope float32) float32", "z", "r", "a")
	slope, sum := every("slope"), zero()
	c.loop("z", func() {
		s, t := c.load("z"), YMM()
		VADDPS(c.of("r"), s, s)
		VMULPS(slope, s, t)
		VMAXPS(t, s, s)
		VFMADD231PS(c.of("a"), s, sum)
	})
	total(sum)
}

// factor is one where s is positive, else the slope.
func factor(s, one, slope, none reg.VecVirtual) reg.VecVirtual {
	f := YMM()
	VCMPPS(U8(0x1e), none, s, f)
	VBLENDVPS(f, one, slope, f)
	return f
}

var one Mem

func ones() reg.VecVirtual {
	v := YMM()
	VBROADCASTSS(one, v)
	return v
}

func leakyGrad() {
	c := begin("leakyGradFast", "func(dr, da, z, r, a []float32, de, slope float32)", "dr", "da", "z", "r", "a")
	de, slope, one, none := every("de"), every("slope"), ones(), zero()
	c.loop("dr", func() {
		s, ds := c.load("z"), YMM()
		VADDPS(c.of("r"), s, s)
		f := factor(s, one, slope, none)
		VMULPS(c.of("a"), de, ds)
		VMULPS(f, s, s)
		VFMADD213PS(c.of("dr"), f, ds)
		VFMADD213PS(c.of("da"), de, s)
		VMOVUPS(ds, c.of("dr"))
		VMOVUPS(s, c.of("da"))
	})
	done()
}

func leakyBack() {
	c := begin("leakyBackFast", "func(dz, z, r, a, g []float32, de, w, slope float32)", "dz", "z", "r", "a", "g")
	de, w, slope, one, none := every("de"), every("w"), every("slope"), ones(), zero()
	c.loop("dz", func() {
		s, ds := c.load("z"), YMM()
		VADDPS(c.of("r"), s, s)
		f := factor(s, one, slope, none)
		VMULPS(c.of("a"), de, ds)
		VFMADD213PS(c.of("dz"), f, ds)
		VFMADD231PS(c.of("g"), w, ds)
		VMOVUPS(ds, c.of("dz"))
	})
	done()
}

func addScaled() {
	c := begin("addScaledFast", "func(acc, x []float32, w float32)", "acc", "x")
	w := every("w")
	c.loop("acc", func() {
		v := c.load("acc")
		VFMADD231PS(c.of("x"), w, v)
		VMOVUPS(v, c.of("acc"))
	})
	done()
}

func dotProduct() {
	c := begin("dotProductFast", "func(x, y []float32) float32", "x", "y")
	sum := zero()
	c.loop("x", func() {
		VFMADD231PS(c.of("y"), c.load("x"), sum)
	})
	total(sum)
}

// message is gamma·z + beta.
func (c *columns) message() (m, z reg.VecVirtual) {
	m, z = c.load("gamma"), c.load("z")
	VFMADD213PS(c.of("beta"), z, m)
	return m, z
}

func filmAdd() {
	c := begin("filmAddFast", "func(acc, z, gamma, beta []float32)", "acc", "z", "gamma", "beta")
	none := zero()
	c.loop("acc", func() {
		m, _ := c.message()
		VMAXPS(none, m, m)
		VADDPS(c.of("acc"), m, m)
		VMOVUPS(m, c.of("acc"))
	})
	done()
}

func filmGrad() {
	c := begin("filmGradFast", "func(dbeta, dgamma, z, gamma, beta, g []float32)", "dbeta", "dgamma", "z", "gamma",
		"beta", "g")
	none := zero()
	c.loop("dbeta", func() {
		m, z := c.message()
		VCMPPS(U8(0x1e), none, m, m)
		VANDPS(c.of("g"), m, m)
		VFMADD213PS(c.of("dgamma"), m, z)
		VADDPS(c.of("dbeta"), m, m)
		VMOVUPS(m, c.of("dbeta"))
		VMOVUPS(z, c.of("dgamma"))
	})
	done()
}

func filmBack() {
	c := begin("filmBackFast", "func(dz, z, gamma, beta, g []float32, w float32)", "dz", "z", "gamma", "beta", "g")
	w, none := every("w"), zero()
	c.loop("dz", func() {
		m, _ := c.message()
		VCMPPS(U8(0x1e), none, m, m)
		VANDPS(c.of("g"), m, m)
		VMULPS(c.of("gamma"), m, m)
		VFMADD213PS(c.of("dz"), w, m)
		VMOVUPS(m, c.of("dz"))
	})
	done()
}
