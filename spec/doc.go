// Package spec is the run's spec: everything a user can say about a training run, in one
// struct with defaults, completion, validation and a text form.
//
// The struct has a group of settings per concern, each with its defaults and checks in the file of
// its name: model, training, optimizer, batches, pairs, embeddings, output, checkpoints, machine,
// cluster (the workers) and launch (their hosts). Checks of several groups are in validate.go.
//
// Flags, starling.yaml and checkpoints carry the same settings under the same names (the
// flag --weight-decay is weight_decay in the file), without groups, and the text form reads back as
// what was written. A file may also have them by group (nested.go). The options of strategies are
// settings too; they come from the strategies' descriptors (package train).
//
// A spec goes through three steps before a run:
//
//	Complete   settings that follow from others, and from folders that they name
//	Validate   the first setting that makes no sense, has no effect, or contradicts another
//	ForData    settings that follow from the dataset and this machine
//
// Beside the training run's, the specs of starling partition and starling compare are
// here, and what several commands check of the files, folders and secrets that flags name.
package spec
