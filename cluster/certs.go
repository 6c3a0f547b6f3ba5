package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"starling/disk"
	"starling/wire"
)

// MakeCerts makes certificates for hosts, each in its own folder under dir, signed
// by the authority in dir, which is made if it is not there. Folders that exist
// already are left alone unless renew is set.
func MakeCerts(dir string, hosts []string, valid time.Duration, renew bool) (made []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ca, key, err := authority(dir)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		out := filepath.Join(dir, host)
		if _, err := os.Stat(filepath.Join(out, certificateFile)); err == nil && !renew {
			continue
		}
		if err := certificate(out, host, ca, key, valid); err != nil {
			return made, err
		}
		made = append(made, out)
	}
	return made, nil
}

// AuthorityError names which file of an authority is not what it should be.
type AuthorityError struct{ File, Found string }

func (e *AuthorityError) Error() string { return e.File + ": found " + e.Found }

// Lifetime is how long an authority is valid, and so all that it signs.
const Lifetime = 10 * 365 * 24 * time.Hour

// authority reads the cluster's authority, or makes one. It makes none where half of one
// is: hosts may have certificates that only the key there goes with.
func authority(dir string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	path, secret := filepath.Join(dir, authorityFile), filepath.Join(dir, authorityKey)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(secret); err == nil {
			return nil, nil, &AuthorityError{path, "no such file beside the key " + authorityKey}
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, err
		}
		c := template("starling authority", Lifetime)
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
		if err := sign(path, secret, c, c, key, key); err != nil {
			return nil, nil, err
		}
		return c, key, nil
	case err != nil:
		return nil, nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, &AuthorityError{path, "no certificate in it"}
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, &AuthorityError{path, err.Error()}
	}
	if text, err = os.ReadFile(secret); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &AuthorityError{secret, "no such file, which signs certificates"}
	} else if err != nil {
		return nil, nil, err
	}
	if block, _ = pem.Decode(text); block == nil {
		return nil, nil, &AuthorityError{secret, "no key in it"}
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, &AuthorityError{secret, err.Error()}
	}
	if !key.PublicKey.Equal(c.PublicKey) {
		return nil, nil, &AuthorityError{secret, "the key of another authority"}
	}
	return c, key, nil
}

// certificate makes the identity of a host.
func certificate(out, host string, ca *x509.Certificate, signer *ecdsa.PrivateKey, valid time.Duration) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o700); err != nil {
		return err
	}
	if err := sign(filepath.Join(out, certificateFile), filepath.Join(out, keyFile), template(host, valid), ca, key,
		signer); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(out), authorityFile))
	if err != nil {
		return err
	}
	return writePrivate(filepath.Join(out, authorityFile), text)
}

func template(name string, valid time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	now := wire.Real.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{"starling"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(valid), // clocks of hosts differ
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth,
			x509.ExtKeyUsageServerAuth}}
}

// sign writes a certificate and its key, the key first: a certificate that is there
// is complete.
func sign(path, secret string, c, by *x509.Certificate, key, signer *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, signer)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePrivate(secret, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})); err != nil {
		return err
	}
	return writePrivate(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// writePrivate writes a file for its owner only, whole or not at all.
func writePrivate(path string, text []byte) error {
	f, err := disk.CreatePrivate(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		f.Abort()
		return err
	}
	return f.Commit()
}
