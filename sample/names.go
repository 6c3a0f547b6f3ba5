package sample

// Names are the samplers by the names users give them.
var Names = []string{"neighbour", "fastgcn", "ladies", "cluster", "cluster-local", "saint-node", "saint-edge",
	"saint-walk"}
