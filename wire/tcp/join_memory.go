package tcp

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"net"

	"starling/wire"
	"starling/wire/shm"
)

// Peers of one host agree on shared memory over their first connection: the
// acceptor names a socket; the dialer connects to it, and they exchange
// memory; the dialer then sends one byte: whether that went well. If not, for
// whatever reason (containers that share a host but not this), they use TCP.
const (
	usesMemory = 'M'
	usesTCP    = 'T'
)

// openMemory opens the socket, if any peer shares this host. The result closes it.
func (m *mesh) openMemory() func() {
	shares := false
	for p := range m.cfg.Size {
		shares = shares || sharesMemory(m.cfg, p)
	}
	if !shares {
		return func() {}
	}
	hub, err := shm.NewHub(m.inbox)
	if err != nil {
		return func() {}
	}
	random := make([]byte, 16)
	rand.Read(random)
	sock := "starling-" + hex.EncodeToString(random)
	l, err := shm.Listen(sock)
	if err != nil {
		hub.Close()
		return func() {}
	}
	m.hub, m.sock = hub, sock
	listener := listenAs(m.id, l, m.admitMemory, m.cfg.Refused)
	return func() { listener.Close() }
}

// admitMemory exchanges memory with a peer of higher rank.
func (m *mesh) admitMemory(g *candidate) error {
	conn := g.Conn.(*net.UnixConn)
	if err := g.Accept(""); err != nil {
		return err
	}
	mem, err := m.hub.Swap(conn)
	if err != nil {
		return err
	}
	m.share(g.rank, mem)
	_, err = conn.Write([]byte{usesMemory}) // only now may the dialer use it
	conn.Close()
	return err
}

// share keeps the memory for the peer's carrier. It may be there already: of a process
// that died before it was connected, and was started again.
func (m *mesh) share(p int, mem *shm.Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.over || m.mu.peers[p][0].conn != nil {
		mem.Close()
		return
	}
	if old := m.mu.memory[p]; old != nil {
		old.Close()
	}
	m.mu.memory[p] = mem
}

// unshare gives up memory that the peer does not use.
func (m *mesh) unshare(p int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mem := m.mu.memory[p]; mem != nil {
		mem.Close()
		m.mu.memory[p] = nil
	}
}

// offer is the dialer's side: it connects to the socket, and sends whether that worked.
func (m *mesh) offer(conn net.Conn, p int, memorySocket string) (shared bool, err error) {
	choice := byte(usesMemory)
	if mem, err := m.fetch(p, memorySocket); err == nil {
		m.share(p, mem)
	} else {
		choice = usesTCP
	}
	conn.SetDeadline(wire.SocketTime(handshakeTime))
	_, err = conn.Write([]byte{choice})
	return choice == usesMemory, err
}

func (m *mesh) fetch(p int, memorySocket string) (*shm.Memory, error) {
	conn, err := shm.Dial(memorySocket, handshakeTime)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := m.id.authenticate(conn, p, 0, true); err != nil {
		return nil, err
	}
	mem, err := m.hub.Swap(conn)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		mem.Close()
		return nil, err
	}
	return mem, nil
}

// welcome is the acceptor's side: it accepts the candidate, and reads whether memory
// is shared.
func (m *mesh) welcome(g *candidate) (shared bool, err error) {
	share := g.wantsMemory && g.index == 0 && m.hub != nil && sharesMemory(m.cfg, g.rank)
	if !share {
		return false, g.Accept("")
	}
	if err := g.Accept(m.sock); err != nil {
		return false, err
	}
	var choice [1]byte
	if _, err := io.ReadFull(g.Conn, choice[:]); err != nil {
		return false, err
	}
	m.mu.Lock()
	have := m.mu.memory[g.rank] != nil
	m.mu.Unlock()
	switch {
	case choice[0] == usesTCP:
		m.unshare(g.rank)
		return false, nil
	case choice[0] != usesMemory || !have:
		return false, errors.New("it did not choose how to send")
	}
	return true, nil
}
