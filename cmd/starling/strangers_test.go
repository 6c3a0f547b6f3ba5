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

// port is one that strangers knock at, and how its handshake goes.
type port struct {
	name, addr string
	// hello opens a handshake; the answer to it holds the random number, and proof
	// what is then said by who knows a token.
	hello  []byte
	answer func(net.Conn) (random []byte, err error)
	proof  func(token string, random []byte) []byte
	// What the log says of bytes that are nothing of ours, of a hello that was changed,
	// and of one that is too long.
	foreign, changed, long string
	tooLong                []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// controlLine is a message of a control connection.
func controlLine(kind string, body any) []byte {
	b, _ := json.Marshal(map[string]any{"type": kind, "body": body})
	return fmt.Appendf(b, "\t%08x\n", crc32.Checksum(b, castagnoli))
}

// controlPort is where workers meet.
func controlPort(addr string) *port {
	hello := controlLine("hello", map[string]any{"protocol": 2, "version": "v", "rank": 1, "random": "x"})
	return &port{name: "control", addr: addr, hello: hello, foreign: "does not speak our language", changed: "checksum is wrong",
		long: "longer than allowed", tooLong: bytes.Repeat([]byte("x"), 1<<20),
		answer: func(c net.Conn) ([]byte, error) {
			var m struct{ Body string }
			err := json.NewDecoder(c).Decode(&m)
			return []byte(m.Body), err
		},
		proof: func(token string, random []byte) []byte {
			mac := hmac.New(sha256.New, []byte(token))
			fmt.Fprintf(mac, "worker\n%s\n%s", hello[:len(hello)-10], random)
			return controlLine("proof", hex.EncodeToString(mac.Sum(nil)))
		}}
}

// dataPort is where other workers dial rank 0 of three.
func dataPort(addr, job string) *port {
	sum := sha256.Sum256([]byte(job))
	hello := slices.Concat([]byte("SWH\x01\x01\x00\x00\x00\x03\x00\x00\x00\x02\x00\x00\x00"), sum[:], make([]byte, 32))
	frame := append([]byte("SWF\x01"), bytes.Repeat([]byte{0xff}, 1<<20)...)
	return &port{name: "data", addr: addr, hello: hello, foreign: "does not speak our language", changed: "another job's worker",
		long: "does not speak our language", tooLong: frame,
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

// attack is what a stranger does with a connection, and what the log has to say of it.
type attack struct {
	name string
	do   func(t *testing.T, p *port, conn net.Conn)
	says func(p *port) string
}

func always(text string) func(*port) string { return func(*port) string { return text } }

// shake goes through a handshake and returns the proof that was sent; of replayed, if
// it is not nil, in place of a fresh one.
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

// slowly says something, a byte a second.
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
	{"an oversized frame", func(_ *testing.T, p *port, c net.Conn) { c.Write(p.tooLong) }, func(p *port) string { return p.long }},
	{"half open", func(*testing.T, *port, net.Conn) {}, always("i/o timeout")},
	{"slow loris", func(_ *testing.T, p *port, c net.Conn) { slowly(c, p.hello) }, always("i/o timeout")},
	{"hung up", func(_ *testing.T, p *port, c net.Conn) { c.Close() }, always("EOF")},
}

var byToken = []attack{
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

// byCertificate are attacks on TLS; the certificates are in dir.
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
		{"no TLS", func(_ *testing.T, p *port, c net.Conn) { c.Write(p.hello) }, always("does not look like a TLS handshake")},
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

// identityOf is a certificate, shown to whoever asks.
func identityOf(t *testing.T, dir string) *tls.Config {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Error(err)
	}
	return &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}
}

// expire makes of a host's certificate that of another, which was valid until yesterday.
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
	if err := os.WriteFile(filepath.Join(dir, old, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eavesdropper keeps what is sent.
type eavesdropper struct {
	net.Conn
	sent bytes.Buffer
}

func (e *eavesdropper) Write(b []byte) (int, error) {
	e.sent.Write(b)
	return e.Conn.Write(b)
}

// Strangers of every sort knock at the port where workers meet and at that of a worker,
// while three train. All are refused, each is in the log, the doors are not held up,
// and the weights are those of a run that nobody disturbed.
func TestStrangers(t *testing.T) {
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
					if a.name == "half open" || a.name == "hung up" { // what is said is for TLS to judge
						attacks = append(attacks, a)
					}
				}
			}
			j := s.strangersJob(with)
			var wg sync.WaitGroup
			for _, p := range j.ports {
				for _, a := range attacks {
					wg.Go(func() { j.try(p, a) })
				}
			}
			wg.Wait()
			j.flood(with)
			j.finish(with)
		})
	}
}

// strangersJob is a run of three workers under way.
type strangersJob struct {
	*scenario
	run   *scene
	ports []*port
}

const strangersModel = "--layers 2 --hidden 16 --eval-every 0"

func (s *scenario) strangersJob(with string) *strangersJob {
	s.t.Helper()
	with += " --heartbeat 60" // a machine may be slow in a crowd
	meet, door := "127.0.0.1:"+s.port, "127.0.0.1:"+freePort()
	s.do("start run starling train three --epochs 1000000 --no-launch --on-failure stop --out got --json got.json " + strangersModel + " --listen " + meet + " " + with)
	s.do("start zero starling worker --rank 0 --join " + meet + " --listen " + door + " " + with)
	s.do("start one starling worker --rank 1 --join " + meet + " " + with)
	s.do("start two starling worker --rank 2 --join " + meet + " " + with)
	s.do("await zero in job")
	s.do("await run ^epoch")
	job := regexp.MustCompile(`in job (\S+)`).FindStringSubmatch(s.run("zero").string())
	return &strangersJob{s, s.run("run"), []*port{controlPort(meet), dataPort(door, job[1])}}
}

// ports counts those that were given to tests, from anywhere on.
var ports atomic.Uint32

func init() { ports.Store(rand.Uint32N(20000)) }

// freePort is one that nobody listens on, and that no other test was given. It is below
// those that the system gives to who asks for any, so that nobody else comes by it.
func freePort() string {
	for {
		port := fmt.Sprint(10000 + ports.Add(1)%20000)
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
}

// try is one attack, up to the line of the log that tells of it.
func (j *strangersJob) try(p *port, a attack) {
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		j.t.Error(err)
		return
	}
	defer conn.Close()
	go a.do(j.t, p, conn)
	line := regexp.MustCompile(`(?m)^(\[rank 0\] )?refused ` + regexp.QuoteMeta(conn.LocalAddr().String()) + `: .*(` + a.says(p) + `)`)
	for end := time.Now().Add(hang); ; time.Sleep(20 * time.Millisecond) {
		switch at := line.FindStringSubmatch(j.run.string()); {
		case at != nil && (at[1] == "") != (p.name == "control"):
			j.t.Errorf("%s at the %s port was refused elsewhere: %s", a.name, p.name, at[0])
			return
		case at != nil:
			return
		case time.Now().After(end):
			j.t.Errorf("%s at the %s port: nothing in the log matches %v:\n%s", a.name, p.name, line, j.run.string())
			return
		}
	}
}

// flood comes to all ports with hundreds at once that say nothing. Meanwhile those who
// belong there are still let in, and when the crowd has gone nothing is left of it.
func (j *strangersJob) flood(with string) {
	j.t.Helper()
	before := j.descriptors()
	var conns []net.Conn
	for range 400 {
		for _, p := range j.ports {
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				j.t.Fatal(err)
			}
			conns = append(conns, conn)
		}
	}
	if text := j.do("starling top " + j.ports[0].addr + " --once " + with); !strings.HasSuffix(text, "exit 0\n") {
		j.t.Errorf("nobody can look in a crowd: %s", text)
	}
	for _, c := range conns {
		c.Close()
	}
	j.await(j.run, `^refused \d+ others within`)
	j.await(j.run, `^\[rank 0\] refused \d+ others within`)
	for end := time.Now().Add(hang); j.descriptors() > before+2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			j.t.Fatalf("%d descriptors before the crowd came, now %d", before, j.descriptors())
		}
	}
}

// descriptors are those that the run and its first worker have open.
func (j *strangersJob) descriptors() (n int) {
	for _, name := range []string{"run", "zero"} {
		list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", j.scenario.run(name).Process.Pid))
		n += len(list)
	}
	return n
}

// finish stops the run and compares it with one that nobody disturbed.
func (j *strangersJob) finish(with string) {
	j.t.Helper()
	j.run.Process.Signal(syscall.SIGINT)
	for name, want := range map[string]string{"run": "exit 130\n", "zero": "exit 0\n", "one": "exit 0\n", "two": "exit 0\n"} {
		if text := j.do("end " + name); !strings.HasSuffix(text, want) {
			j.t.Fatalf("%s: %s", name, text)
		}
	}
	epochs := result(j.t, readFile(j.t, j.dir, "got.json"))["epochs"]
	j.t.Logf("%v epochs", epochs)
	j.do(fmt.Sprintf("starling train three --epochs %v --out want --json want.json --quiet %s", epochs, strangersModel))
	if text := j.same("got.json", "want.json"); text != "the same losses\n" {
		j.t.Error(text)
	}
	files, _ := filepath.Glob(filepath.Join(j.dir, "want", "*.safetensors"))
	if len(files) == 0 {
		j.t.Error("there are no weights to compare")
	}
	for _, f := range files {
		name := filepath.Base(f)
		if readFile(j.t, j.dir, "got/"+name) != readFile(j.t, j.dir, "want/"+name) {
			j.t.Errorf("%s is not what it is of an undisturbed run", name)
		}
	}
}
