package simd

// The inner loops of operations over edges (tensor.Edgewise), each over some columns
// of one edge's rows, all of the length of the first. Vectors do whole eights of
// columns, plain loops the rest.

// LeakyDot is the sum of a · leaky(z + r).
func LeakyDot(level Level, z, r, a []float32, slope float32) (sum float32) {
	n := eights(level, len(z))
	if n > 0 {
		sum = leakyDotFast(z[:n], r[:n], a[:n], slope)
	}
	for c := n; c < len(z); c++ {
		sum += a[c] * leaky(z[c]+r[c], slope)
	}
	return sum
}

// LeakyGrad goes back through LeakyDot, whose sum has the gradient de: that of r is
// added to dr, that of a to da.
func LeakyGrad(level Level, dr, da, z, r, a []float32, de, slope float32) {
	n := eights(level, len(dr))
	if n > 0 {
		leakyGradFast(dr[:n], da[:n], z[:n], r[:n], a[:n], de, slope)
	}
	for c := n; c < len(dr); c++ {
		s, ds := z[c]+r[c], de*a[c]
		if s <= 0 {
			s, ds = slope*s, slope*ds
		}
		da[c] += de * s
		dr[c] += ds
	}
}

// LeakyBack adds to dz the gradient of z in LeakyDot, and w · g.
func LeakyBack(level Level, dz, z, r, a, g []float32, de, w, slope float32) {
	n := eights(level, len(dz))
	if n > 0 {
		leakyBackFast(dz[:n], z[:n], r[:n], a[:n], g[:n], de, w, slope)
	}
	for c := n; c < len(dz); c++ {
		ds := de * a[c]
		if z[c]+r[c] <= 0 {
			ds *= slope
		}
		dz[c] += ds + w*g[c]
	}
}

// AddScaled: acc += w · x.
func AddScaled(level Level, acc, x []float32, w float32) {
	n := eights(level, len(acc))
	if n > 0 {
		addScaledFast(acc[:n], x[:n], w)
	}
	for c := n; c < len(acc); c++ {
		acc[c] += w * x[c]
	}
}

// DotProduct is the sum of x · y.
func DotProduct(level Level, x, y []float32) (sum float32) {
	n := eights(level, len(x))
	if n > 0 {
		sum = dotProductFast(x[:n], y[:n])
	}
	for c := n; c < len(x); c++ {
		sum += x[c] * y[c]
	}
	return sum
}

// FilmAdd: acc += relu(gamma · z + beta).
func FilmAdd(level Level, acc, z, gamma, beta []float32) {
	n := eights(level, len(acc))
	if n > 0 {
		filmAddFast(acc[:n], z[:n], gamma[:n], beta[:n])
	}
	for c := n; c < len(acc); c++ {
		acc[c] += max(0, gamma[c]*z[c]+beta[c])
	}
}

// FilmGrad goes back through FilmAdd, whose sum has the gradient g: those of beta and
// gamma are added to dbeta and dgamma.
func FilmGrad(level Level, dbeta, dgamma, z, gamma, beta, g []float32) {
	n := eights(level, len(dbeta))
	if n > 0 {
		filmGradFast(dbeta[:n], dgamma[:n], z[:n], gamma[:n], beta[:n], g[:n])
	}
	for c := n; c < len(dbeta); c++ {
		if gamma[c]*z[c]+beta[c] > 0 {
			dbeta[c] += g[c]
			dgamma[c] += g[c] * z[c]
		}
	}
}

// FilmBack adds w times the gradient of z in FilmAdd to dz.
func FilmBack(level Level, dz, z, gamma, beta, g []float32, w float32) {
	n := eights(level, len(dz))
	if n > 0 {
		filmBackFast(dz[:n], z[:n], gamma[:n], beta[:n], g[:n], w)
	}
	for c := n; c < len(dz); c++ {
		if gamma[c]*z[c]+beta[c] > 0 {
			dz[c] += w * gamma[c] * g[c]
		}
	}
}
