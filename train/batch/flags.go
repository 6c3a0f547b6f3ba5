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
	Cache       string `json:"cache" values:"none,degree,frequency,s3fifo" try:"degree,frequency,s3fifo" suffix:"*" resume:"free" omit:"default" why:"other strategies exchange rows that change, or pull no rows" help:"rows of other hosts' features that a worker keeps: none, those of the highest degree, those that batches need most often, or those that were used last (S3-FIFO)"`
	CacheBudget string `json:"cache_budget" of:"cache" resume:"free" omit:"default" help:"memory of a worker's cache, as 256MiB"`
}

// CachedBy is a cache of the default size.
func CachedBy(cache string) CacheOptions { return CacheOptions{Cache: cache, CacheBudget: "256MiB"} }

// Validate refuses what is no amount of memory.
func (o *CacheOptions) Validate() error {
	_, err := exchange.ParseBytes("--cache-budget", o.CacheBudget)
	return err
}

// given reports whether a cache was asked for, and is not just what the strategy does.
func (o *CacheOptions) given(c train.Choice) bool {
	option := c.Descriptor.Option("cache")
	return option != nil && o.Cache != "none" && o.Cache != option.Default
}

func (o *CacheOptions) bytes() int64 {
	bytes, _ := exchange.ParseBytes("", o.CacheBudget)
	return bytes
}
