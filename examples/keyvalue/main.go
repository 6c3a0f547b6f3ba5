// Command keyvalue is a small key-value store over every path between two hosts.
//
//	keyvalue -paths links.yaml -listen 10.0.1.1:7070              serves
//	keyvalue -paths links.yaml -to 10.0.1.1:7070 put name value
//	keyvalue -paths links.yaml -to 10.0.1.1:7070 get name
//	keyvalue -paths links.yaml -to 10.0.1.1:7070 -size 1048576 -count 500 pull    measures reads of its memory
//	keyvalue -paths links.yaml -to 10.0.1.1:7070 -count 5000 times                measures gets and puts of 64 bytes
//
// KEYVALUE_TOKEN is a secret that both sides know. Without one, anyone who reaches the address can read and write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"starling/wire"
	"starling/wire/paths"
)

var (
	file   = flag.String("paths", "", "description of the paths; starling paths probe writes one")
	listen = flag.String("listen", "", "address to serve at")
	to     = flag.String("to", "", "address of a server")
	size   = flag.Int("size", 1<<20, "bytes per pull")
	count  = flag.Int("count", 200, "pulls")
	ahead  = flag.Int("ahead", 4, "pulls under way at a time")
	rows   = flag.Int("rows", 64<<20, "bytes of memory that the server shares")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "keyvalue:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	f, err := paths.Parse(text)
	if err != nil {
		return err
	}
	at := *listen
	if at == "" {
		at = "0.0.0.0:0"
	}
	base, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	c, err := paths.Init(paths.NewPlan(f), base, paths.Access{Token: []byte(os.Getenv("KEYVALUE_TOKEN"))}, wire.Real)
	if err != nil {
		return err
	}
	defer c.Close()
	if *listen != "" {
		return serve(c)
	}
	return ask(c)
}

// serve has the table, and memory to be read by peers without a function.
func serve(c *paths.Context) error {
	table := map[string][]byte{}
	c.Register("put", func(request []byte) ([]byte, error) {
		key, value, ok := strings.Cut(string(request), "\n")
		if !ok {
			return nil, errors.New("found no value, want a key, a line break and a value")
		}
		table[key] = []byte(value)
		return nil, nil
	})
	c.Register("get", func(key []byte) ([]byte, error) {
		value, ok := table[string(key)]
		if !ok {
			return nil, fmt.Errorf("found no key %q", key)
		}
		return value, nil
	})
	c.Share("rows", make([]byte, *rows))
	return c.Handle()
}

// ask is one call of the command line.
func ask(c *paths.Context) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := c.Dial(ctx, *to)
	if err != nil {
		return err
	}
	defer p.Close()
	switch args := flag.Args(); {
	case len(args) == 3 && args[0] == "put":
		err = p.Send("put", []byte(args[1]+"\n"+args[2]))
	case len(args) == 2 && args[0] == "get":
		err = p.Send("get", []byte(args[1]))
	case len(args) == 1 && args[0] == "pull":
		return pull(ctx, c)
	case len(args) == 1 && args[0] == "times":
		return measure(p)
	default:
		return errors.New("found no call, want put KEY VALUE, get KEY, pull or times")
	}
	if err != nil {
		return err
	}
	value, err := p.Receive()
	if err == nil && len(value) > 0 {
		fmt.Println(string(value))
	}
	return err
}

// measure prints the medians of calls that are alone: in all, and inside the server.
func measure(p *paths.Peer) error {
	value := strings.Repeat("x", 64)
	for _, call := range []string{"put", "get", "read"} {
		var whole, inside []time.Duration
		for i := range *count {
			key, begin := fmt.Sprintf("key%05d", i%1000), time.Now()
			var err error
			switch call {
			case "put":
				err = p.Send("put", []byte(key+"\n"+value))
			case "get":
				err = p.Send("get", []byte(key))
			case "read":
				_, err = p.Read("rows", 64*(i%1000), 64)
			}
			if err == nil && call != "read" {
				_, err = p.Receive()
			}
			if err != nil {
				return err
			}
			whole, inside = append(whole, time.Since(begin)), append(inside, p.Served())
		}
		slices.Sort(whole)
		slices.Sort(inside)
		fmt.Printf("%s: median %v, of it inside the server %v\n", call, whole[len(whole)/2], inside[len(inside)/2])
	}
	return nil
}

// pull reads the server's memory again and again, over several connections.
func pull(ctx context.Context, c *paths.Context) error {
	begin, longest := time.Now(), time.Duration(0)
	results := make(chan error)
	times := make(chan time.Duration, *count)
	for k := range *ahead {
		go func() {
			p, err := c.Dial(ctx, *to)
			for i := k; i < *count && err == nil; i += *ahead {
				one := time.Now()
				var b []byte
				if b, err = p.Read("rows", i**size%(*rows-*size+1), *size); err == nil && len(b) != *size {
					err = fmt.Errorf("found %d bytes, want %d", len(b), *size)
				}
				times <- time.Since(one)
			}
			results <- err
		}()
	}
	for range *ahead {
		if err := <-results; err != nil {
			return err
		}
	}
	took := time.Since(begin)
	close(times)
	for t := range times {
		longest = max(longest, t)
	}
	fmt.Printf("%d pulls of %d bytes in %v: %.1f Mbit/s, the longest took %v\n", *count, *size, took.Round(time.Millisecond),
		float64(*count)*float64(*size)*8/1e6/took.Seconds(), longest.Round(time.Millisecond))
	return nil
}
