package udp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"starling/innet"
	"starling/wire"
	"starling/wire/tcp"
)

// ServerOptions bound what a switch takes.
type ServerOptions struct {
	Listen string
	Token  []byte
	// Insecure lets a switch without a token listen beyond loopback.
	Insecure bool
	Memory   int64 // bytes of registers, of all jobs together
	Table    int64 // bytes of tables, of all jobs together
	Hosts    int   // that are connected, at most
	Buffer   int   // bytes of the socket's receive buffer
	Timeout  time.Duration
	Clock    wire.Clock // nil: the host's
	// Fault, if set, says of each packet that arrives or leaves how often it does: once,
	// unless a test injects faults.
	Fault func() int
	// Plane, if set, makes one for the port that was chosen. Tags are checked by the process
	// alone: with a token there is none.
	Plane func(port uint16, send Send) (Plane, error)
	// Log, if set, receives why the process switches a job that a plane was there for.
	Log func(line string)
}

// Plane takes packets before the socket does: programs in the kernel. It may pass any packet
// to the socket; of a job that it has, the process sends those for all hosts on, and takes
// the job over when another comes.
type Plane interface {
	// Install takes a job, with empty registers, whose hosts have a window of this number of packets.
	Install(t *innet.Table, window int) error
	// Join lets packets from an address be a host's, Leave ends that.
	Join(job uint64, rank int, addr netip.AddrPort) error
	Leave(addr netip.AddrPort)
	// Remove ends a job, and is how many packets of each host have come.
	Remove(job uint64) (received []uint32)
	Stats() Stats
	Close() error
}

// Send takes a packet that a plane has made for a port of a job, and has the socket send it; it
// may wait for others as long as more come.
type Send func(job uint64, port int, packet []byte, more bool)

// ErrPlane: there is no plane.
var ErrPlane = errors.New("packets cannot be switched below the socket")

// DefaultServer has as much memory as the switches of the paper's simulations.
var DefaultServer = ServerOptions{Listen: "127.0.0.1:0", Memory: 100 << 20, Table: 1 << 30, Hosts: 1024,
	Buffer: 8 << 20, Timeout: 10 * time.Second}

// Server is a switch for several jobs at a time.
type Server struct {
	opt    ServerOptions
	conn   *net.UDPConn
	ln     net.Listener
	window int
	plane  Plane // nil: none
	// preAuth has the connections of hosts that have not authenticated.
	preAuth *tcp.PreAuthPool
	wg      sync.WaitGroup

	mu struct {
		sync.Mutex
		jobs    map[uint64]*job
		members map[netip.AddrPort]*member
		conns   map[net.Conn]bool
		memory  int64
		table   int64
		stats   Stats
		closed  bool
	}
}

// Stats is what a switch has done.
type Stats struct {
	Packets, Bytes int64 // received
	Sent           int64
	Dropped        int64 // duplicates, late or unexpected ones
	Impossible     int64 // of those dropped: of a round that no host can be in
	Recirculated   int64 // passes that hardware would need beyond one per packet
	Jobs, Hosts    int
	Below, Passed  int64 // of those received: handled by a Plane, passed on by it
	Registers      int64 // bytes in use
}

// job is the hosts that share a table.
type job struct {
	id      uint64
	units   int
	hosts   []*member
	there   int
	table   *innet.Table
	bytes   int64         // of the table
	sw      *innet.Switch // nil: before the table comes, and below
	rounds  *rounds       // of sw
	below   bool          // the plane has it
	waiting []*member     // to be notified when all have joined
}

// member is a connected host.
type member struct {
	job      *job
	rank     int
	addr     netip.AddrPort
	conn     net.Conn
	tags     *tagger
	received uint32
	credited uint32 // of received, acknowledged
	below    time.Time
}

// Listen starts a switch; Close ends it.
func Listen(opt ServerOptions) (*Server, error) {
	ln, err := net.Listen("tcp", opt.Listen)
	if err != nil {
		return nil, err
	}
	addr := ln.Addr().(*net.TCPAddr)
	if !addr.IP.IsLoopback() && len(opt.Token) == 0 && !opt.Insecure {
		ln.Close()
		return nil, fmt.Errorf("%v can be reached by others and there is no token", addr)
	}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: addr.IP, Port: addr.Port, Zone: addr.Zone})
	if err != nil {
		ln.Close()
		return nil, err
	}
	opt.Clock = wire.OrReal(opt.Clock)
	s := &Server{opt: opt, conn: conn, ln: ln, preAuth: tcp.NewPreAuthPool(tcp.PreAuthPlaces)}
	// The kernel charges a packet of 1 KiB about 2.3 KB.
	s.window = bufferBytes(conn, opt.Buffer) / 2304 / 2
	if opt.Plane != nil && len(opt.Token) == 0 {
		if s.plane, err = s.newPlane(uint16(addr.Port)); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", ErrPlane, err), ln.Close(), conn.Close())
		}
		s.window = min(s.window, planeWindow)
	}
	s.mu.jobs, s.mu.members, s.mu.conns = map[uint64]*job{}, map[netip.AddrPort]*member{}, map[net.Conn]bool{}
	s.wg.Go(s.accept)
	s.wg.Go(s.switchPackets)
	return s, nil
}

// newPlane makes the plane, which has a batch of its own to send with.
func (s *Server) newPlane(port uint16) (Plane, error) {
	out, err := newBatch(s.conn)
	if err != nil {
		return nil, err
	}
	return s.opt.Plane(port, func(job uint64, port int, packet []byte, more bool) {
		if addr, ok := s.addressOf(job, port); ok {
			b := append(out.to(addr), packet...)
			out.sizes[out.n] = len(b)
			out.n++
		}
		if !more || out.n == batchSize {
			out.write()
		}
	})
}

// addressOf returns the address of a host, if it has joined; what is sent to it is counted.
func (s *Server) addressOf(id uint64, port int) (netip.AddrPort, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.mu.jobs[id]
	if j == nil || port >= len(j.hosts) || j.hosts[port] == nil {
		return netip.AddrPort{}, false
	}
	s.mu.stats.Sent++
	return j.hosts[port].addr, true
}

// planeWindow is how many packets of all hosts may be on their way to a plane: a veth keeps at
// most 256, and nothing holds back what would be more.
const planeWindow = 192

// Addr is where hosts connect to.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Stats is what it has done so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.mu.stats
	if s.plane != nil {
		out.add(s.plane.Stats())
	}
	out.Jobs, out.Hosts, out.Registers = len(s.mu.jobs), len(s.mu.members), s.mu.memory
	return out
}

// add adds what a plane has done. Packets that it passed on are counted there and here.
func (s *Stats) add(p Stats) {
	s.Packets += p.Packets - p.Passed
	s.Bytes += p.Bytes
	s.Sent += p.Sent
	s.Dropped += p.Dropped
	s.Impossible += p.Impossible
	s.Recirculated += p.Recirculated
	s.Below = p.Packets - p.Passed
}

// Close ends all connections and waits for the server's goroutines.
func (s *Server) Close() error {
	s.mu.Lock()
	s.mu.closed = true
	for c := range s.mu.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.preAuth.Close()
	err := errors.Join(s.ln.Close(), s.conn.Close())
	s.wg.Wait()
	if s.plane != nil {
		err = errors.Join(err, s.plane.Close())
		s.plane = nil
	}
	return err
}

func (s *Server) accept() {
	for {
		c, err := wire.Accept(s.ln, nil)
		if err != nil {
			return
		}
		v := s.preAuth.Add(c)
		if v == nil {
			c.Close()
			return
		}
		s.wg.Go(func() { s.serve(v) })
	}
}

// keep takes the connection of a host that has authenticated.
func (s *Server) keep(c net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed || len(s.mu.conns) >= s.opt.Hosts {
		return fmt.Errorf("the switch has %d hosts, and takes no more", len(s.mu.conns))
	}
	s.mu.conns[c] = true
	return nil
}

// serve is one host's connection.
func (s *Server) serve(v *tcp.PreAuthConn) {
	c := v.Conn
	defer s.leave(c)
	m, h, err := s.greet(c)
	err = v.Authenticated(err)
	v.Remove()
	if err != nil {
		return
	}
	if err = s.keep(c); err == nil {
		err = s.join(m, h)
	}
	if err != nil {
		refuse(c, err)
		return
	}
	for { // until the host has gone; tables come at any time
		var length uint64
		if binary.Read(c, binary.LittleEndian, &length) != nil {
			return
		}
		if err := s.install(m, c, length); err != nil {
			refuse(c, err)
			return
		}
	}
}

// greet authenticates a host by the token.
func (s *Server) greet(c net.Conn) (*member, *hello, error) {
	c.SetDeadline(wire.SocketTime(s.opt.Timeout))
	var challenge [nonceBytes]byte
	rand.Read(challenge[:])
	head := append(binary.LittleEndian.AppendUint32([]byte(magic), version), challenge[:]...)
	if _, err := c.Write(head); err != nil {
		return nil, nil, err
	}
	h := new(hello)
	if err := binary.Read(c, binary.LittleEndian, h); err != nil {
		return nil, nil, err
	}
	if want := proof(s.opt.Token, "host", challenge, h.Challenge); !hmac.Equal(h.Proof[:], want[:]) {
		return nil, nil, ErrToken
	}
	answer := welcome{Proof: proof(s.opt.Token, "switch", challenge, h.Challenge), Registers: uint64(s.opt.Memory),
		Window: uint32(max(s.window/max(int(h.Hosts), 1), 4))}
	if err := binary.Write(c, binary.LittleEndian, &answer); err != nil {
		return nil, nil, err
	}
	c.SetDeadline(time.Time{})
	from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	return &member{rank: int(h.Host), conn: c, addr: netip.AddrPortFrom(from, h.Port),
		tags: newTagger(s.opt.Token, challenge, h.Challenge)}, h, nil
}

// refuse sends the reason of a refusal.
func refuse(c net.Conn, err error) {
	text := err.Error()
	c.SetWriteDeadline(wire.SocketTime(time.Second))
	c.Write(append(binary.LittleEndian.AppendUint16([]byte{0}, uint16(len(text))), text...))
}

// join makes a host one of its job's.
func (s *Server) join(m *member, h *hello) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.mu.jobs[h.Job]
	switch {
	case h.Hosts == 0 || h.Host >= h.Hosts || int(h.Hosts) > s.opt.Hosts || h.Units == 0 || h.Units > innet.MaxUnits:
		return fmt.Errorf("host %d of %d with packets of %d units", h.Host, h.Hosts, h.Units)
	case j == nil:
		j = &job{id: h.Job, units: int(h.Units), hosts: make([]*member, h.Hosts)}
		s.mu.jobs[h.Job] = j
	case len(j.hosts) != int(h.Hosts) || j.units != int(h.Units):
		return fmt.Errorf("job %x has %d hosts and packets of %d units, not %d and %d", h.Job, len(j.hosts), j.units,
			h.Hosts, h.Units)
	}
	old := j.hosts[m.rank]
	if other := s.mu.members[m.addr]; other != nil && other != old {
		return fmt.Errorf("%v is the address of another host", m.addr)
	}
	if old != nil { // it has connected again
		delete(s.mu.members, old.addr)
		old.conn.Close()
	} else {
		j.there++
	}
	m.job, j.hosts[m.rank] = j, m
	if old != nil && j.below {
		s.plane.Leave(old.addr)
	}
	s.joinBelow(m)
	s.mu.members[m.addr] = m
	j.waiting = append(j.waiting, m)
	s.notifyReady(j)
	return nil
}

// notifyReady notifies hosts that all have joined, if they have.
// REQUIRES: mu held.
func (s *Server) notifyReady(j *job) {
	if j.there < len(j.hosts) || j.table == nil {
		return
	}
	for _, m := range j.waiting {
		m.conn.SetWriteDeadline(wire.SocketTime(time.Second))
		m.conn.Write([]byte{1})
	}
	j.waiting = nil
}

// install reads a table and makes the job's switch.
func (s *Server) install(m *member, c net.Conn, length uint64) error {
	if length > uint64(s.opt.Table) {
		return fmt.Errorf("a table of %d bytes, the switch has %d", length, s.opt.Table)
	}
	b, err := io.ReadAll(io.LimitReader(c, int64(length))) // grows as bytes come
	if err != nil || uint64(len(b)) != length {
		return io.ErrUnexpectedEOF
	}
	t, err := decodeTable(b, m.job.id, m.job.units, len(m.job.hosts))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := m.job
	if j.table != nil {
		return nil // the same, from a host that has connected again
	}
	if err := t.Check(s.opt.Memory - s.mu.memory); err != nil {
		return err
	}
	if t.Bytes() > s.opt.Table-s.mu.table {
		return fmt.Errorf("a table of %d bytes, the switch has %d left", t.Bytes(), s.opt.Table-s.mu.table)
	}
	j.table, j.bytes = t, t.Bytes()
	s.mu.memory += t.Registers()
	s.mu.table += j.bytes
	s.begin(j)
	s.notifyReady(j)
	return nil
}

// begin gives a job to the plane, or makes its switch.
// REQUIRES: mu held.
func (s *Server) begin(j *job) {
	if s.plane == nil {
		j.newSwitch()
		return
	}
	j.below = true
	if err := s.plane.Install(j.table, max(s.window/len(j.hosts), 4)); err != nil {
		s.takeOver(j, err.Error())
		return
	}
	for _, m := range j.hosts {
		if m != nil {
			s.joinBelow(m)
		}
	}
}

// newSwitch makes the process's switch of a job, with empty registers.
func (j *job) newSwitch() {
	j.sw = innet.NewSwitch(j.table)
	j.rounds = newRounds(j.sw)
}

// joinBelow makes a host known to the plane, where that has its job.
// REQUIRES: mu held.
func (s *Server) joinBelow(m *member) {
	if !m.job.below {
		return
	}
	m.below = s.opt.Clock.Now()
	if err := s.plane.Join(m.job.id, m.rank, m.addr); err != nil {
		s.takeOver(m.job, err.Error())
	}
}

// takeOver makes a job of the plane one of the process. For its hosts the switch has lost its
// registers.
// REQUIRES: mu held.
func (s *Server) takeOver(j *job, why string) {
	s.removeBelow(j)
	j.newSwitch()
	if s.opt.Log != nil {
		s.opt.Log(fmt.Sprintf("job %x is switched by the process: %s", j.id, why))
	}
}

// removeBelow ends what the plane has of a job.
// REQUIRES: mu held.
func (s *Server) removeBelow(j *job) {
	if !j.below {
		return
	}
	j.below = false
	for _, m := range j.hosts {
		if m != nil {
			s.plane.Leave(m.addr)
		}
	}
	for rank, n := range s.plane.Remove(j.id) {
		if m := j.hosts[rank]; m != nil {
			m.received, m.credited = n, n
		}
	}
}

// leave ends a connection, and a job with its last.
func (s *Server) leave(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.conns, c)
	for addr, m := range s.mu.members {
		if m.conn != c {
			continue
		}
		delete(s.mu.members, addr)
		j := m.job
		if j.below {
			s.plane.Leave(addr)
		}
		j.hosts[m.rank] = nil
		if j.there--; j.there == 0 {
			delete(s.mu.jobs, j.id)
			s.removeBelow(j)
			if j.table != nil {
				s.mu.memory -= j.table.Registers()
				s.mu.table -= j.bytes
			}
		}
		return
	}
}

// congestedShare is how full the socket's buffer is when packets are marked: fuller than the
// windows of all hosts can make it.
const congestedShare = 0.6

// switchPackets is the data plane.
func (s *Server) switchPackets() {
	in, err := newArrivals(s.conn)
	if err != nil {
		return
	}
	out, err := newBatch(s.conn)
	if err != nil {
		return
	}
	for {
		if in.read() != nil {
			return
		}
		mark := uint8(0)
		if in.full && queued(in.raw) > congestedShare {
			mark = innet.ECN
		}
		s.mu.Lock()
		for _, p := range in.packets {
			for range s.times() {
				s.packet(p.bytes, p.from, mark, out)
			}
		}
		s.credit(in, mark, out)
		s.mu.Unlock()
		if out.write() != nil {
			return
		}
	}
}

// packet handles a packet.
// REQUIRES: mu held.
func (s *Server) packet(b []byte, from netip.AddrPort, mark uint8, out *batch) {
	s.mu.stats.Packets++
	s.mu.stats.Bytes += int64(len(b))
	m := s.mu.members[from]
	if m == nil || m.job.table == nil {
		s.mu.stats.Dropped++
		return
	}
	b, ok := m.tags.open(b)
	var p innet.Packet
	if !ok || p.Parse(b) != nil {
		s.mu.stats.Dropped++
		return
	}
	if m.job.below {
		if s.fromBelow(m, &p, out) {
			return
		}
		if wire.Since(s.opt.Clock, m.below) < strayTime {
			s.mu.stats.Dropped++
			return
		}
		s.takeOver(m.job, fmt.Sprintf("host %d is not on a device with the program, not reached through it, "+
			"or a forged packet of its first round came before", m.rank))
	}
	if !m.job.rounds.possible(m.rank, p.Round) {
		s.mu.stats.Dropped++
		s.mu.stats.Impossible++
		return
	}
	m.received++
	before := m.job.sw.Round()
	took := m.job.sw.Handle(m.rank, &p, func(port int, p *innet.Packet) { s.emit(m.job, port, p, mark, out) })
	m.job.rounds.handled(&p, before)
	s.mu.stats.Recirculated += int64(took.Recirculated)
	if took.Dropped {
		s.mu.stats.Dropped++
	}
}

// strayTime is how long packets may be in the socket from before the plane had their job.
const strayTime = time.Second

// fromBelow sends on what the plane has passed for all hosts but its own. False: it has
// passed something else.
// REQUIRES: mu held.
func (s *Server) fromBelow(m *member, p *innet.Packet, out *batch) bool {
	if what := p.Flags &^ innet.ECN; what != innet.Done|innet.Fetch && what != innet.ACK {
		return false
	}
	for port := range m.job.hosts {
		if port != m.rank {
			s.emit(m.job, port, p, 0, out)
		}
	}
	return true
}

// emit writes a packet for a port of a job.
func (s *Server) emit(j *job, port int, p *innet.Packet, mark uint8, out *batch) {
	if port >= len(j.hosts) || j.hosts[port] == nil {
		return
	}
	m, flags := j.hosts[port], p.Flags
	p.Flags |= mark
	for range s.times() {
		if out.n == batchSize {
			out.write()
		}
		b := m.tags.close(p.Append(out.to(m.addr)))
		out.sizes[out.n] = len(b)
		out.n++
		s.mu.stats.Sent++
	}
	p.Flags = flags
}

// times is how often a packet arrives or leaves.
func (s *Server) times() int {
	if s.opt.Fault == nil {
		return 1
	}
	return s.opt.Fault()
}

// credit sends the hosts of a batch how many of their packets have come: when the socket is
// empty, or a quarter of their window has come since.
// REQUIRES: mu held.
func (s *Server) credit(in *arrivals, mark uint8, out *batch) {
	for _, p := range in.packets {
		m := s.mu.members[p.from]
		if m == nil || m.job.below || m.received == m.credited {
			continue
		}
		if in.full && int(m.received-m.credited) < s.window/len(m.job.hosts)/4 && mark == 0 {
			continue
		}
		m.credited = m.received
		head := innet.Header{Flags: creditFlag, Sequence: m.received, Job: m.job.id}
		s.emit(m.job, m.rank, &innet.Packet{Header: head}, mark, out)
	}
}

// closedSocket reports whether an error is of a socket that was closed.
func closedSocket(err error) bool { return errors.Is(err, net.ErrClosed) }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	<-ctx.Done()
	return s.Close()
}
