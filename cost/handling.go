package cost

// Handling is what processors of each end take for a byte and a message over a link, as predictions have it: what
// simulations are given, to be compared with them.
func (k *Known) Handling() Sending {
	return Sending{Byte: packets * k.HostByte / 2, Message: k.HostMessage / 2}
}

// BusiestLink is how long what servers send each takes on the busiest of their links, where it arrives evenly.
func (k *Known) BusiestLink(sent []float64) float64 { return per(busiest(sent)*frame, k.Between.Rate) }
