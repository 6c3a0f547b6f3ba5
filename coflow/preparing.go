package coflow

// Preparing is the group of what workers send each other before training. Its batch tells
// it from the exchange of constant features.
var Preparing = ID{Type: Bulk, Layer: -1, Batch: 1}
