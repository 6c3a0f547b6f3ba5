//go:build !(darwin || linux)

package partition

import (
	"fmt"
	"runtime"
)

func (l *metisLib) open() error { return fmt.Errorf("not supported on %s", runtime.GOOS) }
