package worker

// The exit statuses of a worker's process, and of every command.
const (
	OK          = 0
	Failure     = 1
	Mistake     = 2   // the user's: a flag, a file
	Interrupted = 130 // by Ctrl-C; everything was saved
)
