package batch

import (
	"slices"

	"starling/nn"
	"starling/rng"
	"starling/tensor"
	"starling/train"
)

// Steps trains a loop on the batches of a source: an epoch is a step for each.
type Steps struct {
	Loop   *train.Loop
	Count  int // batches of an epoch
	Source Source
	Over   Aggregator // what the layers of a step go over
	// Degrees of all vertices, where the whole graph is here.
	Degrees *nn.Degrees

	few    bool // a memory dry run of one process: batches without seed vertices take memory as well
	joined bool // other workers have batches too: all take every step
	dry    bool // a memory dry run of several workers: all buffers are filled
	// In such a run, bytes of the largest batch in a buffer, and of its rows.
	held, heldRows int64
	ahead          *ahead
	drawnOn        string  // why batches are drawn by the host; "": the device draws them
	input          Input   // the rows that layers begin with; nil: features
	disk           *onDisk // reads the rows of batches; nil: they are mapped
	// own are parameters whose gradients are whole here, and settle makes them whole everywhere. nil: there are none.
	own    []*nn.Param
	settle func(epoch, number int) error
	// stepped is told of every step that is done.
	stepped func(epoch, number int)
}

// Aggregator is what the layers of a batch's step go over.
type Aggregator interface {
	nn.Aggregator
	Begin(b *Batch)
	End()
	// Weigh multiplies the gradients of outputs by what their losses count, in another matrix if they count
	// differently.
	Weigh(dlogits tensor.Matrix) tensor.Matrix
	// Failed is why the rows of the step mean nothing.
	Failed() error
}

// Stop ends what draws batches.
func (m *Steps) Stop() {
	m.disk.stop(m.Loop.Events)
	m.Source.Stop()
	m.disk.close()
}

// Few reports whether this is a dry run: its few batches may have nothing to learn from, where others of the run do.
func (m *Steps) Few() bool { return m.few || m.dry }

// Skips reports whether there is no step for a batch from which this worker learns nothing.
func (m *Steps) Skips() bool { return !m.joined }

// Epoch is a step for every batch. It returns the mean loss of the seed vertices, each at
// the weights of its step.
func (m *Steps) Epoch(epoch int, lr float64) (float64, error) {
	sum := []float64{0, 0} // of losses, and of seed vertices
	f := m.Loop
	var late losses
	err := m.Each(epoch, f.Resumed(epoch, sum), func(b *Batch) error {
		if b.Empty || len(b.Seeds) == 0 && !m.few && !m.joined {
			return nil
		}
		loss, err := m.trainOn(b, lr)
		if err != nil {
			return err
		}
		late = append(late, lossOf{loss, b.Scale})
		sum[1] += float64(len(b.Seeds))
		m.Done(epoch, b.Number)
		if f.SavesNow() || len(late) == mostLate {
			read := f.Span("step")("losses") // no other worker is waited for
			late = late.read(f.Dev, &sum[0])
			read()
		}
		if f.SavesNow() {
			if err := m.settled(epoch, b.Number); err != nil {
				return err
			}
		}
		return f.StepDone(epoch, b.Number, sum)
	})
	if err == nil {
		late.read(f.Dev, &sum[0])
		err = f.AllReduce(epoch, 0, sum)
	}
	if err == nil {
		err = m.settled(epoch, m.Count)
	}
	switch {
	case err != nil:
		return 0, err
	case sum[1] > 0:
		return sum[0] / sum[1], nil
	case !m.Few():
		return 0, train.Mistake("no batch of epoch %d has a training vertex; use a larger --batch-size", epoch)
	}
	return 0, nil
}

// losses belong to steps that a device may not have done yet: it has the next step by the time the host reads them.
type losses []lossOf

type lossOf struct {
	sums  tensor.Matrix
	scale float64
}

// mostLate bounds the number of steps that the host is ahead of a device.
const mostLate = 32

// read adds losses to a sum, in order, and frees them.
func (l losses) read(dev tensor.Device, sum *float64) losses {
	for _, x := range l {
		*sum += nn.TakeLoss(dev, x.sums) / x.scale
	}
	return l[:0]
}

// Done tells of a step.
func (m *Steps) Done(epoch, number int) {
	if m.stepped != nil {
		m.stepped(epoch, number)
	}
}

// Each waits for the batches of an epoch, from one of them on, and gives them to do one after the other.
func (m *Steps) Each(epoch, from int, do func(b *Batch) error) error {
	count := m.Count
	if m.few && epoch > 0 { // it only shows what is there beside a batch
		count = 1
	}
	var b, after *Batch
	for i := range count - from {
		if b = after; b == nil {
			b = m.next()
		}
		if after = nil; m.ahead != nil && i+1 < count-from {
			after = m.next()
		}
		if b.Err != nil {
			return b.Err
		}
		if err := do(b); err != nil {
			return err
		}
		if m.dry {
			if n := b.Bytes(); n > m.held {
				m.held, m.heldRows = n, b.Pulled.bytes()
			}
		}
		b.laid = nil
		m.Source.Release(b)
	}
	if m.few || m.dry {
		m.Source.Fill()
	}
	return nil
}

// next waits for a batch, and has the device begin with it.
func (m *Steps) next() *Batch {
	wait := m.Loop.Span("wait")("batch")
	b := m.Source.Next()
	wait()
	if m.ahead != nil {
		end := m.Loop.Span("step")("ahead")
		m.ahead.lay(m.Loop, b)
		end()
	}
	return b
}

// trainOn is one step. It returns the sum of the seed vertices' losses, times the batch's scale, on the device.
func (m *Steps) trainOn(b *Batch, lr float64) (tensor.Matrix, error) {
	grad := m.Labels().Grad
	return m.Step(b, lr, func(p *nn.Pass, logits tensor.Matrix) (drows, loss tensor.Matrix) {
		return grad(b, p, logits)
	})
}

// Labels is learning from the labels of seed vertices.
func (m *Steps) Labels() Objective {
	dev := m.Loop.Dev
	return Objective{Count: func(b *Batch) int { return len(b.Seeds) },
		Grad: func(b *Batch, _ *nn.Pass, logits tensor.Matrix) (drows, loss tensor.Matrix) {
			if l := b.laid; l != nil {
				loss = l.task.Loss(dev, logits, logits, l.seeds, b.Scale)
			} else {
				loss = b.task(dev).Loss(dev, logits, logits, tensor.Indices(dev, b.Seeds), b.Scale)
			}
			return m.Over.Weigh(logits), loss
		}}
}

// Step is forward, backward and update over a batch. grad returns the gradient of
// the last layer's rows, which may be in their place, and the loss, which Step returns.
func (m *Steps) Step(b *Batch, lr float64,
	grad func(p *nn.Pass, rows tensor.Matrix) (drows, loss tensor.Matrix)) (none tensor.Matrix, err error) {
	f := m.Loop
	m.Over.Begin(b)
	defer m.Over.End()
	gather := f.Span("step")("gather")
	x, err := m.rows(b)
	gather()
	if err != nil {
		return none, err
	}
	p := m.pass(b, b.idsOn(f.Dev))
	f.Model.ZeroGrad(f.Dev)
	end := f.Span("step")("forward")
	rows := f.Model.Forward(p, x)
	end()
	drows, loss := grad(p, rows)
	if !tensor.Same(drows, rows) {
		f.Dev.Free(rows)
	}
	grads, err := f.Peers.Gradients(b.Epoch, b.Number, m.shared(f.Model.Params))
	if err != nil {
		return loss, err
	}
	grads.Ready(f.Model.DecoderParams())
	p.Ready = func(params []*nn.Param) { grads.Ready(m.shared(params)) }
	end = f.Span("step")("backward")
	dx := m.backward(p, drows)
	end()
	b.freeInput(f.Dev, x)
	if err := m.Over.Failed(); err != nil {
		return loss, err
	}
	end = f.Span("step")("update")
	defer end()
	if err := f.Waiting("gradients", grads.Wait); err != nil {
		return loss, err
	}
	if m.input != nil {
		if err := m.input.Push(b, dx, f.Optim.Steps, lr); err != nil {
			return loss, err
		}
		if !dx.IsZero() {
			f.Dev.Free(dx)
		}
	}
	f.Optim.Step(lr)
	return loss, nil
}

// shared drops the parameters whose gradients are not all-reduced.
func (m *Steps) shared(params []*nn.Param) []*nn.Param {
	if len(m.own) == 0 {
		return params
	}
	return slices.DeleteFunc(slices.Clone(params), func(p *nn.Param) bool { return slices.Contains(m.own, p) })
}

// settled makes parameters whole on all workers after a batch; number is the number of batches after the last.
func (m *Steps) settled(epoch, number int) error {
	if m.settle == nil {
		return nil
	}
	return m.Loop.Waiting("parameters", func() error { return m.settle(epoch, number) })
}

// backward returns the gradient of the input, if that is learnt.
func (m *Steps) backward(p *nn.Pass, drows tensor.Matrix) (dx tensor.Matrix) {
	if m.input != nil {
		if l, ok := m.input.(interface{ FirstColumn() int }); ok {
			p.InputFrom = l.FirstColumn()
		}
		return m.Loop.Model.BackwardInput(p, drows)
	}
	m.Loop.Model.Backward(p, drows)
	return dx
}

// pass is the setting of a batch's run through the model.
func (m *Steps) pass(b *Batch, ids tensor.Index) *nn.Pass {
	return &nn.Pass{Dev: m.Loop.Dev, Agg: m.Over, Train: true, Fewer: true, Rows: m.Loop.Opt.Rows, IDs: ids,
		Types: b.types(), Key: passKey(m.Loop.Opt.Seed, b.Epoch, b.Number)}
}

// rows are the input of a batch's step, on the device.
func (m *Steps) rows(b *Batch) (nn.Input, error) {
	if b.laid != nil {
		return b.laid.input, nil
	}
	if m.input != nil {
		return m.input.Rows(b, m.Loop.X)
	}
	return b.input(m.Loop.Dev, m.Loop.X), nil
}

// Accumulate adds the gradients of a batch to those of the parameters, and of learnt rows. It returns the sum of its
// losses.
func (m *Steps) Accumulate(b *Batch, of Objective) (float64, error) {
	f := m.Loop
	m.Over.Begin(b)
	defer m.Over.End()
	x, err := m.rows(b)
	if err != nil {
		return 0, err
	}
	p := m.pass(b, tensor.Indices(f.Dev, b.ids()))
	rows := f.Model.Forward(p, x)
	drows, loss := of.Grad(b, p, rows)
	if !tensor.Same(drows, rows) {
		f.Dev.Free(rows)
	}
	dx := m.backward(p, drows)
	b.freeInput(f.Dev, x)
	if m.input != nil {
		m.input.Hold(b, dx)
	}
	return nn.TakeLoss(f.Dev, loss) / b.Scale, nil
}

// Accumulated ends a step of batches that were accumulated, once the gradients of parameters are summed.
func (m *Steps) Accumulated(b *Batch, lr float64) error {
	if m.input != nil {
		if err := m.input.Push(b, tensor.Matrix{}, m.Loop.Optim.Steps, lr); err != nil {
			return err
		}
	}
	m.Loop.Optim.Step(lr)
	return nil
}

// passKey is the key of a batch's dropout. The first batch has the epoch's key, as
// full-graph training has: with one batch they are the same run.
func passKey(seed uint64, epoch, number int) rng.Key {
	key := rng.New(seed).Fold(uint64(epoch))
	if number > 0 {
		key = key.Fold(1<<32 + uint64(number))
	}
	return key
}
