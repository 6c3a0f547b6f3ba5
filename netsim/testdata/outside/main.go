// A program that is no test and simulates: it has flags of its own, which package testing
// must not read.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"starling/netsim"
	"starling/wire"
)

func main() {
	if len(os.Args) != 2 || os.Args[1] != "--workers=2" {
		os.Exit(2)
	}
	var all sync.WaitGroup
	results := make([]string, 4)
	for i := range results {
		all.Go(func() { results[i] = simulate() })
	}
	all.Wait()
	fmt.Println(results)
}

// simulate sends a megabyte over 8 Gbps, which takes 1 ms and the headers.
func simulate() string {
	top := netsim.DefaultTopology()
	top.Hosts, top.Rate, top.Header = 2, 8*netsim.Gbps, 0
	s := netsim.Scenario{Topology: top, Workers: 2, Options: netsim.Options{Options: wire.DefaultOptions()}}
	r, err := s.Run(func(ends []wire.Endpoint) error {
		sent := ends[0].Send(1, wire.Key{}, wire.Feature, make([]byte, 1e6))
		if err := ends[1].Recv(0, wire.Key{}, wire.Feature, make([]byte, 1e6)).Wait(context.Background()); err != nil {
			return err
		}
		return sent.Wait(context.Background())
	})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.2f ms", 1e3*r.Seconds)
}
