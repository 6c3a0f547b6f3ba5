package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"starling/cluster"
	"starling/event"
)

// Snapshot is a run at one moment.
type Snapshot struct {
	Dataset  string `json:"dataset"`
	Model    string `json:"model"`
	Strategy string `json:"strategy"`

	Epoch        int     `json:"epoch"`  // trained
	Epochs       int     `json:"epochs"` // to train
	Loss         float64 `json:"loss"`
	Val          float64 `json:"val"`
	EpochSeconds float64 `json:"epoch_seconds"` // the median of the last few; 0: not known yet
	Seconds      float64 `json:"seconds"`       // since the run started
	Starts       int     `json:"starts"`        // 1, plus one per recovery
	Saved        int     `json:"saved"`         // epochs in the newest checkpoint on disk
	SavedAgo     float64 `json:"saved_ago"`     // -1: none

	Ranks []RankSnapshot `json:"ranks"`
}

// RankSnapshot is one worker of a run, and the bytes per second that it sends, by link.
type RankSnapshot struct {
	cluster.Status
	Rates map[string]float64 `json:"rates,omitempty"`
}

// Snapshot is the run now.
func (w *Watcher) Snapshot() *Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, s := w.now(), &w.mu.started
	out := &Snapshot{Dataset: s.Dataset, Model: s.Model, Strategy: s.Strategy, Epochs: s.Epochs, Loss: w.mu.last.Loss,
		Val: w.mu.val, EpochSeconds: w.usual().Seconds(), Seconds: now.Sub(w.began).Seconds(), Starts: w.mu.starts,
		Saved: w.mu.saved, SavedAgo: -1}
	if w.mu.starts > 0 {
		out.Epoch = w.underWay() - 1
	}
	if !w.mu.savedAt.IsZero() {
		out.SavedAgo = now.Sub(w.mu.savedAt).Seconds()
	}
	for r, st := range w.statuses(now) {
		out.Ranks = append(out.Ranks, RankSnapshot{Status: st, Rates: w.mu.ranks[r].rates})
	}
	return out
}

// String is the snapshot as text.
func (s *Snapshot) String() string { return s.Text(false) }

// Text is two lines about the run, then one line per rank. Ranks that are silent or keep waiting stand out.
func (s *Snapshot) Text(colors event.Colors) string {
	var b strings.Builder
	first, second, _ := strings.Cut(s.headline(), "\n")
	b.WriteString(colors.Bold(first) + "\n")
	if second != "" {
		b.WriteString(second + "\n")
	}
	b.WriteString("\n")
	links := s.links()
	head := []string{"rank", "host", "pid", "epoch", "memory"}
	for _, l := range links {
		head = append(head, strings.ReplaceAll(l, "_", " "))
	}
	rows := [][]string{append(head, "state kept", "now")}
	for _, r := range s.Ranks {
		row := r.row(links)
		row[len(row)-1] = r.paint(colors, row[len(row)-1])
		rows = append(rows, row)
	}
	writeColumns(&b, rows)
	return b.String()
}

func (s *Snapshot) headline() string {
	if s.Starts == 0 {
		return fmt.Sprintf("%s join since %s", event.Counted(len(s.Ranks), "worker"),
			event.Duration(inSeconds(s.Seconds)))
	}
	text := fmt.Sprintf("%s on %s, strategy %s, %s: epoch %d/%d", s.Model, s.Dataset, s.Strategy,
		event.Counted(len(s.Ranks), "worker"), s.Epoch, s.Epochs)
	if s.Loss != 0 {
		text += fmt.Sprintf(", loss %.4f", s.Loss)
	}
	if s.Val != 0 {
		text += fmt.Sprintf(", val %.4f", s.Val)
	}
	if s.EpochSeconds > 0 {
		text += fmt.Sprintf(", %s per epoch", event.Duration(inSeconds(s.EpochSeconds)))
	}
	text += fmt.Sprintf("\n%s since the start", event.Duration(inSeconds(s.Seconds)))
	if s.SavedAgo >= 0 {
		text += fmt.Sprintf(", checkpoint of epoch %d written %s ago", s.Saved, event.Duration(inSeconds(s.SavedAgo)))
	}
	if s.Starts > 1 {
		text += ", workers lost " + event.Counted(s.Starts-1, "time")
	}
	return text
}

// links are those that anything was sent over, the fastest first.
func (s *Snapshot) links() (out []string) {
	for _, link := range []string{"same_process", "same_host", "between_servers"} {
		if slices.ContainsFunc(s.Ranks, func(r RankSnapshot) bool { return r.Rates[link] > 0 }) {
			out = append(out, link)
		}
	}
	return out
}

// memory is the worker's memory, and its GPU's.
func (r *RankSnapshot) memory() string {
	text := event.Bytes(r.RSS)
	if r.CardSize > 0 {
		text += fmt.Sprintf(", GPU %s of %s", event.Bytes(r.CardUsed), event.Bytes(r.CardSize))
	}
	return text
}

func (r *RankSnapshot) row(links []string) []string {
	row := []string{fmt.Sprint(r.Rank)}
	if r.Age < 0 {
		row = append(row, slices.Repeat([]string{"-"}, 5+len(links))...)
		return append(row, "has reported nothing yet")
	}
	row = append(row, r.Host, fmt.Sprint(r.PID), fmt.Sprint(r.Epoch), r.memory())
	for _, link := range links {
		row = append(row, event.Bytes(int64(r.Rates[link]))+"/s")
	}
	kept := "-"
	if r.SavedAgo >= 0 {
		kept = event.Duration(inSeconds(r.SavedAgo+r.Age)) + " ago"
	}
	return append(row, kept, r.Now())
}

// paint colors what a rank does.
func (r *RankSnapshot) paint(colors event.Colors, now string) string {
	switch {
	case strings.HasPrefix(now, "has reported nothing"):
		return colors.Red(now)
	case strings.HasPrefix(now, "has waited"):
		return colors.Yellow(now)
	}
	return now
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// writeColumns aligns columns, numbers to the right; the last column is text.
func writeColumns(b *strings.Builder, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			switch {
			case i == len(row)-1:
				b.WriteString(cell + "\n")
			case i == 1:
				fmt.Fprintf(b, "%-*s  ", width[i], cell)
			default:
				fmt.Fprintf(b, "%*s  ", width[i], cell)
			}
		}
	}
}
