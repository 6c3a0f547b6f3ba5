// Package udp drives a switch and its hosts with sockets.
//
// Packets travel by UDP. The control plane is TCP on the same port: a host that connects
// proves that it knows the token, says which host of which job it is and where its packets
// come from; host 0 sends the table. A connection lasts as long as its host uses the switch:
// when all connections of a job have ended, so has the job. All integers are little-endian.
//
//	switch  "SGNN" version u32 | challenge [32]
//	host    challenge [32] | proof [32] | job u64 | host u16 | hosts u16 | port u16 | units u8 | table u8
//	switch  proof [32] | registers u64 | window u32
//	host    length u64 | table                  where table was 1, and again whenever it is sent
//	switch  1 u8                                all hosts are there, and the table
//	switch  0 u8 | length u16 | text            it cannot be
//
// A proof is HMAC-SHA256, keyed by the token, of the side's name and both challenges. With a
// token every packet ends with a tag: the first 16 bytes of its HMAC-SHA256, keyed by
// another of both challenges, so that a packet of another connection is not taken.
//
// Flow control: whenever the switch has emptied its socket it tells each host how many of
// its packets have come (done and ACK flags, sequence); a host has at most a window of rows
// beyond that on their way. A long queue is marked (ECN).
package udp

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/netip"

	"starling/innet"
)

const (
	magic      = "SGNN"
	version    = 1
	nonceBytes = 32
	tagBytes   = 16
	bufferSize = innet.MaxBytes + tagBytes
	creditFlag = innet.Done | innet.ACK
)

// arrived is a packet and where it comes from; its bytes are there until the next ones are read.
type arrived struct {
	bytes []byte
	from  netip.AddrPort
}

// ErrToken: the other side does not know the token.
var ErrToken = errors.New("the switch and its hosts have different tokens")

// hello is how a host introduces itself.
type hello struct {
	Challenge [nonceBytes]byte
	Proof     [sha256.Size]byte
	Job       uint64
	Host      uint16
	Hosts     uint16
	Port      uint16
	Units     uint8
	Table     uint8
}

// welcome is the switch's answer.
type welcome struct {
	Proof     [sha256.Size]byte
	Registers uint64
	Window    uint32
}

// proof is what a side shows to know the token.
func proof(token []byte, side string, challenges ...[nonceBytes]byte) (out [sha256.Size]byte) {
	mac := hmac.New(sha256.New, token)
	io.WriteString(mac, side)
	for _, c := range challenges {
		mac.Write(c[:])
	}
	mac.Sum(out[:0])
	return out
}

// tagger makes and checks the tags of packets; nil: there are none.
type tagger struct{ mac hash.Hash }

func newTagger(token []byte, challenges ...[nonceBytes]byte) *tagger {
	if len(token) == 0 {
		return nil
	}
	key := proof(token, "packets", challenges...)
	return &tagger{hmac.New(sha256.New, key[:])}
}

// close appends the tag of a packet.
func (t *tagger) close(b []byte) []byte {
	if t == nil {
		return b
	}
	t.mac.Reset()
	t.mac.Write(b)
	var sum [sha256.Size]byte
	return append(b, t.mac.Sum(sum[:0])[:tagBytes]...)
}

// open is a packet without its tag, which must be right.
func (t *tagger) open(b []byte) ([]byte, bool) {
	if t == nil {
		return b, true
	}
	if len(b) < tagBytes {
		return nil, false
	}
	body, tag := b[:len(b)-tagBytes], b[len(b)-tagBytes:]
	t.mac.Reset()
	t.mac.Write(body)
	var sum [sha256.Size]byte
	return body, hmac.Equal(t.mac.Sum(sum[:0])[:tagBytes], tag)
}

// encodeTable writes the table of a single switch.
func encodeTable(t *innet.Table) []byte {
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			binary.Write(&b, binary.LittleEndian, v)
		}
	}
	put(uint32(len(t.Blocks)))
	for i := range t.Blocks {
		k := &t.Blocks[i]
		put(uint32(len(k.Port)), uint32(len(k.Into)), uint32(len(k.Slots)), k.Port, k.Ptr, k.Into, k.Slots)
	}
	return b.Bytes()
}

// decodeTable reads a table of a number of hosts.
func decodeTable(b []byte, job uint64, units, hosts int) (*innet.Table, error) {
	p := &innet.Plan{Hosts: hosts}
	t := p.Table(job, units)
	r := bytes.NewReader(b)
	get := func(v any) bool { return binary.Read(r, binary.LittleEndian, v) == nil }
	var blocks uint32
	if !get(&blocks) {
		return nil, io.ErrUnexpectedEOF
	}
	for range blocks {
		var n [3]uint32
		if !get(&n) || 6*int64(n[0])+4*int64(n[1])+10*int64(n[2]) > int64(r.Len()) {
			return nil, fmt.Errorf("a table that ends early: %w", io.ErrUnexpectedEOF)
		}
		k := innet.TableBlock{Port: make([]uint16, n[0]), Ptr: make([]uint32, n[0]+1), Into: make([]uint32, n[1]),
			Slots: make([]innet.TableSlot, n[2])}
		if !get(k.Port) || !get(k.Ptr) || !get(k.Into) || !get(k.Slots) {
			return nil, fmt.Errorf("a table that ends early: %w", io.ErrUnexpectedEOF)
		}
		for _, s := range k.Slots {
			if int(s.Port) >= hosts {
				return nil, fmt.Errorf("a sum for host %d of %d", s.Port, hosts)
			}
		}
		t.Blocks = append(t.Blocks, k)
	}
	return t, nil
}
