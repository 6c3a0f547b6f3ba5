package cobatch

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"starling/sample"
	"starling/store"
	"starling/train/batch"
)

// expansion is how far expansion-aware sampling goes: hops, and neighbours of each vertex.
type expansion struct{ hops, fanout int }

// newExpansion reads HOPS,FANOUT.
func newExpansion(text string) (*expansion, error) {
	h, f, ok := strings.Cut(text, ",")
	hops, err := strconv.Atoi(strings.TrimSpace(h))
	fanout, err2 := strconv.Atoi(strings.TrimSpace(f))
	if !ok || err != nil || err2 != nil || hops < 0 || fanout < 0 {
		return nil, fmt.Errorf("cobatch samples HOPS,FANOUT beyond a server's seed vertices, as in 1,15; not %q", text)
	}
	return &expansion{hops, fanout}, nil
}

const defaultEAS = "1,15" // of the paper

// cutEAS reads what follows a strategy's name: eas, or easH,F.
func cutEAS(text string) (sampling string, ok bool) {
	rest, ok := strings.CutPrefix(text, "eas")
	return cmp.Or(rest, defaultEAS), ok
}

// expansionShare draws the expansion of the seed vertices of a server.
type expansionShare struct {
	*store.Expansion
	of batch.Seeds
}

func (m *expansionShare) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	err := m.Sample(ctx, b, known, m.of.Seeds(epoch, number), epoch, number)
	b.Scale = m.of.Scale()
	return true, err
}
