package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// plainRooms are the packages and pages that use the field's own terms only. A package is
// added here once it does; a page by its path.
var plainRooms = []string{
	"rng", "disk", "event", "graph", "dataset", "partition", "sample", "serve", "tensor", "nn",
	"train", "exchange", "cost", "internal/testseed", "internal/testdeadline", "internal/testflood",
	"internal/testsummary", "internal/yamltext",
	"spec", "report", "bench", "run", "cmd/starling", "watch", "setup", "resume",
	"worker", "plan", "supervise", "simulate", "inspect", "fetch", "predict",
	"wire", "coflow", "collective", "cluster", "docs/wire.md", "docs/mpi.md", "docs/security.md", "docs/failures.md",
	"docs/launchers.md", "docs/watching.md",
	"deploy", "docs/data.md", "docs/partitioning.md", "docs/serving.md", "docs/export.md", "docs/tasks.md",
	"docs/mini-batches.md", "docs/glossary.md",
	"README.md", "CHANGELOG.md", "docs/design.md", "docs/benchmarks.md", "docs/compare.md", "docs/memory.md",
	"docs/training-on-many-workers.md", "docs/strategies",
	"netsim", "docs/simulator.md", "docs/paths.md",
	"innet", "train/full/switchgnn",
}

// unsaid are private words, and what to say instead (docs/glossary.md). A pattern is narrow:
// many of these words are ordinary English in other senses. Identifiers are matched too,
// so \b is left out where a word is part of longer names.
var unsaid = []struct{ pattern, say string }{
	// Exchanging rows.
	{`(?i)homecoming|going[ _]?home`, "reverse exchange"},
	{`\b[gG]iveBack\b|\bmover\b|\bMover\b`, "exchange, reverse exchange"},
	{`\b[pP]assOn\b|\bpasser\b`, "relay"},
	{`(?i)\bnear and far rows|\bfar rows\b|\bnear rows\b|\brows beyond\b`, "local rows, halo rows"},
	{`(?i)\bborder (vertex|vertices|rows|first)\b|\bborderOf\b`, "boundary, halo"},
	{`(?i)\bsurroundings\b`, "k-hop neighbourhood, neighbours"},
	{`(?i)\b(late|overdue|prompt) rows?\b|\browsLate\b`, "stale, fresh"},
	{`(?i)\bcop(y|ies) (of remote vert|are computed|are cheap|go where)`, "replica"},
	{`(?i)\berror rests?\b|\brests of (rounding|rows)\b`, "error-feedback residual"},
	{`(?i)\bcentring\b|\bcentered rows\b|\bcentred rows\b`, "mean correction"},
	{`(?i)\b(rows|gradients) (that )?(come|go|went|are going) home\b|\bat home\b`, "reverse exchange, return"},
	{`(?i)\bedges? across\b|\basking across\b`, "edge operator; page-interleaved prefetch"},
	// Kernels.
	{`(?i)\bpast the caches?\b`, "non-temporal store"},
	{`(?i)\bas they lie\b|\bwhere (it|they) lies?\b`, "in place, unpacked"},
	{`(?i)\b(by|in|of) (eights|thirds)\b|\bouterThirds\b`, "8-column blocks, three-way bf16 split"},
	{`(?i)\bslow moments?\b`, "SMT or clock contention"},
	{`(?i)\bguess(es|ed)? wrong\b|\bwrong guess\b|cannot be foreseen|nobody can foresee`,
		"mispredicted, unpredictable"},
	{`(?i)\b(lines?|panels?|pages?) (that )?((is|are) )?asked for\b|\basking ahead\b`, "prefetch"},
	{`(?i)\bmatrix unit\b|\bthe unit('s)? (is|has|slow|of half)`, "AMX, the tile unit"},
	{`(?i)\b(the|an) FMA loop\b|\bFMA-loop\b`, "FMA peak"},
	{`(?i)\bthe same, turned\b|\bturned (matri|weights|side|product)`, "transposed"},
	{`(?i)\bas lists of (non-?zero|number|column)|\blists of non-?zeros\b`, "compressed rows, zero skipping"},
	{`(?i)\bsums over neighbours(, | \|)`, "SpMM (as a name)"},
	// Measuring and planning.
	{`(?i)\bin turns\b|\bturns each\b`, "interleaved A/B runs, alternately"},
	{`(?i)\bon paper\b|rehears`, "dry run"},
	{`(?i)does not pay\b`, "rejected alternatives"},
	{`(?i)foresee|foretold|foresight`, "predict, plan"},
	// Processes and networks.
	{`(?i)\bdoorway\b|\bat the door\b`, "listener"},
	{`(?i)\bstrangers?\b`, "unauthenticated peer; unexpected file"},
	{`(?i)\binvitations?\b`, "join request"},
	{`(?i)\blast breath\b`, "grace period"},
	{`(?i)\bseats?\b`, "CPU placement"},
	{`(?i)\bcrews?\b|\bhire(d|s)?\b|\bdismiss(es|ed)?\b`, "worker pool"},
	{`(?i)\bspares?\b`, "buffer pool, buffer"},
	{`(?i)\bdrills?\b`, "fault injection"},
	{`(?i)\bvisitors?\b|\bvisits from\b`, "connection, unauthenticated peer"},
	{`(?i)\bminds (its|the|all|them|worker)|\bminder\b|\bminding\b`, "supervise"},
	{`(?i)\bmeeting (point|place)\b|\bthe meeting\b|\bworkers have met\b|\bcomes? in late\b`, "rendezvous, join"},
	{`(?i)\b(workers?|threads?|goroutines?) (sit|sits|sitting)\b`, "CPU placement"},
	{`(?i)\bjoints\b`, "barrier, synchronisation point"},
	{`(?i)\broot vert(ex|ices)\b|\broots of (a|the) batch`, "seed vertices"},
	{`(?i)\bmost batches ahead\b|\bsampled ahead\b|\bready batch`, "prefetcher, prepared batch"},
	// "bytes a layer" for "bytes per layer", at the end of a clause: "rows a layer sends" is another thing.
	{`(?i)(\b(bytes|rows|numbers|floats|labels|classes|features|weights?|one|two|once|twice|[0-9]+)|%d) an? ` +
		`(vertex|edge|class|core|thread|worker|layer|epoch|batch|part|peer|element|row|step|second|server|line|pair|` +
		`node|pod|head)` +
		`(["'.,;:)]|$| (and|or|in|of|for|with|is|are|at|to|on|over|by)\b)`,
		"per"},
	{`(?i)\b(a|one) (row|line|number|folder|class|worker|list|bit|process|thread) an? ` +
		`(vertex|edge|class|core|worker|layer|part|peer|row|line|node|pod|lane|type)\b`, "one per"},
	// The house style is subject, verb, object about things, not about somebody.
	{`(?i)\bnobody('s)?\b|\bsomebody('s)?\b|\bwhoever\b`, "name the process, goroutine or user"},
	{`(?i)\b(has|have|had|with|no|leaves?|makes?|without) room\b|\broom for\b|\broomy|\broomiest\b`,
		"space, capacity, it fits"},
	{`(?i)\b(puts?|putting) [\w ]{0,20}\baside\b|\bputAside\b`, "spill, set aside"},
	{`(?i)\bhand(s|ed)? (them |it )?out\b|\bdeal(s|t)? (them |it |edges )?out\b`, "distribute, allocate, stream"},
}

// kept marks a line whose words are recorded somewhere and cannot change, with the reason.
const kept = "// kept: "

// wordsOf are the private words of a text, by line.
func wordsOf(text string) (found []finding) {
	lower := strings.ToLower(text)
	for _, w := range unsaidPatterns {
		if !w.mayMatch(lower) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if !w.mayMatch(strings.ToLower(line)) || strings.Contains(line, kept) {
				continue
			}
			if m := w.pattern.FindString(line); m != "" {
				found = append(found, finding{i + 1, m, w.say})
			}
		}
	}
	return found
}

type finding struct {
	line      int
	word, say string
}

// unsaidPattern is one of unsaid, compiled. Every match has one of its literals, in lower case:
// to look for these first takes a tenth of the time.
type unsaidPattern struct {
	pattern  *regexp.Regexp
	say      string
	literals []string
}

func (p *unsaidPattern) mayMatch(lower string) bool {
	has := func(literal string) bool { return strings.Contains(lower, literal) }
	return p.literals == nil || slices.ContainsFunc(p.literals, has)
}

var unsaidPatterns = func() (list []*unsaidPattern) {
	for _, w := range unsaid {
		parsed, err := syntax.Parse(w.pattern, syntax.Perl)
		if err != nil {
			panic(err)
		}
		list = append(list, &unsaidPattern{regexp.MustCompile(w.pattern), w.say, literalsOf(parsed)})
	}
	return list
}()

// literalsOf are texts in lower case of which every match has one; nil: there are none.
func literalsOf(r *syntax.Regexp) (best []string) {
	switch {
	case r.Op == syntax.OpLiteral:
		return []string{strings.ToLower(string(r.Rune))}
	case r.Op == syntax.OpCapture || r.Op == syntax.OpPlus:
		return literalsOf(r.Sub[0])
	case r.Op == syntax.OpAlternate:
		for _, sub := range r.Sub {
			found := literalsOf(sub)
			if found == nil {
				return nil
			}
			best = append(best, found...)
		}
	case r.Op == syntax.OpConcat:
		for _, sub := range r.Sub {
			if found := literalsOf(sub); found != nil && shortest(found) > shortest(best) {
				best = found
			}
		}
	}
	return best
}

func shortest(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}

// plain tells whether a file belongs to plainRooms.
func plain(path string) bool {
	return slices.ContainsFunc(plainRooms, func(room string) bool {
		return path == room || strings.HasPrefix(path, room+"/")
	})
}

// TestWords: code, comments, messages and pages of plainRooms have no private words.
func TestWords(t *testing.T) {
	root, _ := filepath.Abs("../..")
	check := func(path string) {
		if !plain(path) {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range wordsOf(string(text)) {
			t.Errorf("%s:%d: %q: say %s", path, f.line, f.word, f.say)
		}
	}
	sources(t, check)
	walk(t, ".md", check)
}

// TestWordsAreFound: the patterns find private uses and leave ordinary ones alone.
func TestWordsAreFound(t *testing.T) {
	for _, text := range []string{"rows that are going home", "func passOn(", "16 bytes a layer", "one line an edge",
		"nobody can foresee it", "there is no room for it", "a row a vertex", "with 4 rows a peer", "on paper",
		"features are read where they lie", "border vertices first", "measured in turns", "%d a vertex",
		"panels that are asked for one ahead", "beside the FMA loop", "gradients come home", "copies go where",
		"a worker minds its children", "workers have met", "root vertices"} {
		if len(wordsOf(text)) == 0 {
			t.Errorf("%q is not found", text)
		}
	}
	for _, text := range []string{"half of the halves", "a list of readers", "it returns a row",
		"the room of a package",
		"room/store", "later or sooner", "a vertex a of part b",
		"calls f with a number and a vertex", "turn := <-turns",
		"one vertex", "two edges and a vertex", "nearest", "a paper of 2020",
		"never mind", "the joint distribution", "gradients of the roots", "it asks for a row", "for all of the unit"} {
		if found := wordsOf(text); len(found) > 0 {
			t.Errorf("%q: %+v", text, found)
		}
	}
}
