//go:build !(darwin || linux) || static

package partition

import "errors"

func (l *metisLib) open() error {
	return errors.New("this build of starling opens no libraries: take one for Linux or macOS made without -tags static")
}
