package sample

// Names are the samplers that users may choose (--sampler).
var Names = []string{"neighbour", "fastgcn", "ladies", "cluster", "cluster-local", "saint-node", "saint-edge",
	"saint-walk", "pinsage"}
