package cpu

// squaredError is the loss of regression. There are a few targets per vertex at most, so
// plain loops do.
func (c *Device) squaredError(dlogits, logits, targets Matrix, rows Index, scale float64) float64 {
	return c.rowLoss("SquaredError", dlogits, logits, targets, rows, func(mine []uint32) float64 {
		return squaredRows(dlogits, logits, targets, mine, scale)
	}) * scale
}

func squaredRows(dlogits, logits, targets Matrix, list []uint32, scale float64) (loss float64) {
	twice := float32(2 * scale)
	x, t, g := blockOf(logits, 0), blockOf(targets, 0), blockOf(dlogits, 0)
	for _, r := range list {
		for j := range logits.Cols {
			d := x.At(int(r), j) - t.At(int(r), j)
			loss += float64(d) * float64(d)
			if g.Data != nil {
				g.Set(int(r), j, twice*d)
			}
		}
	}
	return loss
}
