// Package disk writes files and folders that appear complete or not at all, even if the
// process is killed or the disk is full.
//
// A file or folder is written under a hidden name beside its own, .NAME.tmp-N, which its
// process locks. Commit renames it. The system releases a lock when the process ends,
// however it ends, so the next process that writes NAME finds what was left behind, and
// removes it.
//
// A link is followed: its target is replaced, and it stays a link. What must not be
// replaced by a file, such as a pipe or /dev/stdout, is written to directly.
package disk
