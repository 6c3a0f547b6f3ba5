// Package disk makes files and folders that appear whole or not at all, also where the
// process is killed or the disk is full.
//
// What is being written has a hidden name beside its own, .NAME.tmp-N, and is locked by its
// process. Commit renames it. The system lets go of a lock when the process ends, however it
// ends, so that the next one to write to NAME knows what was left behind, and removes it.
//
// A link is followed: what it points to is replaced, and it stays a link. What must not be
// replaced by a file, such as a pipe or /dev/stdout, is written to as it is.
package disk
