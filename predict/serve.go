package predict

import (
	"context"
	"errors"

	"starling/cluster"
	"starling/graph"
	"starling/partition"
	"starling/serve"
	"starling/setup"
	"starling/spec"
	"starling/tensor/cpu"
)

// ServeOptions are the options of starling serve.
type ServeOptions struct {
	Run, Dataset string
	Listen       string
	TokenFile    string
	Insecure     bool
	Threads      int
	Timeout      int // as of Options
	Limits       serve.Limits
}

// DefaultServe listens on loopback.
func DefaultServe() ServeOptions {
	return ServeOptions{Listen: "127.0.0.1:8080", Limits: serve.DefaultLimits()}
}

// Serve serves HTTP requests until ctx ends, then finishes those in flight. ready is called with
// the address once it serves; before that, the end of ctx is an interruption.
func Serve(ctx context.Context, o ServeOptions, ready func(addr string, vertices int)) error {
	token, err := o.check()
	if err != nil {
		return err
	}
	l, err := serve.Listen(o.Listen)
	if err != nil {
		return spec.Mistake("--listen", graph.Sentence(err.Error()), "a free port of an address of this host", "port 0: any")
	}
	defer l.Close()
	stop := graph.ExitOnFault() // once it answers, a fault is an answer with status 500
	a, err := setup.UntilInterrupted(ctx, "", o.answers)
	stop()
	if err != nil {
		return err
	}
	defer a.close()
	return serve.NewServer(a.Answers, o.Limits, token).Run(ctx, l,
		func() { ready(l.Addr().String(), a.Vertices()) })
}

// answers are what a server answers from, and what to close after it.
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
	if err := t.WholeGraph(); err != nil {
		return nil, err
	}
	if partition.IsPartition(o.Dataset) {
		return o.answersOverParts(t)
	}
	d, err := openForPrediction(o.Dataset, t)
	if err != nil {
		return nil, err
	}
	dev := cpu.New(o.Threads)
	out := &answers{close: func() { dev.Close(); d.Close() }}
	if out.Answers, err = serve.NewAnswers(dev, t, d); err != nil {
		out.close()
		return nil, err
	}
	return out, nil
}

// answersOverParts has one worker per part run the model over its vertices, layer by layer.
func (o ServeOptions) answersOverParts(t *serve.Trained) (*answers, error) {
	what := Options{Run: o.Run, Dataset: o.Dataset, Threads: o.Threads, Timeout: o.Timeout,
		What: serve.Labels}
	outputs, err := what.infer(t)
	if err != nil {
		return nil, err
	}
	inputs, embeddings := new(inferred), (*serve.Rows)(nil)
	what.What = serve.Embeddings
	if t.Suits(outputs.data, what.What) == nil { // a model of one layer has none
		if inputs, err = what.infer(t.OfAllTypes()); err != nil {
			outputs.Close()
			return nil, err
		}
		rows := inputs.rows()
		embeddings = &rows
	}
	dev := cpu.New(o.Threads)
	out := &answers{close: func() { dev.Close(); outputs.Close(); inputs.Close() }}
	if out.Answers, err = serve.AnswersFromRows(dev, t, outputs.data, outputs.rows(), embeddings); err != nil {
		out.close()
		return nil, err
	}
	return out, nil
}

// check is all that can be checked before files are read.
func (o *ServeOptions) check() (token []byte, err error) {
	if o.TokenFile != "" {
		if token, err = spec.ReadToken(o.TokenFile); err != nil {
			return nil, err
		}
	}
	switch {
	case token != nil && o.Insecure:
		return nil, spec.Mistake("--insecure", "it with --token-file", "one of the two", "")
	case cluster.Exposed(o.Listen) && token == nil && !o.Insecure:
		return nil, spec.Mistake("--listen", o.Listen+", which others can reach",
			"--token-file, or an address of 127.0.0.1", "or answer anyone with --insecure")
	case o.Limits.Body < 1 || o.Limits.Vertices < 1 || o.Limits.AtOnce < 1:
		return nil, spec.Mistake("limits", "less than one", "--max-body, --max-vertices and --max-requests of at "+
			"least 1", "")
	case o.Limits.Wait < 0:
		return nil, spec.Mistake("--max-wait", o.Limits.Wait.String(), "0 or more", "")
	}
	if err := errors.Join(spec.CheckThreads(o.Threads), checkTimeout(o.Timeout, o.Dataset)); err != nil {
		return nil, err
	}
	return token, nil
}
