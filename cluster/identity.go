package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"starling/disk"
	"starling/wire"
)

// Identity is what a process of a cluster shows to others, and knows them by: a
// certificate of the cluster's own authority. Both sides of a connection show
// theirs (mutual TLS 1.3); a process with one belongs to the cluster, whatever the
// name of its host.
type Identity struct{ config *tls.Config }

// The files of an identity.
const (
	authorityFile   = "ca.pem"
	authorityKey    = "ca-key.pem"
	certificateFile = "cert.pem"
	keyFile         = "key.pem"
)

// LoadIdentity reads ca.pem, cert.pem and key.pem.
func LoadIdentity(dir string) (*Identity, error) {
	path := func(name string) string { return filepath.Join(dir, name) }
	text, err := os.ReadFile(path(authorityFile))
	if err != nil {
		return nil, fmt.Errorf("%w; make certificates with starling certs", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: there is no certificate in it; make one with starling certs", path(authorityFile))
	}
	if err := disk.CheckPrivate(path(keyFile)); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(path(certificateFile), path(keyFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; make certificates with starling certs", dir, err)
	}
	if err := trust(pool, pair.Leaf, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", path(certificateFile), err)
	}
	return &Identity{&tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		ClientAuth: tls.RequireAnyClientCert,
		// Names of hosts prove nothing here; who signed the certificate is checked for both sides.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("it presented no certificate")
			}
			return trust(pool, s.PeerCertificates[0], s.PeerCertificates[1:])
		},
	}}, nil
}

// trust checks that a certificate is of the cluster's authority and not out of date.
func trust(pool *x509.CertPool, c *x509.Certificate, between []*x509.Certificate) error {
	if now := wire.Real.Now(); now.After(c.NotAfter) {
		return fmt.Errorf("the certificate of %q expired on %s; make a new one with starling certs",
			c.Subject.CommonName, c.NotAfter.Format(time.DateOnly))
	}
	opt := x509.VerifyOptions{Roots: pool, Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, b := range between {
		opt.Intermediates.AddCert(b)
	}
	if _, err := c.Verify(opt); err != nil {
		return fmt.Errorf("the certificate of %q is not of this cluster's authority: %w", c.Subject.CommonName, err)
	}
	return nil
}

// Listen makes every peer that connects to l present a certificate. A nil Identity asks
// for none.
func (id *Identity) Listen(l net.Listener) net.Listener {
	if id == nil {
		return l
	}
	return tls.NewListener(l, id.config)
}

// Server is the listening side of one connection.
func (id *Identity) Server(conn net.Conn) net.Conn {
	if id == nil {
		return conn
	}
	return tls.Server(conn, id.config)
}

// Dial opens a connection and shows the certificate.
func (id *Identity) Dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return id.Client(ctx, conn)
}

// Client is the dialling side of a connection: it shows the certificate.
func (id *Identity) Client(ctx context.Context, conn net.Conn) (net.Conn, error) {
	if id == nil {
		return conn, nil
	}
	secure := tls.Client(conn, id.config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}
