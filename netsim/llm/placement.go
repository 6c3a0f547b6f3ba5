package llm

// Placements are which workers share a server.
//
//	spread    as few as possible of any group, so that exchanges of experts, data and pipeline parallelism leave the
//	          server, as in table 5.1 of the paper: only tensor parallelism stays inside one
//	replicas  replicas of a stage
//	stages    the stages of a pipeline
func Placements() []string { return []string{Spread, "replicas", "stages"} }

// Spread is the paper's placement.
const Spread = "spread"

// perHosts is the number of workers of a server.
func (o *Options) perHosts() int { return max(1, min(perServer, o.GPUs)/o.TP) }

// server is the number of the server of a place.
func (o *Options) server(place int) int { return place / o.perHosts() }

// places are the workers' places in the network, by stage, then replica.
func (o *Options) places(replicas int) []int {
	all := make([]int, o.PP*replicas)
	each := o.perHosts()
	servers := (len(all) + each - 1) / each
	used := make([]int, servers)
	for stage := range o.PP {
		for replica := range replicas {
			at := &all[stage*replicas+replica]
			switch o.Placement {
			case "replicas":
				*at = stage*replicas + replica
				continue
			case "stages":
				*at = replica*o.PP + stage
				continue
			}
			s := (stage + replica) % servers
			for used[s] == each {
				s = (s + 1) % servers
			}
			*at = s*each + used[s]
			used[s]++
		}
	}
	return all
}
