// Package bench has the bodies of starling bench: times of kernels, epochs, samplers,
// partitioners and of messages between workers, as ratios to what the machine can do or to the
// first of several alternatives. Alternatives run interleaved or right after each other, so that
// a ratio is meaningful on a noisy machine.
package bench
