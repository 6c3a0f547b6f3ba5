package batch

import (
	"fmt"
	"strconv"
	"strings"

	"starling/exchange"
	"starling/graph"
	"starling/store"
	"starling/train"
)

// RootsOption is of strategies whose seed vertices may be divided in any of these ways.
type RootsOption struct {
	Roots string `json:"roots" values:"owner,random,local" exact:"owner,random" suffix:"*" omit:"default" help:"who computes the seed vertices of a batch: their owners, workers at random, or each worker its own (local), as DistDGL has it, which makes other batches than one worker's"`
}

// PullOptions say how rows of features travel.
type PullOptions struct {
	PullDType string `json:"pull_dtype" values:"none,bf16,int8" exact:"none" try:"bf16,int8" suffix:"*" omit:"default" why:"other strategies send rows by --wire-dtype, or no rows of features" help:"type that rows of features of other hosts travel in: none (as they are), bf16 or int8 with a scale per row"`
}

// AsTheyAre are rows that travel in the type that they are stored in.
var AsTheyAre = PullOptions{"none"}

// CacheOptions describe a cache of rows of features that other hosts own.
type CacheOptions struct {
	Cache       string `json:"cache" values:"auto,none,probability,degree,frequency,s3fifo,belady" try:"probability,degree,s3fifo" suffix:"*" resume:"free" omit:"default" why:"other strategies exchange rows that change, or pull no rows" help:"rows of other hosts' features that a worker keeps: none, those that batches need with the highest computed probability, those of the highest degree, those that drawn batches needed most often (frequency), those that were used last (S3-FIFO), or those that the next batches need first, which are drawn ahead (belady); auto: by probability where it can be computed, else by frequency"`
	CacheBudget string `json:"cache_budget" of:"cache" resume:"free" omit:"default" help:"memory of a worker's cache, as 256MiB, or as a share of the features of all vertices, as 4%"`
	Window      int    `json:"cache_window" of:"cache" resume:"free" omit:"default" help:"batches that --cache belady draws before it fetches the rows of the first; 0: the number that fetches fewest rows, at most 64"`
	Edges       string `json:"cache_edges" of:"cache" resume:"free" omit:"default" help:"memory of the cache, within its budget, for the in-edges of other hosts' vertices that batches draw most often, so that these draw without a trip: none, an amount as 64MiB, or a share of the features of all vertices, as 1%; auto: with --cache belady what saves most bytes, at most half, else none"`
}

// CachedBy is a cache of the default size: that of SALIENT++'s own experiments with papers100M, whose replication
// factors are 4% times the number of machines.
func CachedBy(cache string) CacheOptions {
	return CacheOptions{Cache: cache, CacheBudget: "4%", Edges: "auto"}
}

// Validate refuses what is no amount of memory, and no window.
func (o *CacheOptions) Validate() error {
	switch {
	case o.Window < 0:
		return train.Mistake("--cache-window %d: expected a number of batches, or 0", o.Window)
	case o.Window > 0 && o.Cache != Belady:
		return train.Mistake("--cache-window %d has no effect with --cache %s; use --cache belady, or leave it out",
			o.Window, o.Cache)
	}
	if o.KeepsEdges() {
		if _, err := memoryOf("--cache-edges", o.Edges, 0); err != nil {
			return err
		}
	}
	_, err := CacheBytes(o.CacheBudget, 0)
	return err
}

// KeepsEdges reports whether memory for in-edges was asked for.
func (o *CacheOptions) KeepsEdges() bool { return o.Edges != "auto" && o.Edges != "none" }

// edgeBytes is the memory that in-edges of other hosts' vertices may have in a cache that has some: one of these.
func (o *CacheOptions) edgeBytes(s *store.Store, cache int64) []int64 {
	switch {
	case o.KeepsEdges():
		bytes, _ := memoryOf("", o.Edges, s.FeatureBytes())
		return []int64{min(bytes, cache)}
	case o.Edges == "auto" && o.Cache == Belady:
		return []int64{0, cache / 16, cache / 8, cache / 4, cache / 2}
	}
	return []int64{0}
}

// CacheBytes reads --cache-budget: an amount of memory, or a share of what the features of all vertices take.
func CacheBytes(text string, features int64) (int64, error) {
	return memoryOf("--cache-budget", text, features)
}

func memoryOf(flag, text string, features int64) (int64, error) {
	number, isShare := strings.CutSuffix(strings.TrimSpace(text), "%")
	if !isShare {
		return exchange.ParseBytes(flag, text)
	}
	share, err := strconv.ParseFloat(number, 64)
	if err != nil || !(share > 0 && share <= 100) {
		return 0, &graph.InputError{Field: flag, Found: fmt.Sprintf("%q", text),
			Want: "a share of the features above 0% and at most 100%, or an amount of memory",
			Fix:  "for example 4% or 256MiB"}
	}
	return int64(share / 100 * float64(features)), nil
}

// Belady is the cache that keeps what the next batches need.
const Belady = "belady"

// Probability is the cache that keeps what batches need with the highest computed probability.
const Probability = "probability"

// Policy is how rows are chosen, where auto is one of two: computed says whether probabilities can be.
func (o *CacheOptions) Policy(computed bool) string {
	switch {
	case o.Cache != "auto":
		return o.Cache
	case computed:
		return Probability
	}
	return "frequency"
}

// given reports whether a cache was asked for, and is not just what the strategy does.
func (o *CacheOptions) given(c train.Choice) bool {
	option := c.Descriptor.Option("cache")
	return option != nil && o.Cache != "none" && o.Cache != option.Default
}

// bytes is what the cache of a worker may take beside the in-edges that are kept.
func (o *CacheOptions) bytes(s *store.Store) int64 {
	bytes, _ := CacheBytes(o.CacheBudget, s.FeatureBytes())
	_, edges := s.KeptEdges()
	return bytes - edges
}
