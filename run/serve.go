package run

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"starling/serve"
	"starling/tensor"
)

// ServeOptions say what to serve, and to whom.
type ServeOptions struct {
	Run, Dataset string
	Listen       string
	TokenFile    string
	Insecure     bool
	Threads      int
	Limits       serve.Limits
}

// DefaultServe listens on loopback.
func DefaultServe() ServeOptions {
	return ServeOptions{Listen: "127.0.0.1:8080", Limits: serve.DefaultLimits()}
}

const (
	// mostConnections is how many clients may be connected; others are sent away.
	mostConnections = 4096
	// lastAnswers is how long requests may go on after Ctrl-C.
	lastAnswers = 10 * time.Second
)

// Serve answers HTTP requests until ctx ends, then finishes those under way. ready is
// told the address once it answers; before that, the end of ctx is an interruption.
func Serve(ctx context.Context, o ServeOptions, ready func(addr string, vertices int)) error {
	token, err := o.check()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return mistake("--listen", err.Error(), "a free port of an address of this host", "port 0 is any")
	}
	defer l.Close()
	a, err := untilInterrupted(ctx, "", o.answers)
	if err != nil {
		return err
	}
	defer a.close()
	server := &http.Server{Handler: serve.NewServer(a.Answers, o.Limits, token), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	done := make(chan error, 1)
	go func() { done <- server.Serve(&fewConns{Listener: l, places: make(chan struct{}, mostConnections)}) }()
	ready(l.Addr().String(), a.Vertices())
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), lastAnswers)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close() // those who still talk have had their time
}

// answers is what a server knows, and what to close after it.
type answers struct {
	*serve.Answers
	close func()
}

// answers runs the model over the whole graph.
func (o ServeOptions) answers() (*answers, error) {
	t, err := serve.Open(o.Run)
	if err != nil {
		return nil, err
	}
	d, err := openForPrediction(o.Dataset)
	if err != nil {
		return nil, err
	}
	dev := tensor.NewCPU(o.Threads)
	out := &answers{close: func() { dev.Close(); d.Close() }}
	if out.Answers, err = serve.NewAnswers(dev, t, d); err != nil {
		out.close()
		return nil, err
	}
	return out, nil
}

// check is all that can be checked before anything is read.
func (o *ServeOptions) check() (token []byte, err error) {
	if o.TokenFile != "" {
		if token, err = ReadToken(o.TokenFile); err != nil {
			return nil, err
		}
	}
	switch {
	case token != nil && o.Insecure:
		return nil, mistake("--insecure", "it with --token-file", "one of the two", "")
	case exposed(o.Listen) && token == nil && !o.Insecure:
		return nil, mistake("--listen", o.Listen+", which others can reach", "--token-file, or an address of 127.0.0.1", "or answer whoever asks with --insecure")
	case o.Limits.Body < 1 || o.Limits.Vertices < 1 || o.Limits.AtOnce < 1:
		return nil, mistake("limits", "less than one", "--max-body, --max-vertices and --max-requests of at least 1", "")
	case o.Limits.Wait < 0:
		return nil, mistake("--max-wait", o.Limits.Wait.String(), "0 or more", "")
	}
	if err := checkThreads(o.Threads); err != nil {
		return nil, err
	}
	return token, nil
}
