package coflow

// Preparing is the group of messages between workers before training. Its batch distinguishes
// it from the exchange of constant features.
var Preparing = ID{Type: Bulk, Layer: -1, Batch: 1}
