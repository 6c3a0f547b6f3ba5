package run

import "strings"

// Paper is what a strategy's paper claims, and why figures of a run here differ.
type Paper struct {
	Title string `json:"title"` // with authors and venue, short
	Claim string `json:"claim"` // its headline figure, and over what
	Why   string `json:"why"`   // reasons for another figure here

	over string // the strategy that the paper compares with, where not halo
}

// papers, by the name of the strategy.
var papers = map[string]Paper{
	"bns": {"BNS-GCN, Wan et al., MLSys 2022", "up to 16.2x throughput, 58% less memory",
		"its largest figures are over ROC and CAGNET, with GPUs, where moving rows is nearly all of an epoch; ours is over an exchange that already overlaps, with processors that compute longer", ""},
	"pipegcn": {"PipeGCN, Wan et al., ICLR 2022", "1.7x to 28.5x throughput",
		"the gain is at most the share of time spent waiting; on GPUs that is most of an epoch, here only what near sums do not hide already", ""},
	"cagnet": {"CAGNET, Tripathy et al., SC 2020", "bounds on communication; no single figure (1D is the baseline of SANCUS)",
		"1D broadcasts all rows of a block to everybody, needed or not, so it is slower than halo wherever the cut is good", ""},
	"sancus": {"SANCUS, Peng et al., PVLDB 2022", "35% to 74% less communication than without skipping, accuracy within 0.5 points",
		"it saves broadcasts of whole blocks, as cagnet's: halo sends fewer rows to begin with", "cagnet"},
	"skipg": {"the SkipG baseline of SANCUS, PVLDB 2022", "less gain than SANCUS: gradients are skipped instead of embeddings",
		"rows still travel forwards in every epoch, and with them half of the bytes", "cagnet"},
	"granndis": {"GraNNDIS, Song et al., PACT 2024", "1.1x to 3.0x (preloading), 1.9x to 3.6x (with sampling), up to 44x on 1 GbE",
		"recomputing is nearly free on idle GPUs; here it takes time from the same cores, so the gain starts at slower links", ""},
	"neutronstar": {"NeutronStar, Wang et al., SIGMOD 2022", "1.81x to 14.25x over DistDGL and ROC",
		"those are other systems; our baseline differs in nothing but the choice between receiving and recomputing", ""},
	"g3": {"G3, Wan et al., SIGMOD 2023", "1.08x to 2.24x over BNS-GCN (p=1) and NeutronStar; the pipeline alone up to 11.7x",
		"its baseline waits at every layer; halo here already computes near sums while far rows travel, so less is left to hide", ""},
}

// paperOf is the paper of a strategy as the user names it, nil where there is none.
func paperOf(strategy string) *Paper {
	name, _, _ := strings.Cut(strategy, ":")
	name, _, _ = strings.Cut(name, "+")
	name, _, _ = strings.Cut(name, " ")
	if p, ok := papers[name]; ok {
		return &p
	}
	return nil
}
