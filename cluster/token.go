package cluster

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
)

// NewSecret is a random string that nobody can guess: a job's id, or its token.
func NewSecret() string { return rand.Text() }

// proof shows that one side knows the token. It covers both sides' random
// numbers, so that an old one is of no use.
func proof(token []byte, side string, hello []byte, challenge string) string {
	mac := hmac.New(sha256.New, token)
	mac.Write([]byte(side + "\n"))
	mac.Write(hello)
	mac.Write([]byte("\n" + challenge))
	return hex.EncodeToString(mac.Sum(nil))
}

func proves(given, want string) bool { return hmac.Equal([]byte(given), []byte(want)) }

// Loopback tells whether an address, host:port, is reachable from this host only.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
