package spec

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"starling/graph"
	"starling/partition"
	"starling/train"
)

// Cluster is the workers of a run: their number, their parts of the graph, and how they reach each other.
type Cluster struct {
	Workers     int    `json:"workers" auto:"zero" range:"1,32768" resume:"free"`
	Servers     int    `json:"servers" auto:"zero" range:"1,32768" resume:"free"`
	Partition   string `json:"partition" resume:"free"`
	Parts       int    `json:"parts" auto:"zero" range:"1,32768" resume:"free"`
	Partitioner string `json:"partitioner" also:"method" resume:"free"`
	InProcess   bool   `json:"in_process" resume:"free"`
	Transport   string `json:"transport" values:"auto,tcp,shm,inprocess,mpi" resume:"free"`
	SendOrder   string `json:"send_order" resume:"free"`
	AllReduce   string `json:"all_reduce" values:"host,nccl" resume:"free"`
	DSCP        bool   `json:"dscp" resume:"free"`
	Paths       string `json:"paths" resume:"free"`
	OnFailure   string `json:"on_failure" values:"restart,wait,stop" resume:"free"`
	Heartbeat   int    `json:"heartbeat" range:"1,1000000" resume:"free"`
	Timeout     int    `json:"timeout" range:"1,1000000" resume:"free"`
}

func defaultCluster() Cluster {
	return Cluster{Partitioner: "multilevel", Transport: "auto", SendOrder: "type", AllReduce: "host",
		OnFailure: "restart", Heartbeat: 7, Timeout: 60}
}

func (c *Cluster) Validate() error {
	return cmp.Or(checkFields(c), c.checkTransport())
}

// goroutines reports whether workers are goroutines of this process.
func (c *Cluster) goroutines() bool { return c.InProcess || c.Transport == "inprocess" }

// checkTransport refuses transports that other settings of the workers do not go over.
func (c *Cluster) checkTransport() error {
	transport := "--transport " + c.Transport
	switch {
	case c.InProcess && c.Transport != "auto" && c.Transport != "inprocess":
		return graph.Apart(transport, "--in-process", "workers in one process share its memory",
			"leave out one of the two")
	case c.Paths != "" && c.goroutines():
		return graph.Apart("--paths", "workers in one process", "no bytes of this run leave by TCP",
			"leave out --in-process, or --paths")
	case c.Paths != "" && c.Transport == "mpi":
		return graph.Apart("--paths", transport, "MPI carries a whole run by itself, over the links it chooses",
			"use --transport tcp or auto, or leave out --paths")
	case c.Paths != "" && c.Transport == "shm":
		return graph.Apart("--paths", transport, "no bytes of this run leave by TCP",
			"use --transport auto, which takes shared memory for one of the paths, or tcp")
	}
	return nil
}

// clusterEffects are the settings of several workers.
func (s *Spec) clusterEffects() []effect {
	c, d, distributed, processes := &s.Cluster, defaultCluster(), s.Distributed(), s.Processes()
	cut, nothingCut := distributed && s.PartitionFolder() == "", "nothing is partitioned in this run"
	if cut && (s.Launch.NoLaunch || s.Launch.Hosts != "") {
		cut = false
		nothingCut = "workers that are started elsewhere need a partition: make one with starling partition --method"
	}
	const alone = "one worker sends nothing: give --workers, or leave it out"
	return []effect{
		{"--servers", c.Servers > 0, distributed,
			"one worker has no others to be grouped with: give --workers, or leave it out"},
		{"--partition", c.Partition != "", distributed, "it needs a --strategy of several workers, as " +
			train.Default().Name},
		{"--partitioner", c.Partitioner != d.Partitioner, cut, nothingCut},
		{"--in-process", c.InProcess, distributed, "one worker always is"},
		{"--transport", c.Transport != d.Transport, distributed, alone},
		{"--send-order", c.SendOrder != d.SendOrder, distributed, alone},
		{"--all-reduce", c.AllReduce != d.AllReduce, distributed, alone},
		{"--all-reduce", c.AllReduce == "nccl", s.Machine.Device != "cpu",
			"NCCL is for GPUs: give --device cuda, or leave it out"},
		{"--dscp", c.DSCP, processes && c.Transport != "shm" && c.Transport != "mpi",
			"no bytes of this run leave by TCP"},
		{"--paths", c.Paths != "", distributed, alone},
		{"--on-failure", c.OnFailure != d.OnFailure, processes, "there are no processes to lose in this run"},
		{"--heartbeat", c.Heartbeat != d.Heartbeat, processes, "there are no processes to lose in this run"},
	}
}

// CompleteParts takes --parts as the number of workers, since each trains one, and a
// method in --partition as --partitioner; a folder of that name has precedence.
func (s *Spec) CompleteParts() error {
	c := &s.Cluster
	if _, err := os.Stat(c.Partition); err != nil && slices.Contains(partition.Names(), c.Partition) {
		if c.Partitioner != c.Partition && c.Partitioner != defaultCluster().Partitioner {
			return Mistake("--partitioner", c.Partitioner+" beside --partition "+c.Partition, "one method to cut with",
				"leave out one of the two")
		}
		c.Partition, c.Partitioner = "", c.Partition
	}
	switch {
	case c.Parts == 0:
	case c.Parts < 0:
		return checkFields(c)
	case c.Workers != 0 && c.Workers != c.Parts:
		return Mistake("--parts", fmt.Sprintf("%d, and --workers %d", c.Parts, c.Workers), "as many parts as workers",
			"leave out one of the two")
	default:
		c.Workers, c.Parts = c.Parts, 0
	}
	return nil
}

// PartitionFolder is the partition that the user names; "": none.
func (s *Spec) PartitionFolder() string {
	switch {
	case s.Cluster.Partition != "":
		return s.Cluster.Partition
	case s.Dataset != "" && partition.IsPartition(s.Dataset):
		return s.Dataset
	}
	return ""
}
