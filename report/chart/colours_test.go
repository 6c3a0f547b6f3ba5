package chart

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// colour is linear RGB.
type colour [3]float64

// matrix is a linear map of colours.
type matrix [3]colour

func (m matrix) of(c colour) (out colour) {
	for i := range out {
		for j := range c {
			out[i] += m[i][j] * c[j]
		}
	}
	return out
}

// eyes are what people see with all cones, and without one kind of them, by the matrices of Machado, Oliveira and
// Fernandes (2009) for a severity of 1.
var eyes = map[string]matrix{
	"normal":       {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// toXYZ is of sRGB, with the white point D65.
var toXYZ = matrix{{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750},
	{0.0193339, 0.1191920, 0.9503041}}

// parseColour reads #rrggbb.
func parseColour(t *testing.T, text string) (c colour) {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "#"), 16, 32)
	if err != nil || len(text) != 7 {
		t.Fatalf("found %q, want #rrggbb", text)
	}
	for i := range c {
		x := float64(n>>(16-8*i)&0xff) / 255
		if c[i] = x / 12.92; x > 0.04045 {
			c[i] = math.Pow((x+0.055)/1.055, 2.4)
		}
	}
	return c
}

// lab is a colour in CIELAB.
func (c colour) lab() (out [3]float64) {
	for i := range c {
		c[i] = min(max(c[i], 0), 1)
	}
	xyz, white := toXYZ.of(c), toXYZ.of(colour{1, 1, 1})
	var f [3]float64
	for i := range f {
		if x := xyz[i] / white[i]; x > 216.0/24389 {
			f[i] = math.Cbrt(x)
		} else {
			f[i] = (24389.0/27*x + 16) / 116
		}
	}
	return [3]float64{116*f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])}
}

// apart is the difference of two colours in CIELAB by CIEDE2000: 1 is just visible side by side.
func apart(x, y [3]float64) float64 {
	square := func(x float64) float64 { return x * x }
	seventh := func(c float64) float64 { return math.Sqrt(math.Pow(c, 7) / (math.Pow(c, 7) + math.Pow(25, 7))) }
	inDegrees := func(x float64) float64 { return x * math.Pi / 180 }
	g := 1.5 - 0.5*seventh((math.Hypot(x[1], x[2])+math.Hypot(y[1], y[2]))/2)
	polar := func(c [3]float64) (chroma, hue float64) {
		return math.Hypot(g*c[1], c[2]), math.Mod(math.Atan2(c[2], g*c[1])*180/math.Pi+360, 360)
	}
	c1, h1 := polar(x)
	c2, h2 := polar(y)
	turn := math.Mod(h2-h1+540, 360) - 180
	l, c, h := (x[0]+y[0])/2, (c1+c2)/2, h1+turn/2
	if c1*c2 == 0 {
		turn, h = 0, h1+h2
	}
	t := 1 - 0.17*math.Cos(inDegrees(h-30)) + 0.24*math.Cos(inDegrees(2*h)) + 0.32*math.Cos(inDegrees(3*h+6)) -
		0.20*math.Cos(inDegrees(4*h-63))
	dl := (y[0] - x[0]) / (1 + 0.015*square(l-50)/math.Sqrt(20+square(l-50)))
	dc := (c2 - c1) / (1 + 0.045*c)
	dh := 2 * math.Sqrt(c1*c2) * math.Sin(inDegrees(turn/2)) / (1 + 0.015*c*t)
	h = math.Mod(h+360, 360)
	rotated := -2 * seventh(c) * math.Sin(inDegrees(60*math.Exp(-square((h-275)/25))))
	return math.Sqrt(dl*dl + dc*dc + dh*dh + rotated*dc*dh)
}

// TestDifferenceOfColours: pairs of Sharma, Wu and Dalal (2005), table 1.
func TestDifferenceOfColours(t *testing.T) {
	for _, c := range []struct {
		x, y [3]float64
		want float64
	}{
		{[3]float64{50, 2.6772, -79.7751}, [3]float64{50, 0, -82.7485}, 2.0425},
		{[3]float64{50, -1, 2}, [3]float64{50, 0, 0}, 2.3669},
		{[3]float64{50, 2.5, 0}, [3]float64{73, 25, -18}, 27.1492},
		{[3]float64{50, 2.5, 0}, [3]float64{56, -27, -3}, 31.9030},
		{[3]float64{60.2574, -34.0099, 36.2677}, [3]float64{60.4626, -34.1751, 39.4387}, 1.2644},
		{[3]float64{22.7233, 20.0904, -46.6940}, [3]float64{23.0331, 14.9730, -42.5619}, 2.0373},
		{[3]float64{2.0776, 0.0795, -1.1350}, [3]float64{0.9033, -0.0636, -0.5514}, 0.9082},
	} {
		if got := apart(c.x, c.y); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("%v %v: %.4f, want %.4f", c.x, c.y, got, c.want)
		}
	}
}

// variables are the colours of the style sheet, light and dark.
func variables(t *testing.T) (modes map[string]map[string]colour) {
	t.Helper()
	modes = map[string]map[string]colour{}
	roots := regexp.MustCompile(`(?s)(dark\) \{ )?:root \{(.*?)\}`).FindAllStringSubmatch(styleSheet, -1)
	for _, root := range roots {
		mode := map[bool]string{true: "dark", false: "light"}[root[1] != ""]
		modes[mode] = map[string]colour{}
		for _, v := range regexp.MustCompile(`--(\w+): (#\w+);`).FindAllStringSubmatch(root[2], -1) {
			modes[mode][v[1]] = parseColour(t, v[2])
		}
	}
	if len(modes["light"]) < 14 || len(modes["light"]) != len(modes["dark"]) {
		t.Fatalf("%d colours in light, %d in dark", len(modes["light"]), len(modes["dark"]))
	}
	return modes
}

// ofKinds are the colours of the parts of strips and bars.
func ofKinds(t *testing.T) (names []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`\.k-\w+ \{ fill: var\(--(\w+)\)`).FindAllStringSubmatch(styleSheet, -1) {
		names = append(names, m[1])
	}
	if len(names) < 7 {
		t.Fatalf("parts: %v", names)
	}
	return names
}

// contrast is as WCAG defines it.
func contrast(x, y colour) float64 {
	a, b := toXYZ.of(x)[1], toXYZ.of(y)[1]
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}

// TestColoursStayApart: the colours of curves, and those of the parts of strips and bars, can be told apart side by
// side, in light and dark, with all cones and without one kind of them; and all stand out from the background.
func TestColoursStayApart(t *testing.T) {
	const least, leastContrast = 14.0, 2.95
	var curves []string
	for i := range colours {
		c, _ := look(i)
		curves = append(curves, c)
	}
	for mode, colour := range variables(t) {
		for what, names := range map[string][]string{"curves": curves, "parts": ofKinds(t)} {
			for eye, seen := range eyes {
				closest, pair := math.Inf(1), ""
				for i, a := range names {
					for _, b := range names[:i] {
						if d := apart(seen.of(colour[a]).lab(), seen.of(colour[b]).lab()); d < closest {
							closest, pair = d, fmt.Sprint(b, " and ", a)
						}
					}
				}
				if t.Logf("%s, %s, %s: %.1f (%s)", mode, what, eye, closest, pair); closest < least {
					t.Errorf("%s, %s, %s: %s differ by %.1f, want %.0f", mode, what, eye, pair, closest, least)
				}
			}
			for _, name := range names {
				if c := contrast(colour[name], colour["back"]); c < leastContrast {
					t.Errorf("%s: --%s on the background has contrast %.2f, want %.2f", mode, name, c, leastContrast)
				}
			}
		}
	}
}

// TestLooksDiffer: of 32 curves no two have colour and dash in common, and no two neighbours a dash.
func TestLooksDiffer(t *testing.T) {
	var all []string
	for i := range 32 {
		colour, dash := look(i)
		if slices.Contains(all, colour+dash) {
			t.Errorf("curve %d looks as another", i)
		}
		if _, before := look(max(i-1, 0)); i%colours > 0 && before == dash {
			t.Errorf("curve %d has the dash of its neighbour", i)
		}
		all = append(all, colour+dash)
	}
}
