// Package run joins everything: a Spec says what to do, Train does it with the
// dataset, the device, the training loop, the checkpoints and the listeners, and a
// Report says what came of it.
//
// The spec is one struct. Flags, starling.yaml and checkpoints carry the same
// fields under the same names (a flag --weight-decay is weight_decay in the file), and its
// text form reads back as what was written.
package run
