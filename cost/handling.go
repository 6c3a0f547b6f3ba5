package cost

// Handling is what processors of each end take for a byte and a message over a link, as predictions have it: what
// simulations are given, to be compared with them.
func (k *Known) Handling() Sending {
	return Sending{Byte: packets * k.HostByte / 2, Message: k.HostMessage / 2}
}
