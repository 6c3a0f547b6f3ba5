package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"starling/wire"
)

// etcd is a rendezvous in a key of etcd, version 3.4 or later. The key hangs on a
// lease, which the coordinator renews, so that the entry of a dead one vanishes.
//
// It speaks the JSON form of the v3 API, which every server offers, by net/http:
// four calls. The Go client would be larger than all the rest of Starling.
type etcd struct {
	servers    []string // scheme://host:port, tried in turn
	key        string
	user, pass string
	client     *http.Client
	lease      int // seconds that the entry of a dead coordinator stays
}

// startTime is how long a server may take to start, or to elect a leader.
const startTime = 10 * time.Second

// newEtcd reads http://[USER:PASSWORD@]HOST:PORT[,http://HOST:PORT…][/PREFIX].
func newEtcd(text, job string) (*etcd, error) {
	c := &etcd{client: &http.Client{Timeout: 5 * time.Second}, lease: 10}
	prefix := "starling"
	for _, part := range strings.Split(text, ",") {
		u, err := url.Parse(part)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" ||
			u.Fragment != "" {
			return nil, fmt.Errorf("%.80q, expected etcd:http://HOST:2379/PREFIX", "etcd:"+part)
		}
		if u.User != nil {
			c.user = u.User.Username()
			c.pass, _ = u.User.Password()
		}
		if p := strings.Trim(u.Path, "/"); p != "" {
			prefix = p
		}
		c.servers = append(c.servers, u.Scheme+"://"+u.Host)
	}
	c.key = prefix + "/" + job
	return c, nil
}

func (c *etcd) Secret() bool   { return false } // every client of the server may read it
func (c *etcd) String() string { return "etcd:" + strings.Join(c.servers, ",") + "/" + c.key }

// call asks the first server that answers.
func (c *etcd) call(ctx context.Context, path string, ask, answer any) (err error) {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	for _, server := range c.servers {
		if err = c.post(ctx, server, path, body, answer); err == nil {
			return nil
		}
	}
	return err
}

func (c *etcd) post(ctx context.Context, server, path string, body []byte, answer any) error {
	auth, err := c.authenticate(ctx, server)
	if err != nil {
		return err
	}
	return c.send(ctx, server+path, auth, body, answer)
}

// authenticate is what proves who we are; empty without a user.
func (c *etcd) authenticate(ctx context.Context, server string) (string, error) {
	if c.user == "" {
		return "", nil
	}
	body, err := json.Marshal(map[string]string{"name": c.user, "password": c.pass})
	if err != nil {
		return "", err
	}
	var got struct{ Token string }
	return got.Token, c.send(ctx, server+"/v3/auth/authenticate", "", body, &got)
}

func (c *etcd) send(ctx context.Context, at, auth string, body []byte, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxEntry))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd at %s answers %s: %.200s", at, resp.Status, bytes.TrimSpace(text))
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("etcd at %s: %w", at, err)
	}
	return nil
}

// Publish takes a lease, puts the entry under it, and renews it until withdraw.
func (c *etcd) Publish(ctx context.Context, e Entry, warn func(error)) (func(), error) {
	lease, err := c.put(ctx, e)
	for begin := wire.Real.Now(); err != nil && wire.Since(wire.Real, begin) < startTime; {
		if wire.Sleep(ctx, wire.Real, poll) != nil {
			break
		}
		lease, err = c.put(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	// A run that ends goes on to withdraw, though ctx has ended.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.renew(life, e, lease, warn)
	}()
	return func() {
		end()
		<-over
	}, nil
}

// put writes the entry under a lease of its own.
func (c *etcd) put(ctx context.Context, e Entry) (lease string, err error) {
	value, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	var granted struct{ ID string }
	if err := c.call(ctx, "/v3/lease/grant", map[string]int{"TTL": c.lease}, &granted); err != nil {
		return "", err
	}
	put := struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
		Lease string `json:"lease"`
	}{[]byte(c.key), value, granted.ID}
	return granted.ID, c.call(ctx, "/v3/kv/put", put, &struct{}{})
}

// renew keeps the lease alive; one that was lost, with its server perhaps, is
// replaced. In the end it is given back, and the entry goes with it.
func (c *etcd) renew(ctx context.Context, e Entry, lease string, warn func(error)) {
	for wire.Sleep(ctx, wire.Real, time.Duration(c.lease)*time.Second/4) == nil {
		var kept struct{ Result struct{ TTL string } }
		err := c.call(ctx, "/v3/lease/keepalive", map[string]string{"ID": lease}, &kept)
		if err == nil && kept.Result.TTL == "" {
			lease, err = c.put(ctx, e)
		}
		if err != nil && ctx.Err() == nil {
			warn(err)
		}
	}
	leave, cancel := wire.WithTimeout(context.WithoutCancel(ctx), wire.Real, 2*time.Second)
	defer cancel()
	c.call(leave, "/v3/lease/revoke", map[string]string{"ID": lease}, &struct{}{}) // else it runs out
}

// Find looks until the key is there.
func (c *etcd) Find(ctx context.Context, old Entry) (Entry, error) {
	return look(ctx, old, c.String(), func() (e Entry, err error) {
		var got struct{ KVs []struct{ Value []byte } }
		err = c.call(ctx, "/v3/kv/range", map[string][]byte{"key": []byte(c.key)}, &got)
		if err != nil || len(got.KVs) == 0 {
			return e, err
		}
		if json.Unmarshal(got.KVs[0].Value, &e) != nil || e.Addr == "" {
			return Entry{}, fmt.Errorf("the key %s names no run", c.key)
		}
		e.Token = "" // one that anybody could have put there is worth nothing
		return e, nil
	})
}
