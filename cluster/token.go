package cluster

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
)

// NewSecret is a random string that cannot be guessed: a job's id, or its token.
func NewSecret() string { return rand.Text() }

// proof shows that one side knows the token. It covers both sides' random
// numbers, so that it cannot be replayed.
func proof(token []byte, side string, hello []byte, challenge string) string {
	mac := hmac.New(sha256.New, token)
	mac.Write([]byte(side + "\n"))
	mac.Write(hello)
	mac.Write([]byte("\n" + challenge))
	return hex.EncodeToString(mac.Sum(nil))
}

// cookie is a cheap first sign that a worker or watcher knows the token: the listener can tell
// it from a flood of connections before it keeps anything. A recorded one can be sent again, so the
// proof follows.
func cookie(token []byte, role, random string) string {
	return proof(token, "cookie of a "+role, nil, random)[:32]
}

func proves(given, want string) bool { return hmac.Equal([]byte(given), []byte(want)) }

// Exposed reports whether other hosts can reach an address that is listened on.
func Exposed(addr string) bool {
	_, _, err := net.SplitHostPort(addr)
	return err == nil && !Loopback(addr)
}

// Loopback reports whether an address, host:port, is reachable from this host only.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
