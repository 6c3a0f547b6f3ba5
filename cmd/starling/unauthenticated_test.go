package main

import (
	"bytes"
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const rightToken, wrongToken = "a-secret-of-many-words", "another-secret-of-many-words"

// port is a port that unauthenticated peers connect to, and its handshake.
type port struct {
	name, addr string
	// hello opens a handshake. The answer to it holds a random number; proof is what a
	// peer that knows the token sends next.
	hello  []byte
	answer func(net.Conn) (random []byte, err error)
	proof  func(token string, random []byte) []byte
	// older is a hello of protocol version 1; older builds send it.
	older []byte
	// The log's reasons for bytes of another protocol, for a hello with a changed bit and
	// for one that is too long.
	foreign, changed, long string
	tooLong                []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// controlLine is a message of a control connection.
func controlLine(kind string, body any) []byte {
	b, _ := json.Marshal(map[string]any{"type": kind, "body": body})
	return fmt.Appendf(b, "\t%08x\n", crc32.Checksum(b, castagnoli))
}

// controlPort is the coordinator's port, where workers join the job.
func controlPort(addr string) *port {
	helloOf := func(protocol int) []byte {
		mac := hmac.New(sha256.New, []byte(rightToken))
		mac.Write([]byte("cookie of a worker\n\nx"))
		return controlLine("hello", map[string]any{"protocol": protocol, "version": "v", "rank": 1, "random": "x",
			"cookie": hex.EncodeToString(mac.Sum(nil))[:32]})
	}
	hello := helloOf(3)
	return &port{name: "control", addr: addr, hello: hello, older: helloOf(1),
		foreign: "does not speak Starling's protocol", changed: "checksum is wrong",
		long: "longer than allowed", tooLong: bytes.Repeat([]byte("x"), 1<<20),
		answer: func(c net.Conn) ([]byte, error) {
			var m struct{ Type, Body string }
			err := json.NewDecoder(c).Decode(&m)
			if err == nil && m.Type != "challenge" {
				err = fmt.Errorf("%s: %s", m.Type, m.Body)
			}
			return []byte(m.Body), err
		},
		proof: func(token string, random []byte) []byte {
			mac := hmac.New(sha256.New, []byte(token))
			fmt.Fprintf(mac, "worker\n%s\n%s", hello[:len(hello)-10], random)
			return controlLine("proof", hex.EncodeToString(mac.Sum(nil)))
		}}
}

// dataPort is where the other workers dial rank 0 of three.
func dataPort(addr, job string) *port {
	sum := sha256.Sum256([]byte(job))
	hello := slices.Concat([]byte("SWH\x03\x01\x00\x00\x00\x03\x00\x00\x00\x02\x00\x00\x00"), sum[:], make([]byte, 32))
	mac := hmac.New(sha256.New, []byte(rightToken))
	mac.Write(append([]byte("cookie"), hello...))
	hello = append(hello, mac.Sum(nil)[:16]...)
	older := bytes.Clone(hello)
	older[3] = 1
	frame := append([]byte("SWF\x02"), bytes.Repeat([]byte{0xff}, 1<<20)...)
	return &port{name: "data", addr: addr, hello: hello, older: older,
		foreign: "does not speak Starling's protocol", changed: "another job's worker",
		long: "does not speak Starling's protocol", tooLong: frame,
		answer: func(c net.Conn) ([]byte, error) {
			b := make([]byte, 288)
			_, err := io.ReadFull(c, b)
			if n := int(b[36]); n > 0 { // of at most 250
				err = fmt.Errorf("%s", b[38:38+n])
			}
			return b[4:36], err
		},
		proof: func(token string, random []byte) []byte {
			mac := hmac.New(sha256.New, []byte(token))
			mac.Write(slices.Concat([]byte("dialer"), hello, random))
			return mac.Sum(nil)
		}}
}

// attack is what an unauthenticated peer does with a connection, and the reason that the log must give.
type attack struct {
	name string
	do   func(t *testing.T, p *port, conn net.Conn)
	says func(p *port) string
}

func always(text string) func(*port) string { return func(*port) string { return text } }

// shake goes through a handshake and returns the proof it sent: replayed, or a fresh one
// where replayed is nil.
func (p *port) shake(t *testing.T, conn net.Conn, token string, replayed []byte) []byte {
	conn.Write(p.hello)
	random, err := p.answer(conn)
	if err != nil {
		t.Errorf("%s: no answer to hello: %v", p.name, err)
	}
	if replayed == nil {
		replayed = p.proof(token, random)
	}
	conn.Write(replayed)
	return replayed
}

// slowly sends one byte per second.
func slowly(conn net.Conn, b []byte) {
	for i := range b {
		if _, err := conn.Write(b[i : i+1]); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

var byAnybody = []attack{
	{"random bytes", func(t *testing.T, p *port, c net.Conn) {
		r := rand.NewChaCha8([32]byte{1})
		b := make([]byte, 1000)
		r.Read(b)
		c.Write(append(b, '\n'))
	}, func(p *port) string { return p.foreign }},
	{"an oversized frame", func(_ *testing.T, p *port, c net.Conn) { c.Write(p.tooLong) },
		func(p *port) string { return p.long }},
	{"half open", func(*testing.T, *port, net.Conn) {}, always("i/o timeout")},
	{"slow loris", func(_ *testing.T, p *port, c net.Conn) { slowly(c, p.hello) }, always("i/o timeout")},
	{"closed at once", func(_ *testing.T, p *port, c net.Conn) { c.Close() }, always("EOF")},
}

var byToken = []attack{
	{"an older build", func(_ *testing.T, p *port, c net.Conn) { c.Write(p.older) },
		always("version 1 of the protocol")},
	{"wrong token", func(t *testing.T, p *port, c net.Conn) { p.shake(t, c, wrongToken, nil) }, always("wrong token")},
	{"no token", func(t *testing.T, p *port, c net.Conn) { p.shake(t, c, "", nil) }, always("wrong token")},
	{"a replayed handshake", func(t *testing.T, p *port, c net.Conn) {
		first, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer first.Close()
		heard := p.shake(t, first, rightToken, nil)
		p.shake(t, c, "", heard)
	}, always("wrong token")},
	{"a proof with a flipped bit", func(t *testing.T, p *port, c net.Conn) {
		c.Write(p.hello)
		random, _ := p.answer(c)
		b := p.proof(rightToken, random)
		b[len(b)/2] ^= 4
		c.Write(b)
	}, always("wrong token|checksum is wrong")},
	{"a hello with a flipped bit", func(_ *testing.T, p *port, c net.Conn) {
		b := bytes.Clone(p.hello)
		b[40] ^= 1
		c.Write(b)
	}, func(p *port) string { return p.changed }},
}

// byCertificate are attacks on TLS with the certificates in dir.
func byCertificate(dir string) []attack {
	shows := func(name string) func(*testing.T, *port, net.Conn) {
		return func(t *testing.T, p *port, c net.Conn) {
			s := tls.Client(c, identityOf(t, filepath.Join(dir, name)))
			s.Write(p.hello)
			io.Copy(io.Discard, s)
		}
	}
	return []attack{
		{"an expired certificate", shows("certs/old"), always(`expired on`)},
		{"a certificate of another authority", shows("other/x"), always("not of this cluster's authority")},
		{"no certificate", func(t *testing.T, p *port, c net.Conn) {
			s := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			s.Write(p.hello)
			io.Copy(io.Discard, s)
		}, always("client didn't provide a certificate")},
		{"slow loris", func(_ *testing.T, _ *port, c net.Conn) {
			slowly(c, []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and so on"))
		}, always("i/o timeout")},
		{"no TLS", func(_ *testing.T, p *port, c net.Conn) { c.Write(p.hello) },
			always("does not look like a TLS handshake")},
		{"random bytes", byAnybody[0].do, always("tls: ")},
		{"an oversized record", func(_ *testing.T, _ *port, c net.Conn) {
			c.Write(append([]byte("\x16\x03\x01\xff\xff"), make([]byte, 1<<16)...))
		}, always("tls: ")},
		{"a replayed handshake", func(t *testing.T, p *port, c net.Conn) {
			first, err := net.Dial("tcp", p.addr)
			if err != nil {
				t.Error(err)
				return
			}
			heard := &eavesdropper{Conn: first}
			s := tls.Client(heard, identityOf(t, filepath.Join(dir, "certs/alpha")))
			s.Write(p.hello)
			s.Close()
			c.Write(heard.sent.Bytes())
		}, always("tls: ")},
	}
}

// identityOf is a TLS client that presents the certificate in dir.
func identityOf(t *testing.T, dir string) *tls.Config {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Error(err)
	}
	return &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}
}

// expire copies a host's certificate to the folder old, valid until yesterday.
func expire(t *testing.T, dir, host, old string) {
	t.Helper()
	read := func(name string) []byte {
		block, _ := pem.Decode([]byte(readFile(t, dir, name)))
		return block.Bytes
	}
	authority, err := x509.ParseCertificate(read("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParseECPrivateKey(read("ca-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(read(host + "/cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	c.NotBefore, c.NotAfter = time.Now().AddDate(-1, 0, 0), time.Now().AddDate(0, 0, -1)
	der, err := x509.CreateCertificate(crand.Reader, c, authority, c.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, old), os.DirFS(filepath.Join(dir, host))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, old, "cert.pem"),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eavesdropper records what is sent.
type eavesdropper struct {
	net.Conn
	sent bytes.Buffer
}

func (e *eavesdropper) Write(b []byte) (int, error) {
	e.sent.Write(b)
	return e.Conn.Write(b)
}

// TestUnauthenticatedPeers: peers that cannot prove who they are connect to the coordinator's
// port and to a worker's while three workers train. All are refused, the log names each,
// they do not block the listeners, and the weights equal an undisturbed run's.
func TestUnauthenticatedPeers(t *testing.T) {
	t.Parallel()
	for _, secured := range []string{"token", "tls"} {
		t.Run(secured, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t)
			s.do("starling partition graph --parts 3 --out three --quiet")
			s.do("starling certs --hosts alpha --out certs")
			expire(t, filepath.Join(s.dir, "certs"), "alpha", "old")
			s.do("starling certs --hosts x --out other")
			s.do("write token " + rightToken)
			with, attacks := "--token-file token", slices.Concat(byAnybody, byToken)
			if secured == "tls" {
				with, attacks = "--tls certs/alpha", byCertificate(s.dir)
				for _, a := range byAnybody {
					if a.name == "half open" || a.name == "closed at once" { // the others end in the TLS handshake
						attacks = append(attacks, a)
					}
				}
			}
			j := s.attackedJob(with)
			faster := slowed(t, s.run("two").Process.Pid)
			var wg sync.WaitGroup
			for _, p := range j.ports {
				if secured == "token" {
					j.current(p)
				}
				for _, a := range attacks {
					wg.Go(func() { j.try(p, a) })
				}
			}
			wg.Wait()
			j.flood(with)
			faster()
			j.finish(with)
		})
	}
}

// attackedJob is a run of three workers, and the ports that are attacked.
type attackedJob struct {
	*scenario
	run   *scene
	ports []*port
}

const attackedModel = "--layers 2 --hidden 16 --eval-every 0"

func (s *scenario) attackedJob(with string) *attackedJob {
	s.t.Helper()
	with += " --heartbeat 60" // the machine may be slow under the flood
	control, data := "127.0.0.1:"+s.port, "127.0.0.1:"+freePort()
	s.do("start run starling train three --epochs 1000000 --no-launch --on-failure stop --out got --json got.json " +
		attackedModel + " --listen " + control + " " + with)
	s.do("start zero starling worker --rank 0 --join " + control + " --listen " + data + " " + with)
	s.do("start one starling worker --rank 1 --join " + control + " " + with)
	s.do("start two starling worker --rank 2 --join " + control + " " + with)
	s.do("await zero in job")
	s.do("await run ^epoch")
	job := regexp.MustCompile(`in job (\S+)`).FindStringSubmatch(s.run("zero").string())
	return &attackedJob{s, s.run("run"), []*port{controlPort(control), dataPort(data, job[1])}}
}

// current fails the test at once where the build no longer accepts the hello that the attacks
// start with: a newer protocol version would refuse them all for that reason alone.
func (j *attackedJob) current(p *port) {
	j.t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		j.t.Fatal(err)
	}
	defer conn.Close()
	conn.Write(p.hello)
	if _, err := p.answer(conn); err != nil {
		j.t.Fatalf("the %s port does not accept this test's hello: %v", p.name, err)
	}
}

// ports counts the ports that were given to tests, from a start that differs between processes.
var ports atomic.Uint32

func init() { ports.Store(uint32(os.Getpid()) * 97) }

// freePort is a port without a listener that no other test was given. It is below the
// range from which the system assigns ports, so that no other process is given it.
func freePort() string {
	for {
		port := fmt.Sprint(10000 + ports.Add(1)%20000)
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
}

// try makes an attack until the log has refused it for the expected reason. A machine so
// slow that the handshake's own time limit ended an attack decides nothing: it is made again.
func (j *attackedJob) try(p *port, a attack) {
	for end := time.Now().Add(hang); ; {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			j.t.Error(err)
			return
		}
		go a.do(j.t, p, conn)
		rank, reason := j.refused(conn.LocalAddr().String(), end)
		conn.Close()
		switch expected := regexp.MustCompile(a.says(p)); {
		case reason == "":
			j.t.Errorf("%s at the %s port: the log does not refuse it:\n%s", a.name, p.name, j.run.string())
			return
		case (rank == "") != (p.name == "control"):
			j.t.Errorf("%s at the %s port was refused at another port: %s%s", a.name, p.name, rank, reason)
			return
		case expected.MatchString(reason):
			return
		case !strings.Contains(reason, "i/o timeout"):
			j.t.Errorf("%s at the %s port was refused because %q, want %q", a.name, p.name, reason, expected)
			return
		}
		j.t.Logf("%s at the %s port: once more after %q", a.name, p.name, reason)
	}
}

// refused waits for the log's line about a connection and returns the rank that wrote it
// (none: the coordinator) and the reason; no reason where end comes first.
func (j *attackedJob) refused(addr string, end time.Time) (rank, reason string) {
	line := regexp.MustCompile(`(?m)^(\[rank 0\] )?refused ` + regexp.QuoteMeta(addr) + `: (.+)`)
	for ; time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if at := line.FindStringSubmatch(j.run.string()); at != nil {
			return at[1], at[2]
		}
	}
	return "", ""
}

// flood opens hundreds of connections to each port and sends nothing on them. A client with
// the token still gets in, and once the flood is over it has left no descriptors behind.
func (j *attackedJob) flood(with string) {
	j.t.Helper()
	before := j.descriptors()
	const tries = 5 // a slow machine may exceed the handshake's time limit; not five times
	var text string
	for range tries {
		if text = j.watchInFlood(with); strings.HasSuffix(text, "exit 0\n") {
			break
		}
	}
	if !strings.HasSuffix(text, "exit 0\n") {
		j.t.Errorf("top cannot join during a flood: %s", text)
	}
	j.await(j.run, `^refused \d+ others within`)
	j.await(j.run, `^\[rank 0\] refused \d+ others within`)
	for end := time.Now().Add(hang); j.descriptors() > before+2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			j.t.Fatalf("%d descriptors before the flood, now %d", before, j.descriptors())
		}
	}
}

// watchInFlood is the output of `starling top` while hundreds of silent connections are open.
func (j *attackedJob) watchInFlood(with string) string {
	j.t.Helper()
	for range 400 {
		for _, p := range j.ports {
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				j.t.Fatal(err)
			}
			defer conn.Close()
		}
	}
	return j.do("starling top " + j.ports[0].addr + " --once " + with)
}

// descriptors counts the open ones of the coordinator and of rank 0.
func (j *attackedJob) descriptors() (n int) {
	for _, name := range []string{"run", "zero"} {
		list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", j.scenario.run(name).Process.Pid))
		n += len(list)
	}
	return n
}

// finish stops the run and compares it with an undisturbed one.
func (j *attackedJob) finish(with string) {
	j.t.Helper()
	j.run.Process.Signal(syscall.SIGINT)
	for name, want := range map[string]string{"run": "exit 130\n", "zero": "exit 0\n", "one": "exit 0\n",
		"two": "exit 0\n"} {
		if text := j.do("end " + name); !strings.HasSuffix(text, want) {
			j.t.Fatalf("%s: %s", name, text)
		}
	}
	epochs := result(j.t, readFile(j.t, j.dir, "got.json"))["epochs"]
	j.t.Logf("%v epochs", epochs)
	j.do(fmt.Sprintf("starling train three --epochs %v --out want --json want.json --quiet %s", epochs, attackedModel))
	if text := j.same("got.json", "want.json"); text != "the same losses\n" {
		j.t.Error(text)
	}
	files, _ := filepath.Glob(filepath.Join(j.dir, "want", "*.safetensors"))
	if len(files) == 0 {
		j.t.Error("no weights to compare")
	}
	for _, f := range files {
		name := filepath.Base(f)
		if readFile(j.t, j.dir, "got/"+name) != readFile(j.t, j.dir, "want/"+name) {
			j.t.Errorf("%s differs from the undisturbed run's", name)
		}
	}
}
