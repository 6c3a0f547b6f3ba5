package p3

import (
	"encoding/binary"
	"fmt"

	"starling/exchange"
	"starling/tensor"
)

// Dropout of the input: x[v,c] is kept or not by a draw of (seed, epoch, batch, v's id, c). A worker has some columns
// of every vertex, so it draws for these what one worker draws, in the batches of all workers:
//
//	drop(x)[:,s] = drop_s(x[:,s])
//
// Zeros are put in where rows are gathered, ahead of training. What is left is scaled on the device, in its type.

// drop applies dropout to the rows of a block's sources.
func (f *firstBlock) drop(d tensor.Dropout, c *columns, ids []uint32) {
	if f.scale = 1; d.P == 0 {
		return
	}
	f.scale = d.Scale()
	width, draws := c.hi-c.lo, d.Draws()
	for i, v := range f.Vertices {
		row, of := f.rows[i*width:(i+1)*width], draws.Of(ids[v])
		for j := range row {
			if !of.Keeps(uint32(c.lo + j)) {
				row[j] = 0
			}
		}
	}
}

// allIDs are the ids of all vertices, by number in the partition, which workers learn from each other.
func allIDs(setup *exchange.Setup) ([]uint32, error) {
	part := setup.W.Part
	mine, _ := binary.Append(nil, binary.LittleEndian, part.IDs[:part.Core()])
	lists, err := setup.TellServer(0, setup.W.End.Size(), mine)
	if err != nil {
		return nil, err
	}
	ids := make([]uint32, 0, part.Book.Nodes)
	for _, b := range lists {
		ids = append(ids, exchange.Numbers(b)...)
	}
	if int64(len(ids)) != part.Book.Nodes {
		return nil, fmt.Errorf("workers have %d vertices, the partition says %d; do all workers have parts of the "+
			"same partition?", len(ids), part.Book.Nodes)
	}
	return ids, nil
}
