package batch

import (
	"starling/exchange"
	"starling/train"
)

// RootsOption is of strategies whose seed vertices may be divided in any of these ways.
type RootsOption struct {
	Roots string `json:"roots" values:"owner,random,local" exact:"owner,random" suffix:"*" omit:"default" help:"who computes the seed vertices of a batch: their owners, workers at random, or each worker its own, which makes other batches than one worker's"`
}

// PullOptions say how rows of features travel.
type PullOptions struct {
	PullDType string `json:"pull_dtype" values:"none,bf16,int8" exact:"none" try:"bf16,int8" suffix:"*" omit:"default" why:"other strategies send rows by --wire-dtype, or no rows of features" help:"type that rows of features of other hosts travel in: none (as they are), bf16 or int8 with a scale per row"`
}

// AsTheyAre are rows that travel in the type that they are stored in.
var AsTheyAre = PullOptions{"none"}

// CacheOptions describe a cache of rows of features that other hosts own.
type CacheOptions struct {
	Cache       string `json:"cache" values:"none,degree,frequency,s3fifo,belady" try:"degree,frequency,s3fifo" suffix:"*" resume:"free" omit:"default" why:"other strategies exchange rows that change, or pull no rows" help:"rows of other hosts' features that a worker keeps: none, those of the highest degree, those that batches need most often, those that were used last (S3-FIFO), or those that the next batches need first, which are drawn ahead (belady)"`
	CacheBudget string `json:"cache_budget" of:"cache" resume:"free" omit:"default" help:"memory of a worker's cache, as 256MiB"`
	Window      int    `json:"cache_window" of:"cache" resume:"free" omit:"default" help:"batches that --cache belady draws before it fetches the rows of the first; 0: the number that fetches fewest rows, at most 64"`
}

// CachedBy is a cache of the default size.
func CachedBy(cache string) CacheOptions { return CacheOptions{Cache: cache, CacheBudget: "256MiB"} }

// Validate refuses what is no amount of memory, and no window.
func (o *CacheOptions) Validate() error {
	switch {
	case o.Window < 0:
		return train.Mistake("--cache-window %d: expected a number of batches, or 0", o.Window)
	case o.Window > 0 && o.Cache != Belady:
		return train.Mistake("--cache-window %d has no effect with --cache %s; use --cache belady, or leave it out",
			o.Window, o.Cache)
	}
	_, err := exchange.ParseBytes("--cache-budget", o.CacheBudget)
	return err
}

// Belady is the cache that keeps what the next batches need.
const Belady = "belady"

// given reports whether a cache was asked for, and is not just what the strategy does.
func (o *CacheOptions) given(c train.Choice) bool {
	option := c.Descriptor.Option("cache")
	return option != nil && o.Cache != "none" && o.Cache != option.Default
}

func (o *CacheOptions) bytes() int64 {
	bytes, _ := exchange.ParseBytes("", o.CacheBudget)
	return bytes
}
