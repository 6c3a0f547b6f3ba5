//go:build !((darwin || linux) && (amd64 || arm64))

package wire

import "errors"

func openMPILibrary() (*mpiLib, error) {
	return nil, errors.New("libraries of MPI are only opened on Linux and macOS, on amd64 and arm64")
}

type mpiLib struct{ mpi }

func (l *mpiLib) start() (rank, size int, err error) { return 0, 0, nil }
func (l *mpiLib) library() string                    { return "" }
func (l *mpiLib) finish() error                      { return nil }
