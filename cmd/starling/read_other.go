//go:build !linux && !darwin

package main

import "context"

// whileRead has no such signal to listen for.
func whileRead(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
